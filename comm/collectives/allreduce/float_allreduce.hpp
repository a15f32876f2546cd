// SPDX-License-Identifier: Apache-2.0
// Allreduces of floats, for arrays and for sparse vectors, by one of the algorithms.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "comm/collectives/allreduce/algorithms.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/collectives/selection/selector.hpp"

namespace gpups::comm {

// The allreduce of an array.
class FloatAllreduce final : public CollectiveTask {
 public:
  // values: (n), this rank's input; receives the sums.
  FloatAllreduce(Selector& selector, Array<float> values, AllreduceOptions const& options);
  // terms: (n), this rank's input, owned by `keep`; the sums get their own memory.
  FloatAllreduce(Selector& selector, View<float const> terms, std::shared_ptr<void const> keep,
                 AllreduceOptions const& options);

  // Returns the memory of the sums, (n).
  View<float> values() const { return values_; }
  ReducedVector take();
  Signature signature() const override;
  CoTask<> run(Communicator& comm, std::shared_ptr<void const> self) override;

 private:
  Selector& selector_;
  Array<float> values_;
  View<float const> terms_;
  std::shared_ptr<void const> keep_{};
  AllreduceOptions options_;
  std::string how_;             // of the signature
  Algorithm const* algorithm_;  // null: the selector selects one
};

// A sparse vector whose arrays are owned by this object, or by `kept.keep`.
struct SparseVector {
  std::uint64_t size = 0;
  Array<std::uint32_t> indices{};
  Array<float> values{};
  SparseView kept{};
  SparseView view() const { return kept.keep != nullptr ? kept : SparseView{size, indices, values}; }
};

// The allreduce or reduce-scatter of a sparse vector.
class SparseVectorAllreduce final : public CollectiveTask {
 public:
  // operation: kSumSparse or kScatterSparse.
  SparseVectorAllreduce(Selector& selector, CollectiveKind operation, SparseVector vector,
                        AllreduceOptions const& options);

  // Moves out the sum; on a rank that is alone, the vector itself, which this object must own.
  ReducedVector take();
  Signature signature() const override;
  CoTask<> run(Communicator& comm, std::shared_ptr<void const> self) override;

 private:
  CoTask<ReducedVector> sum(Communicator& comm, SparseAllreduce of);

  Selector& selector_;
  CollectiveKind operation_;
  SparseVector vector_;
  AllreduceOptions options_;
  std::string how_;             // of the signature
  Algorithm const* algorithm_;  // null: the selector selects one
  ReducedVector sum_{};
};

}  // namespace gpups::comm
