// SPDX-License-Identifier: Apache-2.0
// Sums of floats over the ranks: arrays, and sparse vectors, by one of the algorithms.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "comm/collective/algorithms.hpp"
#include "comm/collective/collectives.hpp"
#include "comm/collective/selector.hpp"

namespace gpups::comm {

class SumFloats final : public Collective {
 public:
  // values: (n), this rank's, and then the sums.
  SumFloats(Selector& selector, Array<float> values, AllreduceOptions const& options);
  // terms: (n), this rank's, which `keep` owns; the sums get memory of their own.
  SumFloats(Selector& selector, View<float const> terms, std::shared_ptr<void const> keep,
            AllreduceOptions const& options);

  View<float> values() const { return values_; }
  SumVector take();
  Signature signature() const override;
  Task<> run(Mesh& mesh, std::shared_ptr<void const> self) override;

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

class SumVectors final : public Collective {
 public:
  // operation: kSumSparse or kScatterSparse.
  SumVectors(Selector& selector, Operation operation, SparseVector vector, AllreduceOptions const& options);

  // The vector itself where the rank is alone, which must own it.
  SumVector take();
  Signature signature() const override;
  Task<> run(Mesh& mesh, std::shared_ptr<void const> self) override;

 private:
  Task<SumVector> sum(Mesh& mesh, SparseSum of);

  Selector& selector_;
  Operation operation_;
  SparseVector vector_;
  AllreduceOptions options_;
  std::string how_;             // as ranks compare it
  Algorithm const* algorithm_;  // null: it is selected
  SumVector sum_{};
};

}  // namespace gpups::comm
