// SPDX-License-Identifier: Apache-2.0
#include "trainer/export_run.hpp"

#include <fmt/format.h>

#include <string>

#include "trainer/atomic_folder.hpp"
#include "trainer/click/saved_clicks.hpp"
#include "trainer/graph/entity_matrix.hpp"
#include "trainer/graph/graph_task.hpp"
#include "trainer/ratings/saved_ratings.hpp"
#include "trainer/saved_model.hpp"
#include "trainer/saved_run.hpp"
#include "trainer/words/word_data.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;

// Returns a line for each name: its key, a tab and the name.
std::string lines_of(Dictionary const& names) {
  std::string text;
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    text += fmt::format("{}\t{}\n", number(names.keys()[i]), names.name(i));
  }
  return text;
}

// Creates rows, with their initial values, for the names from number `seen` on, which have none.
void create_unseen(Store& store, TableId table, Dictionary const& names, std::size_t seen) {
  std::vector<Key> const keys(names.keys().begin() + static_cast<std::ptrdiff_t>(seen), names.keys().end());
  Stream stream = store.make_stream();
  Matrix<float> const rows = read_rows(stream, store, table, keys);
  store.assign(stream, table, to_device(stream, keys), rows);
}

// Writes the rows of both tables and the name of each key. Names that training has not seen have rows too.
void export_graph(SavedRun const& run, fs::path const& folder, ExportFormat format) {
  Dataset const& data = dynamic_cast<GraphData const&>(*run.data).dataset();
  Session session = open_session(run.saved.config, *run.data, Group::alone(), run.plan());
  wait_restore(session, run.checkpoint);
  create_unseen(session.store, TableId{0}, data.entities, data.seen_entities);
  create_unseen(session.store, TableId{1}, data.relations, data.seen_relations);
  write_folder(folder, [&](fs::path const& beside) {
    session.store.export_rows(beside / "rows", format);
    write_file(beside / "entities.tsv", lines_of(data.entities));
    write_file(beside / "relations.tsv", lines_of(data.relations));
  });
}

// Writes the rows of both tables and the words of the keys, the most frequent first.
void export_words(SavedRun const& run, fs::path const& folder, ExportFormat format) {
  Dictionary const& words = dynamic_cast<WordData const&>(*run.data).corpus().words;
  Session session = open_session(run.saved.config, *run.data, Group::alone(), run.plan());
  wait_restore(session, run.checkpoint);
  write_folder(folder, [&](fs::path const& beside) {
    session.store.export_rows(beside / "rows", format);
    write_file(beside / "words.tsv", lines_of(words));
  });
}

}  // namespace

void export_run(fs::path const& run, std::vector<SettingOverride> const& overrides, fs::path const& folder,
                ExportFormat format) {
  SavedModel const model = open_model(run, overrides);
  std::string const& reader = model.saved.config.data.reader;
  if (reader == "clicks") return SavedClicks(model).write(folder, format);
  if (reader == "ratings") return SavedRatings(model).write(folder, format);
  if (reader == "text") return export_words(open_run(run, overrides), folder, format);
  export_graph(open_run(run, overrides), folder, format);
}

}  // namespace gpups::trainer
