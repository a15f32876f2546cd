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

#include "comm/collective/link_cache.hpp"
#include "comm/collective/mesh.hpp"
#include "comm/collective/select_algorithm.hpp"
#include "comm/collective/task.hpp"

namespace gpups::comm {

class Selector {
 public:
  // assumed: costs that replace measured ones, as in a simulation.
  Selector(LinkCache cache, std::optional<LinkModel> assumed) : cache_(std::move(cache)), costs_(assumed) {}

  // A collective, which costs a round of small messages; the first one measures the links, unless the cache has their
  // costs. shape: of the sum, with the nonzero elements of this rank.
  Task<Selection> select(Mesh& mesh, SumShape shape);

  // What the links cost and what was selected, in lines; none before the first selection.
  std::vector<std::string> explain() const;

 private:
  using Kind = std::tuple<std::uint64_t, bool, NumberFormat, Algorithm const*, NumberFormat>;
  struct Sums {
    std::uint64_t count = 0;
    SumShape shape{};  // of the last one
    Selection selection{};
  };
  Task<> learn_costs(Mesh& mesh);

  LinkCache const cache_;
  std::optional<LinkModel> costs_;                  // once they are known
  std::string source_ = "assumed";                  // of the costs
  bool is_learning_ = false;                        // or has learned them
  std::vector<std::shared_ptr<Delivery>> waiting_;  // selections that need the costs
  std::map<Kind, Sums> sums_;
};

}  // namespace gpups::comm
