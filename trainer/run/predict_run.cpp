// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/predict_run.hpp"

#include <fmt/format.h>

#include "trainer/saved/saved_model.hpp"
#include "trainer/tasks/click/saved_clicks.hpp"
#include "trainer/tasks/ratings/saved_ratings.hpp"

namespace gpups::trainer {

void predict_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                 std::filesystem::path const& file, std::vector<std::string>& notices,
                 std::function<void(std::span<float const>)> const& take) {
  SavedModel const model = open_model(run, overrides);
  Config const& config = model.saved.config;
  if (config.data.reader == "clicks") return SavedClicks(model).predict(file, notices, take);
  if (config.data.reader == "ratings") return SavedRatings(model).predict(file, notices, take);
  throw Error(
      fmt::format("{} has a model of kind {} (it predicts neither clicks nor ratings): give the folder of a run "
                  "on click data or on ratings",
                  run.string(), config.model.name));
}

}  // namespace gpups::trainer
