// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/export_run.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/atomic_folder.hpp"
#include "trainer/base/edit_distance.hpp"
#include "trainer/run/saved_run.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/tasks/click/saved_clicks.hpp"
#include "trainer/tasks/graph/entity_matrix.hpp"
#include "trainer/tasks/graph/graph_task.hpp"
#include "trainer/tasks/graph/reciprocal.hpp"
#include "trainer/tasks/ratings/saved_ratings.hpp"
#include "trainer/tasks/words/named_vectors.hpp"
#include "trainer/tasks/words/skip_gram_task.hpp"
#include "trainer/tasks/words/word2vec_file.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;

ExportFormat array_format(ModelFormat format) {
  return format == ModelFormat::kNpy ? ExportFormat::kNpy : ExportFormat::kFlat;
}

bool is_word2vec(ModelFormat format) {
  return format == ModelFormat::kWord2vec || format == ModelFormat::kWord2vecBinary;
}

// Returns a line for each name: its key, a tab and the name.
std::string lines_of(Dictionary const& names, std::vector<Key> const& keys) {
  std::string text;
  for (std::uint32_t i = 0; i < names.size(); ++i) text += fmt::format("{}\t{}\n", number(keys[i]), names.name(i));
  return text;
}

// Returns the text of model.json: what the rows belong to, and the whole configuration.
std::string description(SavedRun const& run) {
  Config const& config = run.saved.config;
  nlohmann::ordered_json const json{{"model", config.model.name},
                                    {"steps", run.saved.state.clock},
                                    {"dim", config.model.dim},
                                    {"configuration", resolved(config)}};
  return json.dump(1) + "\n";
}

// Creates rows, with their initial values, for the keys from number `seen` on, which have none.
void create_unseen(Store& store, TableId table, std::vector<Key> const& all, std::size_t seen) {
  std::vector<Key> const keys(all.begin() + static_cast<std::ptrdiff_t>(seen), all.end());
  Stream stream = store.make_stream();
  Matrix<float> const rows = read_rows(stream, store, table, keys);
  store.assign(stream, table, to_device(stream, keys), rows);
}

// Writes the rows of both tables and the name of each key. Names that training has not seen have rows too.
void export_graph(SavedRun const& run, fs::path const& folder, ExportFormat format) {
  Dataset const& data = dynamic_cast<GraphData const&>(*run.data).dataset();
  Session session = open_session(run.saved.config, *run.data, Group::alone(), run.plan());
  wait_restore(session, run.checkpoint);
  create_unseen(session.store, TableId{0}, data.entities.keys(), data.seen_entities);
  create_unseen(session.store, TableId{1}, data.relations.keys(), data.seen_relations);
  bool const reciprocal = run.saved.config.model.reciprocal;
  std::vector<Key> const inverses = inverse_keys(data.relations, reciprocal ? data.relations.size() : 0);
  if (reciprocal) create_unseen(session.store, TableId{1}, inverses, data.seen_relations);
  write_folder(folder, [&](fs::path const& beside) {
    session.store.export_rows(beside / "rows", format);
    write_file(beside / "entities.tsv", lines_of(data.entities, data.entities.keys()));
    write_file(beside / "relations.tsv", lines_of(data.relations, data.relations.keys()));
    if (reciprocal) write_file(beside / "inverse_relations.tsv", lines_of(data.relations, inverses));
    write_file(beside / "model.json", description(run));
  });
}

// Writes the rows of both tables and the names of the keys, or one file of word2vec.
void export_vectors(SavedRun const& run, fs::path const& folder, ModelFormat format) {
  auto const& data = dynamic_cast<NamedVectors const&>(*run.data);
  Dictionary const& names = data.names();
  Dictionary const* const others = data.other_names();
  Session session = open_session(run.saved.config, *run.data, Group::alone(), run.plan());
  wait_restore(session, run.checkpoint);
  if (!is_word2vec(format)) {
    return write_folder(folder, [&](fs::path const& beside) {
      session.store.export_rows(beside / "rows", array_format(format));
      for (Dictionary const* of : {&names, others}) {
        if (of != nullptr) write_file(beside / (of->kind() + "s.tsv"), lines_of(*of, of->keys()));
      }
      write_file(beside / "model.json", description(run));
    });
  }
  Stream stream = session.store.make_stream();
  Matrix<float> const rows = read_rows(stream, session.store, kVectorsTable, names.keys());
  std::vector<float> const host = to_host(stream, rows.view().flat());
  bool const binary = format == ModelFormat::kWord2vecBinary;
  write_folder(folder, [&](fs::path const& beside) {
    write_word2vec(beside / (binary ? "vectors.bin" : "vectors.txt"), names,
                   {host.data(), rows.rows(), rows.columns(), rows.stride()}, binary);
  });
}

}  // namespace

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
                ModelFormat format) {
  SavedModel const model = open_model(run, overrides);
  std::string const& reader = model.saved.config.data.reader;
  if (reader == "text" || reader == "edges" || reader == "interactions") {
    return export_vectors(open_run(run, overrides), folder, format);
  }
  GPUPS_REQUIRE(
      !is_word2vec(format),
      "{} has no vectors of words, nodes or items (the formats of word2vec have nothing else): use --format npy",
      run.string());
  if (reader == "clicks") return SavedClicks(model).write(folder, array_format(format));
  if (reader == "ratings") return SavedRatings(model).write(folder, array_format(format));
  export_graph(open_run(run, overrides), folder, array_format(format));
}

}  // namespace gpups::trainer
