// SPDX-License-Identifier: Apache-2.0
// Sums arrays of integers over the ranks: each rank adds up one slice of all ranks' arrays, and then gives its sums to
// all of them, piece by piece. Both travel in as few bytes as hold them: with w bytes, and v for the sums, a rank sends
// (w + v + 1 / 256) * (ranks - 1) / ranks bytes for each element. Short arrays go to every rank at once, in w *
// (ranks - 1) bytes for each element.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "comm/collectives/collectives.hpp"

namespace gpups::comm {

// What a rank sends of such a sum where nothing is coded: its words of the others' slices, and to each other rank the
// sums of its own slice; of a short array all to each.
std::uint64_t uncompressed_bytes_of_integers(std::uint64_t elements, int ranks, Rank me);

class IntegerAllreduce final : public CollectiveTask {
 public:
  // values: (n), this rank's, and then the sums. What coding saves is counted, unless most of it are zeros that nobody
  // would have sent.
  explicit IntegerAllreduce(Array<std::int64_t> values, bool counts_compression = true)
      : values_(std::move(values)), counts_compression_(counts_compression) {}

  View<std::int64_t> values() const { return values_; }
  Signature signature() const override {
    return {.operation = CollectiveKind::kSumIntegers, .elements = values_.size()};
  }
  CoTask<> run(Communicator& comm, std::shared_ptr<void const> self) override;

 private:
  Array<std::int64_t> values_;
  bool counts_compression_;
};

}  // namespace gpups::comm
