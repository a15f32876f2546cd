// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/nodes/node_data.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/base/nvtx.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/tasks/nodes/node_kind.hpp"
#include "trainer/tasks/nodes/random_walks.hpp"
#include "trainer/tasks/words/held_out_pairs.hpp"
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

std::uint64_t digest_of(SplitNetwork const& split) {
  static_assert(sizeof(HeldOutPair) == 8);
  std::uint64_t hash = split.network.digest();
  for (auto const* pairs : {&split.valid, &split.test}) {
    if (!pairs->empty()) hash = XXH3_64bits_withSeed(pairs->data(), pairs->size() * sizeof(HeldOutPair), hash);
  }
  return hash;
}

class NodeTask : public SkipGramTask {
 public:
  // data: must outlive this object.
  NodeTask(NodeData const& data, Config const& config, std::int64_t schedule_steps)
      : SkipGramTask(node_options(data.network(), config), config, "nodes", data.names().size(), schedule_steps),
        data_(data),
        sampler_(data.network(), walk_options(config), node_options(data.network(), config)),
        seed_(static_cast<std::uint64_t>(config.data.split_seed)) {
    for (std::string_view const split : {"valid", "test"}) {
      for (auto const& pair : data.split(split)) held_out_.push_back(std::minmax(pair.first, pair.second));
    }
    std::sort(held_out_.begin(), held_out_.end());
  }

  Metrics wait_evaluate(Stream& stream, Store& store, std::string_view split) override {
    kernels::NvtxRange const range("evaluate");
    Network const& network = data_.network();
    // Edges of all splits: in a dense network, many nodes without an edge for training have one that is held out.
    auto const have_edge = [&](std::uint32_t from, std::uint32_t to) {
      return network.has_edge(from, to) || network.has_edge(to, from) ||
             std::binary_search(held_out_.begin(), held_out_.end(), EndNodes(std::minmax(from, to)));
    };
    return wait_compare_pairs(
        stream, store, data_.split(split),
        {.keys = data_.names().keys(), .draw = sampler_.negatives(), .may_be_pair = have_edge, .seed = seed_});
  }

 protected:
  SkipGramGroups groups(Batch const& batch) const override { return sampler_.groups(batch); }

 private:
  using EndNodes = std::pair<std::uint32_t, std::uint32_t>;

  NodeData const& data_;
  WalkSampler sampler_;
  std::vector<EndNodes> held_out_;  // of both splits, each with the smaller number first; ascending
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<NodeData const> read_node_data(Config const& config) {
  NodeSettings const& settings = config.settings<NodeSettings>();
  std::vector<std::string> notices;
  SplitNetwork split = read_network(config.data, settings.directed, notices);
  return std::make_unique<NodeData>(std::move(split), walk_options(config).walks, std::move(notices));
}

NodeData::NodeData(SplitNetwork split, std::uint32_t walks, std::vector<std::string> notices)
    : split_(std::move(split)), walks_(walks), notices_(std::move(notices)), digest_(digest_of(split_)) {}

std::uint64_t NodeData::chosen_batch(Config const& config) const {
  return std::clamp<std::uint64_t>(network().nodes().size() / (4 * std::uint64_t{walk_options(config).length}), 1,
                                   kBatchMax);
}

std::string NodeData::summary() const {
  std::string held_out;
  if (has("valid") || has("test")) {
    held_out = fmt::format("; {} for validation, {} for the test", with_count(split_.valid.size(), "edge"),
                           split_.test.size());
  }
  return fmt::format("{} with {}; {} in an epoch{}", with_count(network().nodes().size(), "node"),
                     with_count(network().edges(), "edge to a neighbour", "edges to neighbours"),
                     with_count(samples(), "walk"), held_out);
}

nlohmann::json NodeData::counts() const { return {{"nodes", network().nodes().size()}, {"edges", network().edges()}}; }

MemoryPlan NodeData::memory_plan(Config const& config, Device device, StepSizes const& step) const {
  auto const tables = skip_gram_tables(config, "nodes", network().nodes().size(), 1);
  std::size_t const length = walk_options(config).length;
  std::size_t const groups = step.samples * ((length + kGroupPositions - 1) / kGroupPositions);
  MemoryPlan plan;
  plan.push_back({.what = "the data",
                  .bytes = network().bytes() + (split_.valid.capacity() + split_.test.capacity()) * sizeof(HeldOutPair),
                  .on_host = true,
                  .taken = true});
  add_skip_gram(plan, node_options(network(), config), tables, groups, step, device);
  if (has("valid") || has("test")) {
    plan.push_back({"evaluation: rows of pairs", pair_bytes(row_stride(tables[0].dim))});
  }
  return plan;
}

std::unique_ptr<Task> NodeData::make_task(Config const& config, TaskContext const& context) const {
  return std::make_unique<NodeTask>(*this, config, context.schedule_steps);
}

}  // namespace gpups::trainer
