// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/saved_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/edit_distance.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/config/task_kind.hpp"
#include "trainer/input/dictionary.hpp"
#include "trainer/input/line_reader.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/step/session.hpp"
#include "trainer/tasks/common/nearest.hpp"

namespace gpups::trainer {
namespace {

// Returns the number of empty lines of a text file; 0 for other files, and for those that can be read once.
std::uint64_t empty_lines(std::filesystem::path const& file) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(file, unknown)) return 0;
  std::uint64_t empty = 0;
  try {
    LineReader reader(file);
    for (std::string_view line; reader.next(line);) empty += trim_blanks(line).empty() ? 1 : 0;
  } catch (Error const&) {
    return 0;  // binary samples have no lines
  }
  return empty;
}

}  // namespace

SavedRun open_run(std::filesystem::path const& folder, std::vector<SettingOverride> const& overrides, TaskKinds kinds) {
  SavedModel const model = open_model(folder, overrides, kinds);
  SavedRun run{
      .folder = folder, .checkpoint = model.checkpoint, .saved = model.saved, .data = read_data(model.saved.config)};
  require_same_run(run.saved, run.saved.config, run.data->digest(), model.checkpoint);
  return run;
}

Metrics wait_evaluate_run(SavedRun const& run, Group const& group, std::string const& split) {
  Config const& config = run.saved.config;
  GPUPS_REQUIRE(run.data->has(split),
                "the data has no {} split (there are no samples to predict): choose another with --split", split);
  Session session = open_session(config, *run.data, group, run.plan());
  wait_restore(session, run.checkpoint);
  wait_check_consistency(session.store, config, run.saved.state.data_digest);
  Stream stream = session.store.make_stream();
  return session.task->wait_evaluate(stream, session.store, split);
}

std::string nearest_in_run(SavedRun const& run, std::vector<QueriedName> const& names, std::size_t count,
                           std::vector<std::string>& notices) {
  NamedRows const named = run.data->named_rows();
  GPUPS_REQUIRE(named.names != nullptr,
                "{} has no entities, words, nodes or items (nearest needs names): give the folder of a run on a "
                "knowledge graph, a text, a network or interactions",
                run.folder.string());
  Dictionary const& entities = *named.names;
  std::vector<std::string> later;  // said below
  find_trained(entities, named.seen, names, later);

  Session session = open_session(run.saved.config, *run.data, Group::alone(), run.plan());
  wait_restore(session, run.checkpoint);
  Stream stream = session.store.make_stream();
  std::vector<bool> const have = wait_have_rows(stream, session.store, TableId{0}, entities.keys());
  std::vector<Key> keys;
  std::vector<bool> trained(entities.size());
  std::vector<std::uint32_t> numbers, place_of(entities.size());  // of the rows, and back
  for (std::uint32_t n = 0; n < named.seen; ++n) {
    trained[n] = have[n];
    if (!have[n]) continue;
    place_of[n] = static_cast<std::uint32_t>(numbers.size());
    numbers.push_back(n);
    keys.push_back(entities.keys()[n]);
  }
  std::vector<std::uint32_t> const queries =
      find_trained(entities, trained, names, notices, "was not used in training");
  Matrix<float> const rows = read_rows(stream, session.store, TableId{0}, keys);
  std::vector<float> host = to_host(stream, rows.view().flat());
  MatrixView<float const> const on_host(host.data(), rows.rows(), rows.columns(), rows.stride());

  std::string text;
  for (std::uint32_t const query : queries) {
    text += fmt::format("{}\n", entities.name(query));
    for (Neighbour const& n : nearest(on_host, place_of[query], count)) {
      text += fmt::format("  {:.3f}  {}\n", n.cosine, entities.name(numbers[n.entity]));
    }
  }
  return text;
}

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
  throw Error(
      fmt::format("--format is '{}' (it is not a format of export): {}", name, suggestion(name, names, "use one of")));
}

std::vector<std::string> export_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                                    std::filesystem::path const& folder, ModelFormat format, TaskKinds kinds) {
  SavedModel const model = open_model(run, overrides, kinds);
  std::vector<std::string> notices;
  if (model.saved.config.task.kind->export_model(model, folder, format, notices)) return notices;
  GPUPS_REQUIRE(
      !is_word2vec(format),
      "{} has no vectors of words, nodes or items (the formats of word2vec have nothing else): use --format npy",
      run.string());
  throw Error(fmt::format("{} has a model of kind {} (such models are not exported): read it with gpu_train only",
                          run.string(), model.saved.config.model.name));
}

void predict_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                 std::filesystem::path const& file, std::vector<std::string>& notices,
                 std::function<void(std::span<float const>)> const& take, TaskKinds kinds) {
  SavedModel const model = open_model(run, overrides, kinds);
  Config const& config = model.saved.config;
  std::uint64_t predictions = 0;
  auto const count_and_take = [&](std::span<float const> some) {
    predictions += some.size();
    take(some);
  };
  if (config.task.kind->predict(model, file, notices, count_and_take)) {
    if (predictions == 0) {
      notices.push_back(
          fmt::format("{} has nothing to predict (a first line without numbers is a heading)", file.string()));
    } else if (std::uint64_t const empty = empty_lines(file); empty > 0) {
      notices.push_back(fmt::format("skipped {} of {}: they have no lines in the output, so later lines move up",
                                    with_count(empty, "empty line"), file.string()));
    }
    return;
  }
  throw Error(
      fmt::format("{} has a model of kind {} (it predicts neither clicks nor ratings): give the folder of a run "
                  "on click data or on ratings",
                  run.string(), config.model.name));
}

std::string recommend_in_run(std::filesystem::path const& run, std::vector<SettingOverride> const& overrides,
                             std::vector<QueriedName> const& users, std::size_t count,
                             std::vector<std::string>& notices, TaskKinds kinds) {
  SavedModel const model = open_model(run, overrides, kinds);
  std::optional<std::string> const text = model.saved.config.task.kind->recommend(model, users, count, notices);
  GPUPS_REQUIRE(text, "{} has no users and items (recommend needs both): give the folder of a run on interactions",
                run.string());
  return *text;
}

std::vector<QueriedName> read_users(std::filesystem::path const& file) {
  std::vector<QueriedName> users;
  LineReader reader(file);
  for (std::string_view user; reader.next(user);) {
    user = trim_blanks(user);
    if (user.empty()) continue;
    users.push_back({std::string(user), reader.position()});
  }
  GPUPS_REQUIRE(!users.empty(), "{} has no users (each line is one): check the file", file.string());
  return users;
}

}  // namespace gpups::trainer
