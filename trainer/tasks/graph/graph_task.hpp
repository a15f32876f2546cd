// SPDX-License-Identifier: Apache-2.0
// The task of knowledge graphs: a model is trained on triples, and ranks triples among all entities.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "trainer/step/task.hpp"
#include "trainer/tasks/graph/dataset.hpp"
#include "trainer/tasks/graph/model.hpp"

namespace gpups::trainer {

// A knowledge graph as Data.
class GraphData : public Data {
 public:
  // by_query: whether a training sample is a query with all of its answers, instead of a triple.
  GraphData(Dataset dataset, bool by_query);

  Dataset const& dataset() const { return dataset_; }
  // The training samples, or null if they are triples.
  QuerySet const* queries() const { return queries_ ? &*queries_ : nullptr; }
  std::uint64_t samples() const override { return queries_ ? queries_->size() : dataset_.train.size(); }
  std::string_view noun() const override { return queries_ ? "query" : "triple"; }
  bool has(std::string_view split) const override { return !dataset_.split(split).empty(); }
  std::uint64_t digest() const override { return digest_; }
  std::vector<std::string> notices() const override { return dataset_.notices; }
  std::string summary() const override;
  nlohmann::json counts() const override;
  SampleRows sample_rows() const override;
  NamedRows named_rows() const override { return {&dataset_.entities, dataset_.seen_entities}; }
  MemoryPlan memory_plan(Config const& config, Device device, StepSizes const& step) const override;
  std::unique_ptr<Task> make_task(Config const& config, TaskContext const& context) const override;

 private:
  Dataset dataset_;
  std::optional<QuerySet> queries_;
  std::uint64_t digest_;
};

// Converts a configuration to model options. schedule_steps: see TaskContext.
GraphModelOptions graph_model_options(Config const& config, std::int64_t schedule_steps);

}  // namespace gpups::trainer
