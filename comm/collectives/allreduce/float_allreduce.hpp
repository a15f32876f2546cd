// SPDX-License-Identifier: Apache-2.0
// Sums of floats over the ranks: arrays, and sparse vectors, by one of the algorithms.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "comm/collectives/allreduce/algorithms.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/collectives/selection/selector.hpp"

namespace gpups::comm {

class FloatAllreduce final : public CollectiveTask {
 public:
  // values: (n), this rank's, and then the sums.
  FloatAllreduce(Selector& selector, Array<float> values, AllreduceOptions const& options);
  // terms: (n), this rank's, which `keep` owns; the sums get memory of their own.
  FloatAllreduce(Selector& selector, View<float const> terms, std::shared_ptr<void const> keep,
                 AllreduceOptions const& options);

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
  std::string how_;             // as ranks compare it
  Algorithm const* algorithm_;  // null: it is selected
};

// A sparse vector that is owned, or that somebody keeps.
struct SparseVector {
  std::uint64_t size = 0;
  Array<std::uint32_t> indices{};
  Array<float> values{};
  SparseView kept{};
  SparseView view() const { return kept.keep != nullptr ? kept : SparseView{size, indices, values}; }
};

class SparseVectorAllreduce final : public CollectiveTask {
 public:
  // operation: kSumSparse or kScatterSparse.
  SparseVectorAllreduce(Selector& selector, CollectiveKind operation, SparseVector vector,
                        AllreduceOptions const& options);

  // The vector itself where the rank is alone, which must own it.
  ReducedVector take();
  Signature signature() const override;
  CoTask<> run(Communicator& comm, std::shared_ptr<void const> self) override;

 private:
  CoTask<ReducedVector> sum(Communicator& comm, SparseAllreduce of);

  Selector& selector_;
  CollectiveKind operation_;
  SparseVector vector_;
  AllreduceOptions options_;
  std::string how_;             // as ranks compare it
  Algorithm const* algorithm_;  // null: it is selected
  ReducedVector sum_{};
};

}  // namespace gpups::comm
