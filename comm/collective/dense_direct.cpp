// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <vector>

#include "comm/collective/dense.hpp"
#include "comm/collective/others.hpp"
#include "comm/collective/slices.hpp"
#include "kernels/sum_arrays.hpp"

namespace gpups::comm {
namespace {

// Slices begin on vector boundaries.
constexpr std::size_t kUnit = 16;
// Pieces that are on their way at a time, of each rank.
constexpr std::size_t kAhead = 4;

class Direct {
 public:
  Direct(Mesh& mesh, DenseSum sum)
      : mesh_(mesh),
        sum_(std::move(sum)),
        others_(others(mesh)),
        pieces_((slice_size_max(sum_.values.size(), mesh.ranks(), kUnit) + sum_.piece - 1) / sum_.piece) {}

  Task<> run() {
    for (std::size_t k = 0; k < std::min(kAhead, pieces_); ++k) exchange_terms(k);
    for (std::size_t k = 0; k < pieces_; ++k) {
      co_await add(k);
      for (Rank const q : others_) {
        given_.push_back(mesh_.send_exactly(q, bytes_of(sums(mesh_.me(), k)), sum_.keep));
      }
      co_await take_sums(k);
      if (k + kAhead < pieces_) exchange_terms(k + kAhead);
    }
    for (auto& sums : taken_) co_await sums;
    for (auto& sent : given_) co_await sent;
  }

 private:
  // What is under way of a piece of all slices.
  struct Terms {
    std::vector<Sending> sent;                            // this rank's, of the others' slices
    std::vector<std::shared_ptr<Array<float>>> received;  // the others', of this rank's slice
    std::vector<Arriving> arriving;
  };

  template <class T>
  View<T> piece(View<T> values, Rank rank, std::size_t k) const {
    auto const slice = slice_of(values, mesh_.ranks(), rank, kUnit);
    std::size_t const first = std::min(k * sum_.piece, slice.size());
    return slice.slice(first, std::min(sum_.piece, slice.size() - first));
  }
  View<float const> terms(Rank rank, std::size_t k) const { return piece(sum_.terms, rank, k); }
  View<float> sums(Rank rank, std::size_t k) const { return piece(sum_.values, rank, k); }

  void exchange_terms(std::size_t k) {
    Terms under_way;
    for (Rank const q : others_) {
      under_way.sent.push_back(mesh_.send_exactly(q, bytes_of(terms(q, k)), sum_.keep));
    }
    for (Rank const q : others_) {
      auto const mine = terms(mesh_.me(), k);
      auto const its = std::make_shared<Array<float>>(mine.device(), mine.size());
      under_way.received.push_back(its);
      under_way.arriving.push_back(mesh_.receive_exactly(q, bytes_of(its->view()), its));
    }
    terms_.push_back(std::move(under_way));
  }

  Task<> add(std::size_t k) {
    std::vector<View<float const>> arrays{terms(mesh_.me(), k)};
    for (std::size_t i = 0; i < others_.size(); ++i) {
      auto& its = terms_.front().arriving[i];
      co_await its;
      arrays.push_back(terms_.front().received[i]->view());
    }
    kernels::sum_arrays(mesh_.stream(), {.arrays = arrays, .sums = sums(mesh_.me(), k)});
  }

  // Where the sums of a piece take the place of this rank's terms of it, those have to be taken first.
  Task<> take_sums(std::size_t k) {
    bool const in_place = sum_.terms.data() == sum_.values.data();
    for (std::size_t i = 0; i < others_.size(); ++i) {
      given_.push_back(std::move(terms_.front().sent[i]));
      auto& sent = given_.back();
      if (in_place) co_await sent;
      taken_.push_back(mesh_.receive_exactly(others_[i], bytes_of(sums(others_[i], k)), sum_.keep));
    }
    co_await mesh_.caught_up();  // any stream may take the terms' memory from then on
    terms_.pop_front();
  }

  Mesh& mesh_;
  DenseSum const sum_;
  std::vector<Rank> const others_;
  std::size_t const pieces_;     // of the largest slice
  std::deque<Terms> terms_;      // of the pieces that are on their way
  std::vector<Arriving> taken_;  // sums of the others' slices
  std::vector<Sending> given_;   // of this rank's slice, and its terms of the others'
};

}  // namespace

Task<> sum_directly(Mesh& mesh, DenseSum sum) {
  Direct direct(mesh, std::move(sum));
  co_await direct.run();
}

}  // namespace gpups::comm
