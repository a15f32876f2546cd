// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/predict_run.hpp"

#include <fmt/format.h>

#include <optional>

#include "kernels/base/check.hpp"
#include "trainer/config/task_kind.hpp"
#include "trainer/saved/saved_model.hpp"

namespace gpups::trainer {

void predict_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                 std::filesystem::path const& file, std::vector<std::string>& notices,
                 std::function<void(std::span<float const>)> const& take, TaskKinds kinds) {
  SavedModel const model = open_model(run, overrides, kinds);
  Config const& config = model.saved.config;
  if (config.task.kind->predict(model, file, notices, take)) return;
  throw Error(
      fmt::format("{} has a model of kind {} (it predicts neither clicks nor ratings): give the folder of a run "
                  "on click data or on ratings",
                  run.string(), config.model.name));
}

std::string recommend_in_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                             std::vector<std::string> const& users, std::size_t count, TaskKinds kinds) {
  SavedModel const model = open_model(run, overrides, kinds);
  std::optional<std::string> const text = model.saved.config.task.kind->recommend(model, users, count);
  GPUPS_REQUIRE(text, "{} has no users and items (recommend needs both): give the folder of a run on interactions",
                run.string());
  return *text;
}

}  // namespace gpups::trainer
