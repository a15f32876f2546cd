// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/nodes/node_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/tasks/nodes/node_kind.hpp"
#include "trainer/tasks/nodes/random_walks.hpp"
#include "trainer/tasks/words/skip_gram_task.hpp"

namespace gpups::trainer {
namespace {

constexpr std::uint64_t kBatchMax = 4096;  // of chosen batches: larger ones save no more time

WalkOptions walk_options(Config const& config) {
  NodeSettings const& settings = config.settings<NodeSettings>();
  return {.walks = static_cast<std::uint32_t>(settings.walks),
          .length = static_cast<std::uint32_t>(settings.walk_length),
          .p = settings.p,
          .q = settings.q};
}

// model.l2 is divided by the mean number of neighbours: walks repeat what the edges of a node say about it, so the more
// edges it has, the less a row has to be held back for each pair.
SkipGramOptions node_options(Network const& network, Config const& config) {
  SkipGramOptions options = skip_gram_options(config.settings<NodeSettings>().skip_gram, config.train);
  options.l2 *= static_cast<float>(network.nodes().size()) / static_cast<float>(network.edges());
  return options;
}

class NodeTask : public SkipGramTask {
 public:
  NodeTask(Network const& network, Config const& config, std::int64_t schedule_steps)
      : SkipGramTask(node_options(network, config), config, "nodes", network.nodes().size(), schedule_steps),
        sampler_(network, walk_options(config), node_options(network, config)) {}

  // REQUIRES: never called, since NodeData has no split.
  Metrics wait_evaluate(Stream&, Store&, std::string_view) override {
    throw Error("node embeddings have no metric: export the vectors and evaluate them in another program");
  }

 protected:
  SkipGramGroups groups(Batch const& batch) const override { return sampler_.groups(batch); }

 private:
  WalkSampler sampler_;
};

}  // namespace

std::unique_ptr<NodeData const> read_node_data(Config const& config) {
  NodeSettings const& settings = config.settings<NodeSettings>();
  std::vector<std::string> notices;
  Network network = read_network(config.data, settings.directed, notices);
  return std::make_unique<NodeData>(std::move(network), walk_options(config), std::move(notices));
}

NodeData::NodeData(Network network, WalkOptions const& walks, std::vector<std::string> notices)
    : network_(std::move(network)), walks_(walks), notices_(std::move(notices)), digest_(network_.digest()) {}

std::uint64_t NodeData::chosen_batch() const {
  return std::clamp<std::uint64_t>(network_.nodes().size() / (4 * std::uint64_t{walks_.length}), 1, kBatchMax);
}

std::string NodeData::summary() const {
  return fmt::format("{} with {}; {} in an epoch", with_count(network_.nodes().size(), "node"),
                     with_count(network_.edges(), "edge to a neighbour", "edges to neighbours"),
                     with_count(samples(), "walk"));
}

nlohmann::json NodeData::counts() const { return {{"nodes", network_.nodes().size()}, {"edges", network_.edges()}}; }

MemoryPlan NodeData::memory_plan(Config const& config, Device device, StepSizes const& step) const {
  auto const tables = skip_gram_tables(config, "nodes", network_.nodes().size(), 1);
  std::size_t const length = walk_options(config).length;
  std::size_t const groups = step.samples * ((length + kGroupPositions - 1) / kGroupPositions);
  MemoryPlan plan;
  plan.push_back({.what = "the data", .bytes = network_.bytes(), .on_host = true, .taken = true});
  add_skip_gram(plan, node_options(network_, config), tables, groups, step, device);
  return plan;
}

std::unique_ptr<Task> NodeData::make_task(Config const& config, TaskContext const& context) const {
  return std::make_unique<NodeTask>(network_, config, context.schedule_steps);
}

}  // namespace gpups::trainer
