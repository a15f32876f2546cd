// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <vector>

#include "comm/collectives/allreduce/dense.hpp"
#include "comm/collectives/slices.hpp"
#include "kernels/sum/sum_arrays.hpp"

namespace gpups::comm {
namespace {

// Slices begin at multiples of a SIMD vector.
constexpr std::size_t kUnit = 16;
// Chunks of each rank in flight.
constexpr std::size_t kChunksInFlight = 4;

class ReduceScatterAllgather {
 public:
  ReduceScatterAllgather(Communicator& comm, DenseAllreduce sum)
      : comm_(comm),
        sum_(std::move(sum)),
        others_(other_ranks(comm)),
        chunks_((slice_size_max(sum_.values.size(), comm.ranks(), kUnit) + sum_.chunk - 1) / sum_.chunk) {}

  CoTask<> run() {
    for (std::size_t k = 0; k < std::min(kChunksInFlight, chunks_); ++k) start_exchange(k);
    for (std::size_t k = 0; k < chunks_; ++k) {
      co_await add(k);
      for (Rank const q : others_) {
        sent_.push_back(comm_.send_fixed(q, bytes_of(sums(comm_.me(), k)), sum_.keep));
      }
      co_await receive_sums(k);
      if (k + kChunksInFlight < chunks_) start_exchange(k + kChunksInFlight);
    }
    for (auto& sums : received_) co_await sums;
    for (auto& sent : sent_) co_await sent;
  }

 private:
  // The terms of one chunk of all slices that are in flight.
  struct Terms {
    std::vector<SendRequest> sent;                        // this rank's terms of the other slices
    std::vector<std::shared_ptr<Array<float>>> received;  // terms of the other ranks, of this rank's slice
    std::vector<Request> arriving;
  };

  template <class T>
  View<T> chunk(View<T> values, Rank rank, std::size_t k) const {
    auto const slice = slice_of(values, comm_.ranks(), rank, kUnit);
    std::size_t const first = std::min(k * sum_.chunk, slice.size());
    return slice.slice(first, std::min(sum_.chunk, slice.size() - first));
  }
  View<float const> terms(Rank rank, std::size_t k) const { return chunk(sum_.terms, rank, k); }
  View<float> sums(Rank rank, std::size_t k) const { return chunk(sum_.values, rank, k); }

  void start_exchange(std::size_t k) {
    Terms in_flight;
    for (Rank const q : others_) {
      in_flight.sent.push_back(comm_.send_fixed(q, bytes_of(terms(q, k)), sum_.keep));
    }
    for (Rank const q : others_) {
      auto const mine = terms(comm_.me(), k);
      auto const received = std::make_shared<Array<float>>(mine.device(), mine.size());
      in_flight.received.push_back(received);
      in_flight.arriving.push_back(comm_.receive_fixed(q, bytes_of(received->view()), received));
    }
    terms_.push_back(std::move(in_flight));
  }

  CoTask<> add(std::size_t k) {
    std::vector<View<float const>> arrays{terms(comm_.me(), k)};
    for (std::size_t i = 0; i < others_.size(); ++i) {
      auto& received = terms_.front().arriving[i];
      co_await received;
      arrays.push_back(terms_.front().received[i]->view());
    }
    kernels::sum_arrays(comm_.stream(), {.arrays = arrays, .sums = sums(comm_.me(), k)});
  }

  // If the sums of a chunk replace the terms of this rank, these must have been sent before the sums are received.
  CoTask<> receive_sums(std::size_t k) {
    bool const in_place = sum_.terms.data() == sum_.values.data();
    for (std::size_t i = 0; i < others_.size(); ++i) {
      sent_.push_back(std::move(terms_.front().sent[i]));
      auto& sent = sent_.back();
      if (in_place) co_await sent;
      received_.push_back(comm_.receive_fixed(others_[i], bytes_of(sums(others_[i], k)), sum_.keep));
    }
    co_await comm_.stream_done();  // any stream may then reuse the memory of the terms
    terms_.pop_front();
  }

  Communicator& comm_;
  DenseAllreduce const sum_;
  std::vector<Rank> const others_;
  std::size_t const chunks_;       // of the largest slice
  std::deque<Terms> terms_;        // of the chunks in flight
  std::vector<Request> received_;  // sums of the other slices
  std::vector<SendRequest> sent_;  // sums of this rank's slice, and terms of the other slices
};

}  // namespace

CoTask<> reduce_scatter_allgather(Communicator& comm, DenseAllreduce sum) {
  ReduceScatterAllgather algorithm(comm, std::move(sum));
  co_await algorithm.run();
}

}  // namespace gpups::comm
