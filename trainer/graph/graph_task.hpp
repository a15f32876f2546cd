// SPDX-License-Identifier: Apache-2.0
// Knowledge graphs as a task: triples to learn from, and to rank among all entities.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "trainer/graph/dataset.hpp"
#include "trainer/graph/model.hpp"
#include "trainer/model_shape.hpp"
#include "trainer/task.hpp"

namespace gpups::trainer {

class GraphData : public Data {
 public:
  explicit GraphData(Dataset dataset);

  Dataset const& dataset() const { return dataset_; }
  std::uint64_t samples() const override { return dataset_.train.size(); }
  std::string_view noun() const override { return "triple"; }
  bool has(std::string_view split) const override { return !dataset_.split(split).empty(); }
  std::uint64_t digest() const override { return digest_; }
  std::vector<std::string> notices() const override { return dataset_.notices; }
  std::string summary() const override;
  nlohmann::json counts() const override;
  MemoryPlan memory_plan(Config const& config, Device device, StepSizes const& step) const override;
  std::unique_ptr<Task> make_task(Config const& config, TaskContext const& context) const override;

 private:
  Dataset dataset_;
  std::uint64_t digest_;
};

// schedule_steps: where the schedule of the learning rate ends, unless the configuration says.
GraphModelOptions graph_model_options(Config const& config, std::int64_t schedule_steps);
ModelShape graph_shape(Config const& config);

}  // namespace gpups::trainer
