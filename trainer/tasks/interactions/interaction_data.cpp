// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/interactions/interaction_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/tasks/interactions/bpr_task.hpp"
#include "trainer/tasks/interactions/ials_task.hpp"
#include "trainer/tasks/interactions/interaction_kind.hpp"

namespace gpups::trainer {
namespace {

// A sample is a training interaction.
class BprData : public InteractionData {
 public:
  explicit BprData(InteractionSet of_all) : InteractionData(std::move(of_all)) {
    for (std::uint32_t user = 0; user < set().known_users; ++user) {
      GPUPS_REQUIRE(
          set().train.of(user).size() < set().known_items,
          "user {} chose every item (bpr draws negatives among the others): remove the user, or set model.name "
          "= \"ials\"",
          set().users.name(user));
    }
  }

  std::uint64_t samples() const override { return set().train.size(); }
  std::string_view noun() const override { return "interaction"; }

  SampleRows sample_rows() const override {
    auto const known = [](Dictionary const& names, std::size_t count) {
      return std::vector<Key>(names.keys().begin(), names.keys().begin() + static_cast<std::ptrdiff_t>(count));
    };
    SampleRows rows{.graph = {.rows = static_cast<std::uint32_t>(set().known_users + set().known_items)},
                    .tables = {{kUsersTable, known(set().users, set().known_users)},
                               {kItemsTable, known(set().items, set().known_items)}}};
    for (Interaction const& pair : set().train.pairs()) {
      std::uint32_t const read[] = {pair.user, static_cast<std::uint32_t>(set().known_users + pair.item)};
      rows.graph.add(read);
    }
    return rows;
  }

  MemoryPlan memory_plan(Config const& config, Device device, StepSizes const& step) const override {
    auto const tables = recommender_tables(set(), config, 1);
    std::size_t const users = step.samples,
                      items = users * static_cast<std::size_t>(1 + config.settings<InteractionSettings>().negatives);
    MemoryPlan plan = plan_of_set(config);
    add_placement(plan, config, set().train.size(), 2 * set().train.size(), set().known_users + set().known_items);
    BatchPart const parts[] = {{users, distinct_of(users, set().known_users), tables[1], sizeof(Key)},
                               {items, distinct_of(items, set().items.size()), tables[0], sizeof(Key)}};
    add_batches(plan, parts, step, device, "model.negatives");
    plan.push_back({"gradients of a step", bpr_step_bytes(config, users), "train.batch_size or model.negatives"});
    return plan;
  }

  std::unique_ptr<Task> make_task(Config const& config, TaskContext const& context) const override {
    return std::make_unique<BprTask>(set(), config, context.schedule_steps);
  }
};

// A sample is a row to solve.
class IalsData : public InteractionData {
 public:
  IalsData(InteractionSet of_all, std::int64_t batch_size)
      : InteractionData(std::move(of_all)), samples_(set(), batch_size) {}

  std::uint64_t samples() const override { return samples_.count(); }
  std::string_view noun() const override { return "row"; }
  bool is_shuffled() const override { return false; }

  MemoryPlan memory_plan(Config const& config, Device device, StepSizes const& step) const override {
    auto const tables = ials_tables(set(), config);
    MemoryPlan plan = plan_of_set(config);
    plan.push_back({.what = "interactions by item", .bytes = samples_.bytes(), .on_host = true, .taken = true});
    std::size_t const most = std::max(set().known_users, set().known_items), rows = std::min(step.samples, most);
    auto const read = static_cast<std::size_t>(samples_.most_of(rows));
    BatchPart const parts[] = {{rows, rows, tables[0], sizeof(Key) + sizeof(std::uint32_t)},
                               {read, distinct_of(read, most), tables[1], sizeof(Key) + sizeof(std::uint32_t)}};
    add_batches(plan, parts, step, device, "train.batch_size");
    plan.push_back({"Gramian of users or items", gramian_bytes(config), "model.dim"});
    plan.push_back({"changes of a step", ials_step_bytes(config, rows, read), "train.batch_size"});
    return plan;
  }

  std::unique_ptr<Task> make_task(Config const& config, TaskContext const&) const override {
    return std::make_unique<IalsTask>(set(), samples_, config);
  }

 private:
  IalsSamples samples_;
};

}  // namespace

std::unique_ptr<InteractionData const> read_interaction_data(Config const& config) {
  InteractionSet set = read_interactions(config.data);
  if (config.model.name == "ials") return std::make_unique<IalsData>(std::move(set), config.train.batch_size);
  return std::make_unique<BprData>(std::move(set));
}

std::string InteractionData::summary() const {
  return fmt::format("{}, {}; {} for training, {} for validation, {} for the test",
                     with_count(set_.users.size(), "user"), with_count(set_.items.size(), "item"),
                     with_count(set_.train.size(), "interaction"), set_.valid.size(), set_.test.size());
}

nlohmann::json InteractionData::counts() const { return {{"users", set_.users.size()}, {"items", set_.items.size()}}; }

MemoryPlan InteractionData::plan_of_set(Config const& config) const {
  MemoryPlan plan;
  plan.push_back(
      {.what = "the data",
       .bytes = set_.users.bytes() + set_.items.bytes() + set_.train.bytes() + set_.valid.bytes() + set_.test.bytes(),
       .on_host = true,
       .taken = true});
  if (!has("valid") && !has("test")) return plan;
  auto const dim = static_cast<std::size_t>(config.model.dim);
  plan.push_back({"evaluation: scores of users", recommendation_bytes(set_, dim)});
  plan.push_back({"evaluation: all items", set_.items.size() * row_stride(dim) * sizeof(float)});
  return plan;
}

}  // namespace gpups::trainer
