// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/sum_integers.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "comm/collective/header.hpp"
#include "comm/collective/narrow.hpp"
#include "comm/collective/others.hpp"
#include "comm/collective/slices.hpp"

namespace gpups::comm {
namespace {

// Words of the pieces that go on their way one by one, and how many of each rank do so at a time.
constexpr std::size_t kPiece = std::size_t{1} << 18;
constexpr std::size_t kAhead = 2;

class IntegerSum {
 public:
  IntegerSum(Mesh& mesh, Words values, bool counts_coding)
      : mesh_(mesh),
        values_(values),
        counts_coding_(counts_coding),
        others_(others(mesh)),
        pieces_((slice_size_max(values.size(), mesh.ranks()) + kPiece - 1) / kPiece) {}

  Task<> run() {
    for (std::size_t k = 0; k < std::min(kAhead, pieces_); ++k) co_await give_terms(k);
    for (std::size_t k = 0; k < pieces_; ++k) {
      co_await add_terms(k);
      co_await give_sums(k);
      if (k + kAhead < pieces_) co_await give_terms(k + kAhead);
      co_await take_sums(k);
    }
  }

 private:
  Words piece(Rank rank, std::size_t k) const {
    auto const slice = slice_of(values_, mesh_.ranks(), rank);
    std::size_t const first = std::min(k * kPiece, slice.size());
    return slice.slice(first, std::min(kPiece, slice.size() - first));
  }
  Receiving receive(Rank from, std::size_t words) { return mesh_.receive(from, narrow_bytes_max(words)); }

  void send(Rank to, Words words, std::shared_ptr<Bytes> const& narrowed) {
    if (counts_coding_) mesh_.count_coding(words.bytes(), narrowed->size());
    mesh_.send(to, narrowed->view(), narrowed);
  }

  static Receiving first_of(std::deque<Receiving>& arriving) {
    Receiving first = std::move(arriving.front());
    arriving.pop_front();
    return first;
  }

  Task<> give_terms(std::size_t k) {
    for (Rank const q : others_) {
      auto terms = co_await narrow(mesh_, piece(q, k));
      send(q, piece(q, k), std::make_shared<Bytes>(std::move(terms)));
    }
    for (Rank const q : others_) terms_.push_back(receive(q, piece(mesh_.me(), k).size()));
  }
  Task<> add_terms(std::size_t k) {
    for (Rank const q : others_) {
      auto const terms = co_await first_of(terms_);
      co_await widen(mesh_, q, terms, piece(mesh_.me(), k), Widen::kAdd);
    }
  }
  Task<> give_sums(std::size_t k) {
    auto narrowed = co_await narrow(mesh_, piece(mesh_.me(), k));
    auto const sums = std::make_shared<Bytes>(std::move(narrowed));
    for (Rank const q : others_) send(q, piece(mesh_.me(), k), sums);
    for (Rank const q : others_) sums_.push_back(receive(q, piece(q, k).size()));
  }
  Task<> take_sums(std::size_t k) {
    for (Rank const q : others_) {
      auto const sums = co_await first_of(sums_);
      co_await widen(mesh_, q, sums, piece(q, k), Widen::kReplace);
    }
  }

  Mesh& mesh_;
  Words const values_;
  bool const counts_coding_;
  std::vector<Rank> const others_;
  std::size_t const pieces_;            // of the largest slice
  std::deque<Receiving> terms_, sums_;  // that are on their way: for each piece, one of each rank
};

bool goes_at_once(int ranks, std::size_t words) { return is_short(ranks, narrow_bytes_max(words)); }

// Every rank sends all that it has to every other.
Task<> sum_at_once(Mesh& mesh, Words values, bool counts_coding) {
  auto narrowed = co_await narrow(mesh, values);
  auto const terms = std::make_shared<Bytes>(std::move(narrowed));
  std::vector<Receiving> arriving;
  for (Rank const q : others(mesh)) {
    if (counts_coding) mesh.count_coding(values.bytes(), terms->size());
    mesh.send(q, terms->view(), terms);
    arriving.push_back(mesh.receive(q, narrow_bytes_max(values.size())));
  }
  for (std::size_t i = 0; Rank const q : others(mesh)) {
    auto& message = arriving[i++];
    Bytes const its = co_await message;
    co_await widen(mesh, q, its, values, Widen::kAdd);
  }
}

}  // namespace

std::uint64_t plain_bytes_of_integers(std::uint64_t elements, int ranks, Rank me) {
  std::uint64_t const mine = slice_of(elements, ranks, me).size, others = static_cast<std::uint64_t>(ranks) - 1;
  std::uint64_t const words = goes_at_once(ranks, elements) ? others * elements : elements - mine + others * mine;
  return sizeof(std::int64_t) * words;
}

Task<> SumIntegers::run(Mesh& mesh, std::shared_ptr<void const>) {
  if (goes_at_once(mesh.ranks(), values_.size())) {
    co_await sum_at_once(mesh, values_, counts_coding_);
    co_return;
  }
  IntegerSum sum(mesh, values_, counts_coding_);
  co_await sum.run();
}

}  // namespace gpups::comm
