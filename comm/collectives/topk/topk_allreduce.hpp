// SPDX-License-Identifier: Apache-2.0
// Sums what ranks have chosen of dense gradients, whole units, by one of the algorithms over sparse streams that keep
// what they lose.
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

struct TopKAlgorithmEntry {
  AllreduceAlgorithm info;
  // most: elements that the sum should have.
  CoTask<StreamSum<std::int64_t>> (*sum)(Communicator& comm, StreamInput<std::int64_t> terms, std::size_t k);
};
std::span<TopKAlgorithmEntry const> top_k_algorithms();

// What options name for so many ranks. Throws Error where there is none of that name.
TopKAlgorithmEntry const& top_k_algorithm(std::string const& name, int ranks);
// Throws Error for a format that streams do not have.
kernels::ValueForm form_of(TopKOptions const& options);

class TopKSparseAllreduce final : public CollectiveTask {
 public:
  // A rank's elements, on the host.
  struct LocalElements {
    std::uint64_t size = 0;  // of the gradient
    Array<std::uint32_t> indices{};
    Array<std::int64_t> units{};
    View<std::int64_t> residual{};     // (size): gets what is lost
    std::shared_ptr<void const> keep;  // owns the residual
    std::size_t k = 0;
  };
  TopKSparseAllreduce(LocalElements local_elements, TopKAlgorithmEntry const& algorithm, kernels::ValueForm form)
      : local_elements_(std::move(local_elements)), algorithm_(algorithm), form_(form) {}

  Signature signature() const override;
  CoTask<> run(Communicator& comm, std::shared_ptr<void const> self) override;

  // Units of the sum; those that are not named are zero. Once it is done, or where the rank is alone.
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
