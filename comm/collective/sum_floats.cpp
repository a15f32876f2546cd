// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/sum_floats.hpp"

#include "comm/collective/estimate_nonzeros.hpp"
#include "comm/collective/header.hpp"
#include "comm/collective/sparse_streamed.hpp"

namespace gpups::comm {
namespace {

// What all ranks must agree on: the algorithm that the caller or the environment names, and the format.
std::string how(AllreduceOptions const& asked, AllreduceOptions const& taken) {
  char const* const by = asked.algorithm == taken.algorithm ? "" : " (GPUPS_ALLREDUCE_ALGORITHM)";
  return taken.algorithm + by + " in " + name_of(taken.format);
}

// A GPU's array counts as full. The same places of each array are looked at, so that equal arrays give equal sums.
std::uint64_t nonzeros_of(View<float const> terms) {
  return terms.device().is_host() ? estimate_nonzeros(terms, 1) : terms.size();
}

}  // namespace

SumFloats::SumFloats(Selector& selector, Array<float> values, AllreduceOptions const& options)
    : selector_(selector),
      values_(std::move(values)),
      terms_(values_),
      options_(with_environment(options)),
      how_(how(options, options_)),
      algorithm_(algorithm_of(options_)) {}

SumFloats::SumFloats(Selector& selector, View<float const> terms, std::shared_ptr<void const> keep,
                     AllreduceOptions const& options)
    : SumFloats(selector, Array<float>(terms.device(), terms.size()), options) {
  terms_ = terms;
  keep_ = std::move(keep);
}

Signature SumFloats::signature() const {
  return {.operation = Operation::kSumFloats, .elements = values_.size(), .how = how_};
}

Task<> SumFloats::run(Mesh& mesh, std::shared_ptr<void const> self) {
  DenseSum of{.values = values_, .terms = terms_, .keep = self, .format = options_.format};
  if (algorithm_ != nullptr) {
    co_await algorithm_->sum_array(mesh, of);
    co_return;
  }
  if (is_short(mesh.ranks(), terms_.bytes())) {
    co_await sum_at_once(mesh, of);
    co_return;
  }
  SumShape const shape{.ranks = mesh.ranks(),
                       .elements = terms_.size(),
                       .given_most = nonzeros_of(terms_),
                       .format = options_.format,
                       .adds = mesh.adds()};
  Selection const selection = co_await selector_.select(mesh, shape);
  of.format = selection.format;
  co_await selection.algorithm->sum_array(mesh, of);
}

SumVector SumFloats::take() {
  std::uint64_t const size = values_.size();
  return {.first = 0, .size = size, .values = std::move(values_)};
}

SumVectors::SumVectors(Selector& selector, Operation operation, SparseVector vector, AllreduceOptions const& options)
    : selector_(selector),
      operation_(operation),
      vector_(std::move(vector)),
      options_(with_environment(options)),
      how_(how(options, options_)),
      algorithm_(algorithm_of(options_)) {}

SumVector SumVectors::take() {
  if (done) return std::move(sum_);
  return {.first = 0,
          .size = vector_.size,
          .sparse = true,
          .indices = std::move(vector_.indices),
          .values = std::move(vector_.values)};
}

Signature SumVectors::signature() const { return {.operation = operation_, .elements = vector_.size, .how = how_}; }

Task<> SumVectors::run(Mesh& mesh, std::shared_ptr<void const> self) {
  SparseSum const of{.vector = vector_.view(), .keep = self, .format = options_.format};
  if (operation_ == Operation::kScatterSparse) {
    sum_ = co_await scatter_streamed(mesh, of);
  } else {
    sum_ = co_await sum(mesh, of);
  }
}

Task<SumVector> SumVectors::sum(Mesh& mesh, SparseSum of) {
  if (algorithm_ != nullptr) co_return co_await algorithm_->sum_vector(mesh, of);
  SumShape const shape{.ranks = mesh.ranks(),
                       .elements = of.vector.size,
                       .sparse = true,
                       .given_most = of.vector.indices.size(),
                       .format = options_.format,
                       .adds = mesh.adds()};
  Selection const selection = co_await selector_.select(mesh, shape);
  of.format = selection.format;
  co_return co_await selection.algorithm->sum_vector(mesh, of);
}

}  // namespace gpups::comm
