// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/allreduce/integer_allreduce.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "comm/collectives/allreduce/packed_integers.hpp"
#include "comm/collectives/collective_header.hpp"
#include "comm/collectives/slices.hpp"

namespace gpups::comm {
namespace {

// Words of a chunk, and the number of chunks of each rank in flight.
constexpr std::size_t kChunkWords = std::size_t{1} << 18;
constexpr std::size_t kPiecesAhead = 2;

class IntegerReduceScatterAllgather {
 public:
  IntegerReduceScatterAllgather(Communicator& comm, IntegerView values, bool counts_compression)
      : comm_(comm),
        values_(values),
        counts_compression_(counts_compression),
        others_(other_ranks(comm)),
        chunks_((slice_size_max(values.size(), comm.ranks()) + kChunkWords - 1) / kChunkWords) {}

  CoTask<> run() {
    for (std::size_t k = 0; k < std::min(kPiecesAhead, chunks_); ++k) co_await send_terms(k);
    for (std::size_t k = 0; k < chunks_; ++k) {
      co_await add_terms(k);
      co_await send_sums(k);
      if (k + kPiecesAhead < chunks_) co_await send_terms(k + kPiecesAhead);
      co_await receive_sums(k);
    }
  }

 private:
  IntegerView chunk(Rank rank, std::size_t k) const {
    auto const slice = slice_of(values_, comm_.ranks(), rank);
    std::size_t const first = std::min(k * kChunkWords, slice.size());
    return slice.slice(first, std::min(kChunkWords, slice.size() - first));
  }
  ReceiveRequest receive(Rank from, std::size_t words) { return comm_.receive(from, packed_bytes_max(words)); }

  void send(Rank to, IntegerView words, std::shared_ptr<Bytes> const& packed) {
    if (counts_compression_) comm_.count_compression(words.bytes(), packed->size());
    comm_.send(to, packed->view(), packed);
  }

  static ReceiveRequest pop_front(std::deque<ReceiveRequest>& arriving) {
    ReceiveRequest first = std::move(arriving.front());
    arriving.pop_front();
    return first;
  }

  CoTask<> send_terms(std::size_t k) {
    for (Rank const q : others_) {
      auto terms = co_await pack_integers(comm_, chunk(q, k));
      send(q, chunk(q, k), std::make_shared<Bytes>(std::move(terms)));
    }
    for (Rank const q : others_) terms_.push_back(receive(q, chunk(comm_.me(), k).size()));
  }
  CoTask<> add_terms(std::size_t k) {
    for (Rank const q : others_) {
      auto const terms = co_await pop_front(terms_);
      co_await unpack_integers(comm_, q, terms, chunk(comm_.me(), k), Unpack::kAdd);
    }
  }
  CoTask<> send_sums(std::size_t k) {
    auto packed = co_await pack_integers(comm_, chunk(comm_.me(), k));
    auto const sums = std::make_shared<Bytes>(std::move(packed));
    for (Rank const q : others_) send(q, chunk(comm_.me(), k), sums);
    for (Rank const q : others_) sums_.push_back(receive(q, chunk(q, k).size()));
  }
  CoTask<> receive_sums(std::size_t k) {
    for (Rank const q : others_) {
      auto const sums = co_await pop_front(sums_);
      co_await unpack_integers(comm_, q, sums, chunk(q, k), Unpack::kReplace);
    }
  }

  Communicator& comm_;
  IntegerView const values_;
  bool const counts_compression_;
  std::vector<Rank> const others_;
  std::size_t const chunks_;                 // of the largest slice
  std::deque<ReceiveRequest> terms_, sums_;  // in flight: for each chunk, one of each rank
};

bool uses_eager(int ranks, std::size_t words) { return fits_eager(ranks, packed_bytes_max(words)); }

// Each rank sends its whole array to every other rank.
CoTask<> eager_allreduce(Communicator& comm, IntegerView values, bool counts_compression) {
  auto packed = co_await pack_integers(comm, values);
  auto const terms = std::make_shared<Bytes>(std::move(packed));
  std::vector<ReceiveRequest> arriving;
  for (Rank const q : other_ranks(comm)) {
    if (counts_compression) comm.count_compression(values.bytes(), terms->size());
    comm.send(q, terms->view(), terms);
    arriving.push_back(comm.receive(q, packed_bytes_max(values.size())));
  }
  for (std::size_t i = 0; Rank const q : other_ranks(comm)) {
    auto& message = arriving[i++];
    Bytes const its = co_await message;
    co_await unpack_integers(comm, q, its, values, Unpack::kAdd);
  }
}

}  // namespace

std::uint64_t uncompressed_bytes_of_integers(std::uint64_t elements, int ranks, Rank me) {
  std::uint64_t const mine = slice_of(elements, ranks, me).size, others = static_cast<std::uint64_t>(ranks) - 1;
  std::uint64_t const words = uses_eager(ranks, elements) ? others * elements : elements - mine + others * mine;
  return sizeof(std::int64_t) * words;
}

CoTask<> IntegerAllreduce::run(Communicator& comm, std::shared_ptr<void const> self) {
  if (comm.can_allreduce()) {  // integers have the same sum in any order
    co_await comm.fabric_allreduce({View<std::int64_t const>(values_), values_.view()}, std::move(self));
    co_return;
  }
  if (uses_eager(comm.ranks(), values_.size())) {
    co_await eager_allreduce(comm, values_, counts_compression_);
    co_return;
  }
  IntegerReduceScatterAllgather sum(comm, values_, counts_compression_);
  co_await sum.run();
}

}  // namespace gpups::comm
