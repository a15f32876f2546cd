// SPDX-License-Identifier: Apache-2.0
// What all models of implicit feedback share: the tables "items" and "users", whose dot products are scores, and the
// evaluation.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/step/task.hpp"
#include "trainer/tasks/interactions/interaction_set.hpp"
#include "trainer/tasks/interactions/recommendation_metrics.hpp"

namespace gpups::trainer {

inline constexpr TableId kItemsTable{0}, kUsersTable{1};

// Returns the tables, in the order of their ids. schedule_steps: see TaskContext.
std::vector<TableOptions> recommender_tables(InteractionSet const& set, Config const& config,
                                             std::int64_t schedule_steps);

// The task of one rank, without its steps.
class Recommender : public Task {
 public:
  // `set` must outlive this object. tables: items and users.
  Recommender(InteractionSet const& set, Config const& config, std::vector<TableOptions> tables)
      : set_(set), tables_(std::move(tables)), ks_(config.eval.hits) {}

  std::vector<TableOptions> tables() const override { return tables_; }
  // Ranks the whole catalogue for each user of the split, by the model and by popularity.
  Metrics wait_evaluate(Stream& stream, Store& store, std::string_view split) override;

 protected:
  InteractionSet const& set() const { return set_; }

 private:
  RecommendationMetrics const& wait_popularity(Stream& stream, Store& store, std::string const& split);

  InteractionSet const& set_;
  std::vector<TableOptions> tables_;
  std::vector<std::int64_t> ks_;
  std::map<std::string, RecommendationMetrics> popularity_;  // by split, once computed
};

}  // namespace gpups::trainer
