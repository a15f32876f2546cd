// SPDX-License-Identifier: Apache-2.0
// Selects an algorithm for each sum of floats whose caller names none. Each rank calls select_algorithm() by itself,
// with equal arguments: the links' costs, which all have from rank 0, and the most nonzero elements of a rank, since
// each rank sends its own number with its first message of the sum. So the bits of a sum depend on its input, the
// number of ranks and the links' costs alone.
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

class Selector {
 public:
  // assumed: costs that replace measured ones, as in a simulation.
  Selector(LinkCostCache cache, std::optional<LinkCosts> assumed) : cache_(std::move(cache)), costs_(assumed) {}

  // A collective, which costs a round of small messages; the first one measures the links, unless the cache has their
  // costs. shape: of the sum, with the nonzero elements of this rank.
  CoTask<Selection> select(Communicator& comm, AllreduceShape shape);

  // What the links cost and what was selected, in lines; none before the first selection.
  std::vector<std::string> explain() const;

 private:
  using Kind = std::tuple<std::uint64_t, bool, WireFormat, Algorithm const*, WireFormat>;
  struct Sums {
    std::uint64_t count = 0;
    AllreduceShape shape{};  // of the last one
    Selection selection{};
  };
  CoTask<> learn_costs(Communicator& comm);

  LinkCostCache const cache_;
  std::optional<LinkCosts> costs_;                    // once they are known
  std::string source_ = "assumed";                    // of the costs
  bool is_learning_ = false;                          // or has learned them
  std::vector<std::shared_ptr<Completion>> waiting_;  // selections that need the costs
  std::map<Kind, Sums> sums_;
};

// Links that are measured, and remembered in the user's cache folder; in a simulation, which must take the same choices
// in every run, links that are assumed.
Selector make_selector(bool simulated);

}  // namespace gpups::comm
