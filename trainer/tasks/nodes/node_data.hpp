// SPDX-License-Identifier: Apache-2.0
// The data of node embeddings: a network, on which walks are drawn while training.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/step/task.hpp"
#include "trainer/tasks/nodes/network_files.hpp"

namespace gpups::trainer {

// A network as Data. A sample is a random walk.
class NodeData : public Data {
 public:
  NodeData(SplitNetwork split, std::uint32_t walks, std::vector<std::string> notices);

  Network const& network() const { return split_.network; }
  Dictionary const& names() const { return network().nodes(); }
  std::vector<HeldOutPair> const& split(std::string_view name) const {
    return name == "valid" ? split_.valid : split_.test;
  }

  NamedRows named_rows() const override { return {&names(), names().size()}; }
  std::uint64_t samples() const override { return std::uint64_t{walks_} * network().nodes().size(); }
  // Walks with a fourth as many nodes as the network, if they are as long as walk_length.
  std::uint64_t chosen_batch(Config const& config) const override;
  std::string_view noun() const override { return "walk"; }
  SpeedUnit speed_unit() const override { return {.name = "walks"}; }
  bool has(std::string_view split) const override { return !this->split(split).empty(); }
  std::uint64_t digest() const override { return digest_; }
  std::vector<std::string> notices() const override { return notices_; }
  std::string summary() const override;
  nlohmann::json counts() const override;
  MemoryPlan memory_plan(Config const& config, Device device, StepSizes const& step) const override;
  std::unique_ptr<Task> make_task(Config const& config, TaskContext const& context) const override;

 private:
  SplitNetwork split_;
  std::uint32_t walks_;  // from each node, in an epoch
  std::vector<std::string> notices_;
  std::uint64_t digest_;
};

// Reads the edges data.train of a configuration.
std::unique_ptr<NodeData const> read_node_data(Config const& config);

}  // namespace gpups::trainer
