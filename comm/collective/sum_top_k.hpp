// SPDX-License-Identifier: Apache-2.0
// Sums what ranks have chosen of dense gradients, whole units, by one of the algorithms over sparse streams that keep
// what they lose.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "comm/collective/collectives.hpp"
#include "comm/collective/stream_sums.hpp"
#include "gpups/top_k_allreduce.hpp"

namespace gpups::comm {

struct TopKAlgorithm {
  AllreduceAlgorithm about;
  // most: elements that the sum should have.
  Task<StreamTotal<std::int64_t>> (*sum)(Mesh& mesh, StreamTerms<std::int64_t> terms, std::size_t most);
};
std::span<TopKAlgorithm const> top_k_algorithms();

// What options name for so many ranks. Throws Error where there is none of that name.
TopKAlgorithm const& top_k_algorithm(std::string const& name, int ranks);
// Throws Error for a format that streams do not have.
kernels::ValueForm form_of(TopKOptions const& options);

class SumTopK final : public Collective {
 public:
  // A rank's elements, on the host.
  struct Chosen {
    std::uint64_t size = 0;  // of the gradient
    Array<std::uint32_t> indices{};
    Array<std::int64_t> units{};
    View<std::int64_t> residual{};     // (size): gets what is lost
    std::shared_ptr<void const> keep;  // owns the residual
    std::size_t most = 0;
  };
  SumTopK(Chosen chosen, TopKAlgorithm const& algorithm, kernels::ValueForm form)
      : chosen_(std::move(chosen)), algorithm_(algorithm), form_(form) {}

  Signature signature() const override;
  Task<> run(Mesh& mesh, std::shared_ptr<void const> self) override;

  // Units of the sum; those that are not named are zero. Once it is done, or where the rank is alone.
  View<std::uint32_t const> indices() const { return done ? View<std::uint32_t const>(sum_.indices) : chosen_.indices; }
  View<std::int64_t const> units() const { return done ? View<std::int64_t const>(sum_.values) : chosen_.units; }

 private:
  Chosen chosen_;
  TopKAlgorithm const& algorithm_;
  kernels::ValueForm form_;
  StreamTotal<std::int64_t>::Entries sum_{};
};

}  // namespace gpups::comm
