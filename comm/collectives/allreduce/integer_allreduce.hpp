// SPDX-License-Identifier: Apache-2.0
// Allreduces of integers. Each rank sums one slice of the arrays of all ranks and sends the sums to all ranks, chunk by
// chunk. Terms and sums are packed into as few bytes as hold them: with w bytes for a term and v bytes for a sum, a
// rank sends (w + v + 1 / 256) * (ranks - 1) / ranks bytes per element. Short arrays are sent whole to every rank, with
// w * (ranks - 1) bytes per element. A device fabric such as NCCL sums whole integers, in one operation.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "comm/collectives/collectives.hpp"

namespace gpups::comm {

// Returns the bytes that a rank would send without packing: its terms of the other slices, and the sums of its own
// slice to each other rank; for a short array, the whole array to each other rank.
std::uint64_t uncompressed_bytes_of_integers(std::uint64_t elements, int ranks, Rank me);

// The allreduce of an array of integers.
class IntegerAllreduce final : public CollectiveTask {
 public:
  // values: (n), this rank's input; receives the sums. counts_compression: whether the bytes that packing saves are
  // counted; false if most values are zeros that would not be sent otherwise.
  explicit IntegerAllreduce(Array<std::int64_t> values, bool counts_compression = true)
      : values_(std::move(values)), counts_compression_(counts_compression) {}

  // Returns the memory of the sums, (n).
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
