// SPDX-License-Identifier: Apache-2.0
#include "trainer/saved_model.hpp"

#include <fmt/format.h>

#include "kernels/check.hpp"
#include "trainer/run_folder.hpp"

namespace gpups::trainer {

namespace fs = std::filesystem;

fs::path model_checkpoint(fs::path const& run) {
  GPUPS_REQUIRE(has_checkpoint(run), "{} has no checkpoint (there is no model to load): give the folder of a run",
                run.string());
  fs::path const last = run / kLastCheckpoint;
  TrainerState const state = from_blobs(read_blobs(last), last).state;
  return state.best.step == 0 || state.best.step == state.clock ? last : run / kBestCheckpoint;
}

SavedModel open_model(fs::path const& run, std::vector<SettingOverride> const& overrides) {
  SavedModel model{.run = run, .checkpoint = model_checkpoint(run), .blobs = {}, .saved = {}};
  model.blobs = read_blobs(model.checkpoint);
  model.saved = from_blobs(model.blobs, model.checkpoint);
  Config const now = saved_config(model.saved.config, run, overrides);
  auto const differences = resume_differences(model.saved.config, now);
  if (!differences.empty()) {
    auto const& d = differences.front();
    throw Error(
        fmt::format("{} was trained with {} = {}, and now it is {} (that is another model): leave the setting out",
                    run.string(), d.key, d.a, d.b));
  }
  model.saved.config = now;
  return model;
}

}  // namespace gpups::trainer
