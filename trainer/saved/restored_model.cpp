// SPDX-License-Identifier: Apache-2.0
#include "trainer/saved/restored_model.hpp"

#include <nlohmann/json.hpp>

#include "kernels/base/assert.hpp"

namespace gpups::trainer {
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
