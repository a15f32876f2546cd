// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/allreduce/float_allreduce.hpp"

#include "comm/collectives/collective_header.hpp"
#include "comm/collectives/selection/select_algorithm.hpp"
#include "comm/collectives/sparse/sparse_vector_allreduce.hpp"

namespace gpups::comm {
namespace {

// Returns the part of the signature that has the algorithm, which the caller or the environment sets, and the format.
std::string how(AllreduceOptions const& given, AllreduceOptions const& taken) {
  char const* const by = given.algorithm == taken.algorithm ? "" : " (GPUPS_ALLREDUCE_ALGORITHM)";
  return taken.algorithm + by + " in " + name_of(taken.format);
}

// Returns the estimated number of nonzeros; an array on a GPU counts as full. The seed is fixed, so that equal arrays
// get the same algorithm and thus equal sums.
std::uint64_t nonzeros_of(View<float const> terms) {
  return terms.device().is_host() ? estimate_nonzeros(terms, 1) : terms.size();
}

}  // namespace

FloatAllreduce::FloatAllreduce(Selector& selector, Array<float> values, AllreduceOptions const& options)
    : selector_(selector),
      values_(std::move(values)),
      terms_(values_),
      options_(with_environment(options)),
      how_(how(options, options_)),
      algorithm_(algorithm_of(options_)) {}

FloatAllreduce::FloatAllreduce(Selector& selector, View<float const> terms, std::shared_ptr<void const> keep,
                               AllreduceOptions const& options)
    : FloatAllreduce(selector, Array<float>(terms.device(), terms.size()), options) {
  terms_ = terms;
  keep_ = std::move(keep);
}

Signature FloatAllreduce::signature() const {
  return {.operation = CollectiveKind::kSumFloats, .elements = values_.size(), .how = how_};
}

CoTask<> FloatAllreduce::run(Communicator& comm, std::shared_ptr<void const> self) {
  DenseAllreduce of{.values = values_, .terms = terms_, .keep = self, .format = options_.format};
  if (algorithm_ != nullptr) {
    co_await algorithm_->sum_array(comm, of);
    co_return;
  }
  if (fits_eager(comm.ranks(), terms_.bytes())) {
    co_await eager_allreduce(comm, of);
    co_return;
  }
  AllreduceShape const shape{.ranks = comm.ranks(),
                             .elements = terms_.size(),
                             .nonzeros_max = nonzeros_of(terms_),
                             .format = options_.format,
                             .can_allreduce = comm.can_allreduce()};
  Selection const selection = co_await selector_.select(comm, shape);
  of.format = selection.format;
  co_await selection.algorithm->sum_array(comm, of);
}

ReducedVector FloatAllreduce::take() {
  std::uint64_t const size = values_.size();
  return {.first = 0, .size = size, .values = std::move(values_)};
}

SparseVectorAllreduce::SparseVectorAllreduce(Selector& selector, CollectiveKind operation, SparseVector vector,
                                             AllreduceOptions const& options)
    : selector_(selector),
      operation_(operation),
      vector_(std::move(vector)),
      options_(with_environment(options)),
      how_(how(options, options_)),
      algorithm_(algorithm_of(options_)) {}

ReducedVector SparseVectorAllreduce::take() {
  if (done) return std::move(sum_);
  return {.first = 0,
          .size = vector_.size,
          .sparse = true,
          .indices = std::move(vector_.indices),
          .values = std::move(vector_.values)};
}

Signature SparseVectorAllreduce::signature() const {
  return {.operation = operation_, .elements = vector_.size, .how = how_};
}

CoTask<> SparseVectorAllreduce::run(Communicator& comm, std::shared_ptr<void const> self) {
  SparseAllreduce const of{.vector = vector_.view(), .keep = self, .format = options_.format};
  if (operation_ == CollectiveKind::kScatterSparse) {
    sum_ = co_await reduce_scatter_sparse_vector(comm, of);
  } else {
    sum_ = co_await sum(comm, of);
  }
}

CoTask<ReducedVector> SparseVectorAllreduce::sum(Communicator& comm, SparseAllreduce of) {
  if (algorithm_ != nullptr) co_return co_await algorithm_->sum_vector(comm, of);
  AllreduceShape const shape{.ranks = comm.ranks(),
                             .elements = of.vector.size,
                             .sparse = true,
                             .nonzeros_max = of.vector.indices.size(),
                             .format = options_.format,
                             .can_allreduce = comm.can_allreduce()};
  Selection const selection = co_await selector_.select(comm, shape);
  of.format = selection.format;
  co_return co_await selection.algorithm->sum_vector(comm, of);
}

}  // namespace gpups::comm
