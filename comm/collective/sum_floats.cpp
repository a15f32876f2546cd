// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/sum_floats.hpp"

#include <algorithm>
#include <numeric>

#include "comm/collective/gather_number.hpp"

namespace gpups::comm {
namespace {

std::string how(AllreduceOptions const& options) { return options.algorithm + " in " + name_of(options.format); }

}  // namespace

SumFloats::SumFloats(Array<float> values, AllreduceOptions const& options)
    : values_(std::move(values)), options_(options), algorithm_(algorithm_of(options, false)) {}

Signature SumFloats::signature() const {
  return {.operation = Operation::kSumFloats, .elements = values_.size(), .how = how(options_)};
}

Task<> SumFloats::run(Mesh& mesh, std::shared_ptr<void const> self) {
  SumShape const shape{.ranks = mesh.ranks(), .elements = values_.size(), .format = options_.format};
  Algorithm const& algorithm = algorithm_ != nullptr ? *algorithm_ : choose(shape);
  DenseSum const of{.values = values_, .keep = self};
  co_await algorithm.dense(mesh, of);
}

SumVector SumFloats::take() {
  std::uint64_t const size = values_.size();
  return {.first = 0, .size = size, .values = std::move(values_)};
}

SumVectors::SumVectors(Operation operation, SparseVector vector, AllreduceOptions const& options)
    : operation_(operation), vector_(std::move(vector)), options_(options), algorithm_(algorithm_of(options, true)) {}

SumVector SumVectors::take() {
  if (done) return std::move(sum_);
  return {.first = 0,
          .size = vector_.size,
          .sparse = true,
          .indices = std::move(vector_.indices),
          .values = std::move(vector_.values)};
}

Signature SumVectors::signature() const {
  return {.operation = operation_, .elements = vector_.size, .how = how(options_)};
}

Task<> SumVectors::run(Mesh& mesh, std::shared_ptr<void const> self) {
  SparseSum const of{.vector = vector_.view(), .keep = self, .format = options_.format};
  if (operation_ == Operation::kScatterSparse) {
    sum_ = co_await scatter_to_owners(mesh, of);
  } else {
    sum_ = co_await sum(mesh, of);
  }
}

// Ranks choose alike, by how many elements they all have.
Task<SumVector> SumVectors::sum(Mesh& mesh, SparseSum of) {
  if (algorithm_ != nullptr) co_return co_await algorithm_->sparse(mesh, of);
  auto const counts = co_await gather_number(mesh, of.vector.indices.size());
  SumShape const shape{.ranks = mesh.ranks(),
                       .elements = of.vector.size,
                       .sparse = true,
                       .given = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}),
                       .given_most = *std::max_element(counts.begin(), counts.end()),
                       .format = options_.format};
  co_return co_await choose(shape).sparse(mesh, of);
}

}  // namespace gpups::comm
