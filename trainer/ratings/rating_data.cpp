// SPDX-License-Identifier: Apache-2.0
#include "trainer/ratings/rating_data.hpp"

#include <fmt/format.h>

#include "trainer/progress.hpp"
#include "trainer/ratings/rating_task.hpp"

namespace gpups::trainer {

std::vector<std::string> rating_model_names() { return {"factorization"}; }

std::unique_ptr<Data const> read_rating_data(Config const& config) {
  return std::make_unique<RatingData>(read_ratings(config.data));
}

std::string RatingData::summary() const {
  return fmt::format("{}, {}; {} to learn from, {} for validation, {} for the test", counted(set_.known_rows, "row"),
                     counted(set_.known_columns, "column"), counted(set_.train.size(), "rating"), set_.valid.size(),
                     set_.test.size());
}

nlohmann::json RatingData::counts() const { return {{"rows", set_.known_rows}, {"columns", set_.known_columns}}; }

std::unique_ptr<Task> RatingData::make_task(Config const& config, TaskPlace const& place) const {
  return std::make_unique<RatingTask>(set_, config, place.schedule_steps);
}

}  // namespace gpups::trainer
