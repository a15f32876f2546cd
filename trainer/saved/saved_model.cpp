// SPDX-License-Identifier: Apache-2.0
#include "trainer/saved/saved_model.hpp"

#include <fmt/format.h>

#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/saved/run_folder.hpp"

namespace gpups::trainer {

namespace fs = std::filesystem;

namespace {

SavedModel read_checkpoint(fs::path const& run, char const* name, TaskKinds kinds) {
  SavedModel model{.run = run, .checkpoint = run / name, .blobs = {}, .saved = {}};
  model.blobs = read_blobs(model.checkpoint);
  model.saved = from_blobs(model.blobs, model.checkpoint, kinds);
  return model;
}

}  // namespace

std::optional<SavedModel> latest_checkpoint(fs::path const& run, TaskKinds kinds) {
  std::optional<SavedModel> latest;
  for (char const* name : {kLastCheckpoint, kBestCheckpoint}) {
    if (!is_checkpoint(run / name)) continue;
    SavedModel model = read_checkpoint(run, name, kinds);
    if (!latest || model.saved.state.clock > latest->saved.state.clock) latest = std::move(model);
  }
  return latest;
}

SavedModel open_model(fs::path const& run, std::vector<SettingOverride> const& overrides, TaskKinds kinds) {
  std::optional<SavedModel> model = latest_checkpoint(run, kinds);
  GPUPS_REQUIRE(model, "{} has no checkpoint (there is no model to load): give the folder of a run", run.string());
  Config const now = saved_config(model->saved.config, run, overrides);
  auto const differences = resume_differences(model->saved.config, now);
  if (!differences.empty()) {
    auto const& d = differences.front();
    throw Error(
        fmt::format("{} was trained with {} = {}, and now it is {} (that is another model): leave the setting out",
                    run.string(), d.key, d.a, d.b));
  }
  if (now.train.keep_best && model->is_not_best()) {
    std::int64_t const step = model->saved.state.best.step;
    bool const there = is_checkpoint(run / kBestCheckpoint);
    if (there) model = read_checkpoint(run, kBestCheckpoint, kinds);
    GPUPS_REQUIRE(there && model->saved.state.clock == step,
                  "{} does not have the model of step {}, the best validation (it was removed or replaced): load the "
                  "last model with --set train.keep_best=false",
                  (run / kBestCheckpoint).string(), step);
  }
  model->saved.config = now;
  return std::move(*model);
}

}  // namespace gpups::trainer
