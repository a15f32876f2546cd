// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/sum_floats.hpp"

#include <optional>

#include "comm/collective/estimate_nonzeros.hpp"
#include "comm/collective/header.hpp"
#include "comm/collective/sparse_streamed.hpp"

namespace gpups::comm {
namespace {

std::string how(AllreduceOptions const& options) { return options.algorithm + " in " + name_of(options.format); }

}  // namespace

SumFloats::SumFloats(Selector& selector, Array<float> values, AllreduceOptions const& options)
    : selector_(selector),
      values_(std::move(values)),
      terms_(values_),
      options_(options),
      algorithm_(algorithm_of(options)) {}

SumFloats::SumFloats(Selector& selector, View<float const> terms, std::shared_ptr<void const> keep,
                     AllreduceOptions const& options)
    : SumFloats(selector, Array<float>(terms.device(), terms.size()), options) {
  terms_ = terms;
  keep_ = std::move(keep);
}

Signature SumFloats::signature() const {
  return {.operation = Operation::kSumFloats, .elements = values_.size(), .how = how(options_)};
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
  // Only rank 0 reckons; a GPU's array counts as full.
  bool const looks = mesh.me() == Rank{0} && terms_.device().is_host();
  std::uint64_t const nonzeros = looks ? estimate_nonzeros(terms_, mesh.number_of_run()) : terms_.size();
  Selection selection(selector_, mesh,
                      {.ranks = mesh.ranks(),
                       .elements = terms_.size(),
                       .given_most = nonzeros,
                       .format = options_.format,
                       .adds = mesh.adds()});
  Way const* const way = co_await selection.way();
  of.format = way->format;
  co_await way->algorithm->sum_array(mesh, of);
  co_await selection.end(std::nullopt);
}

SumVector SumFloats::take() {
  std::uint64_t const size = values_.size();
  return {.first = 0, .size = size, .values = std::move(values_)};
}

SumVectors::SumVectors(Selector& selector, Operation operation, SparseVector vector, AllreduceOptions const& options)
    : selector_(selector),
      operation_(operation),
      vector_(std::move(vector)),
      options_(options),
      algorithm_(algorithm_of(options)) {}

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
    sum_ = co_await scatter_streamed(mesh, of);
  } else {
    sum_ = co_await sum(mesh, of);
  }
}

Task<SumVector> SumVectors::sum(Mesh& mesh, SparseSum of) {
  if (algorithm_ != nullptr) co_return co_await algorithm_->sum_vector(mesh, of);
  Selection selection(selector_, mesh,
                      {.ranks = mesh.ranks(),
                       .elements = of.vector.size,
                       .sparse = true,
                       .given_most = of.vector.indices.size(),
                       .format = options_.format,
                       .adds = mesh.adds()});
  Way const* const way = co_await selection.way();
  of.format = way->format;
  SumVector sum = co_await way->algorithm->sum_vector(mesh, of);
  std::optional<std::uint64_t> entries;
  if (sum.sparse) entries = sum.indices.size();
  co_await selection.end(entries);
  co_return sum;
}

}  // namespace gpups::comm
