// SPDX-License-Identifier: Apache-2.0
// Sums the elements of dense gradients that ranks have selected, in whole units, by an algorithm over sparse streams
// that keeps its losses.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "comm/collectives/collectives.hpp"
#include "comm/collectives/sparse/algorithms.hpp"
#include "gpups/top_k_allreduce.hpp"

namespace gpups::comm {

// An algorithm of a top-k allreduce.
struct TopKAlgorithmEntry {
  AllreduceAlgorithm info;
  // k: the number of elements that the sum should have.
  CoTask<StreamSum<std::int64_t>> (*sum)(Communicator& comm, StreamInput<std::int64_t> terms, std::size_t k);
};
// Returns all algorithms.
std::span<TopKAlgorithmEntry const> top_k_algorithms();

// Returns the algorithm of this name; for "auto" it depends on the number of ranks. Throws Error if the name is
// unknown.
TopKAlgorithmEntry const& top_k_algorithm(std::string const& name, int ranks);
// Returns the form of values in streams. Throws Error for a format that streams do not support.
kernels::ValueForm form_of(TopKOptions const& options);

// The allreduce of the selected elements of one gradient.
class TopKSparseAllreduce final : public CollectiveTask {
 public:
  // The elements that this rank has selected, on the host.
  struct LocalElements {
    std::uint64_t size = 0;  // of the gradient
    Array<std::uint32_t> indices{};
    Array<std::int64_t> units{};
    View<std::int64_t> residual{};     // (size): receives losses
    std::shared_ptr<void const> keep;  // owns the residual
    std::size_t k = 0;                 // number of elements that the sum should have
  };
  TopKSparseAllreduce(LocalElements local_elements, TopKAlgorithmEntry const& algorithm, kernels::ValueForm form)
      : local_elements_(std::move(local_elements)), algorithm_(algorithm), form_(form) {}

  Signature signature() const override;
  CoTask<> run(Communicator& comm, std::shared_ptr<void const> self) override;

  // The sum in units, once it is done or if the rank is alone. Elements that are not listed are zero.
  View<std::uint32_t const> indices() const {
    return done ? View<std::uint32_t const>(sum_.indices) : local_elements_.indices;
  }
  View<std::int64_t const> units() const {
    return done ? View<std::int64_t const>(sum_.values) : local_elements_.units;
  }

 private:
  LocalElements local_elements_;
  TopKAlgorithmEntry const& algorithm_;
  kernels::ValueForm form_;
  StreamSum<std::int64_t>::SumElements sum_{};
};

}  // namespace gpups::comm
