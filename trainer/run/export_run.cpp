// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/export_run.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/edit_distance.hpp"
#include "trainer/saved/saved_model.hpp"

namespace gpups::trainer {
namespace fs = std::filesystem;

ModelFormat model_format(std::string_view name) {
  constexpr std::pair<std::string_view, ModelFormat> kFormats[] = {{"npy", ModelFormat::kNpy},
                                                                   {"flat", ModelFormat::kFlat},
                                                                   {"word2vec", ModelFormat::kWord2vec},
                                                                   {"word2vec-binary", ModelFormat::kWord2vecBinary}};
  std::vector<std::string> names;
  for (auto const& [known, format] : kFormats) {
    if (name == known) return format;
    names.emplace_back(known);
  }
  throw Error(fmt::format("--format is '{}' (it is not a format of export): use {}; did you mean '{}'?", name,
                          fmt::join(names, ", "), nearest_word(std::string(name), names)));
}

void export_run(fs::path const& run, std::vector<SettingOverride> const& overrides, fs::path const& folder,
                ModelFormat format, TaskKinds kinds) {
  SavedModel const model = open_model(run, overrides, kinds);
  GPUPS_REQUIRE(
      model.saved.config.task.kind->export_model(model, folder, format),
      "{} has no vectors of words, nodes or items (the formats of word2vec have nothing else): use --format npy",
      run.string());
}

}  // namespace gpups::trainer
