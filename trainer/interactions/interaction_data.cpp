// SPDX-License-Identifier: Apache-2.0
#include "trainer/interactions/interaction_data.hpp"

#include <fmt/format.h>

#include "trainer/graph/entity_matrix.hpp"
#include "trainer/interactions/bpr_task.hpp"
#include "trainer/progress_reporter.hpp"

namespace gpups::trainer {

std::vector<std::string> recommender_model_names() { return {"bpr"}; }

std::unique_ptr<Data const> read_interaction_data(Config const& config) {
  return std::make_unique<InteractionData>(read_interactions(config.data));
}

std::string InteractionData::summary() const {
  return fmt::format("{}, {}; {} for training, {} for validation, {} for the test",
                     with_count(set_.users.size(), "user"), with_count(set_.items.size(), "item"),
                     with_count(set_.train.size(), "interaction"), set_.valid.size(), set_.test.size());
}

nlohmann::json InteractionData::counts() const { return {{"users", set_.users.size()}, {"items", set_.items.size()}}; }

SampleRows InteractionData::sample_rows() const {
  auto const known = [](Dictionary const& names, std::size_t count) {
    return std::vector<Key>(names.keys().begin(), names.keys().begin() + static_cast<std::ptrdiff_t>(count));
  };
  SampleRows rows{.graph = {.rows = static_cast<std::uint32_t>(set_.known_users + set_.known_items)},
                  .tables = {{kUsersTable, known(set_.users, set_.known_users)},
                             {kItemsTable, known(set_.items, set_.known_items)}}};
  for (Interaction const& pair : set_.train.pairs()) {
    std::uint32_t const read[] = {pair.user, static_cast<std::uint32_t>(set_.known_users + pair.item)};
    rows.graph.add(read);
  }
  return rows;
}

MemoryPlan InteractionData::memory_plan(Config const& config, Device device, StepSizes const& step) const {
  auto const tables = recommender_tables(set_, config, 1);
  std::size_t const samples = step.samples, entries = samples * static_cast<std::size_t>(1 + config.model.negatives);
  MemoryPlan plan;
  plan.push_back(
      {.what = "the data",
       .bytes = set_.users.bytes() + set_.items.bytes() + set_.train.bytes() + set_.valid.bytes() + set_.test.bytes(),
       .on_host = true,
       .taken = true});
  add_placement(plan, config, set_.train.size(), 2 * set_.train.size(), set_.known_users + set_.known_items);
  BatchPart const parts[] = {{samples, distinct_of(samples, set_.known_users), tables[0], sizeof(Key)},
                             {entries, distinct_of(entries, set_.items.size()), tables[1], sizeof(Key)}};
  add_batches(plan, parts, step, device, "model.negatives");
  plan.push_back({"gradients of a step", bpr_step_bytes(config, samples), "train.batch_size or model.negatives"});
  if (!has("valid") && !has("test")) return plan;
  plan.push_back({"evaluation: scores of users", recommendation_bytes(set_, tables[0].dim)});
  plan.push_back({"evaluation: all items", set_.items.size() * row_stride(tables[0].dim) * sizeof(float)});
  return plan;
}

std::unique_ptr<Task> InteractionData::make_task(Config const& config, TaskContext const& context) const {
  return std::make_unique<BprTask>(set_, config, context.schedule_steps);
}

}  // namespace gpups::trainer
