// SPDX-License-Identifier: Apache-2.0
// Sums of floats over the ranks: arrays, and sparse vectors, by one of the algorithms.
#pragma once

#include <memory>
#include <utility>

#include "comm/collective/algorithms.hpp"
#include "comm/collective/collectives.hpp"
#include "comm/collective/selector.hpp"

namespace gpups::comm {

class SumFloats final : public Collective {
 public:
  // values: (n), this rank's, and then the sums.
  SumFloats(Selector& selector, Array<float> values, AllreduceOptions const& options);

  View<float> values() const { return values_; }
  SumVector take();
  Signature signature() const override;
  Task<> run(Mesh& mesh, std::shared_ptr<void const> self) override;

 private:
  Selector& selector_;
  Array<float> values_;
  AllreduceOptions options_;
  Algorithm const* algorithm_;  // null: it is chosen
};

// A sparse vector that is owned.
struct SparseVector {
  std::uint64_t size = 0;
  Array<std::uint32_t> indices{};
  Array<float> values{};
  SparseView view() const { return {size, indices, values}; }
};

class SumVectors final : public Collective {
 public:
  // operation: kSumSparse or kScatterSparse.
  SumVectors(Selector& selector, Operation operation, SparseVector vector, AllreduceOptions const& options);

  // The vector itself where the rank is alone.
  SumVector take();
  Signature signature() const override;
  Task<> run(Mesh& mesh, std::shared_ptr<void const> self) override;

 private:
  Task<SumVector> sum(Mesh& mesh, SparseSum of);

  Selector& selector_;
  Operation operation_;
  SparseVector vector_;
  AllreduceOptions options_;
  Algorithm const* algorithm_;  // null: it is chosen
  SumVector sum_{};
};

}  // namespace gpups::comm
