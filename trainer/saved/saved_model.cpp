// SPDX-License-Identifier: Apache-2.0
#include "trainer/saved/saved_model.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "kernels/base/assert.hpp"
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

namespace {

Session session_of(SavedModel const& model, Data const& data) {
  SavedState const& saved = model.saved;
  require_same_run(saved, saved.config, data.digest(), model.checkpoint);
  Session session =
      open_session(saved.config, data, Group::alone(), {saved.state.microbatches, saved.state.schedule_steps});
  wait_restore(session, model.checkpoint);
  return session;
}

}  // namespace

RestoredModel::RestoredModel(SavedModel const& model, Data const& data) : session_(session_of(model, data)) {}

bool is_word2vec(ModelFormat format) {
  return format == ModelFormat::kWord2vec || format == ModelFormat::kWord2vecBinary;
}

ExportFormat array_format(ModelFormat format) {
  GPUPS_ASSERT(!is_word2vec(format));
  return format == ModelFormat::kNpy ? ExportFormat::kNpy : ExportFormat::kFlat;
}

std::string description_of(SavedModel const& model) {
  Config const& config = model.saved.config;
  nlohmann::ordered_json const json{{"model", config.model.name},
                                    {"steps", model.saved.state.clock},
                                    {"dim", config.model.dim},
                                    {"configuration", resolved(config)}};
  return json.dump(1) + "\n";
}

}  // namespace gpups::trainer
