// SPDX-License-Identifier: Apache-2.0
// Selects an algorithm for each floating-point allreduce whose caller sets none. Each rank calls select_algorithm()
// with equal arguments: the link costs, which all ranks have from rank 0, and the largest number of nonzero elements of
// any rank, which the ranks exchange in a round of small messages. So the bits of a sum depend only on its input, the
// number of ranks and the link costs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"
#include "comm/collectives/selection/link_cost_cache.hpp"
#include "comm/collectives/selection/select_algorithm.hpp"

namespace gpups::comm {

// Selects algorithms and counts its selections. Used by the thread that makes progress.
class Selector {
 public:
  // assumed: costs that replace measured ones, for example in a simulation.
  Selector(LinkCostCache cache, std::optional<LinkCosts> assumed) : cache_(std::move(cache)), costs_(assumed) {}

  // Selects an algorithm. Collective; costs a round of small messages. The first call measures the links, unless the
  // cache has their costs. shape: of the allreduce, with the nonzero elements of this rank.
  CoTask<Selection> select(Communicator& comm, AllreduceShape shape);

  // Returns the link costs and the selections so far as lines of text; none before the first selection.
  std::vector<std::string> explain() const;

 private:
  using Kind = std::tuple<std::uint64_t, bool, WireFormat, Algorithm const*, WireFormat>;
  struct Sums {
    std::uint64_t count = 0;
    AllreduceShape shape{};  // of the last sum
    Selection selection{};
  };
  CoTask<> learn_costs(Communicator& comm);

  LinkCostCache const cache_;
  std::optional<LinkCosts> costs_;                    // nullopt until they are known
  std::string source_ = "assumed";                    // of the costs, for explain()
  bool is_learning_ = false;                          // or has learned
  std::vector<std::shared_ptr<Completion>> waiting_;  // selections that wait for the costs
  std::map<Kind, Sums> sums_;
};

// Returns the selector of a group. It measures the links and caches the costs in the user's cache folder. For a
// simulation it assumes costs, because a simulation must select the same algorithms in every run.
Selector make_selector(bool simulated);

}  // namespace gpups::comm
