// SPDX-License-Identifier: Apache-2.0
#include "trainer/export_run.hpp"

#include <fmt/format.h>

#include <string>

#include "trainer/atomic_folder.hpp"
#include "trainer/click/saved_clicks.hpp"
#include "trainer/graph/graph_task.hpp"
#include "trainer/run_folder.hpp"
#include "trainer/saved_run.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;

bool is_click_model(fs::path const& run) {
  if (!has_checkpoint(run)) return false;  // open_run() throws the error
  return from_blobs(read_blobs(run / "checkpoint"), run / "checkpoint").config.data.reader == "clicks";
}

// Returns a line for each name: its key, a tab and the name.
std::string lines_of(Dictionary const& names) {
  std::string text;
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    text += fmt::format("{}\t{}\n", number(names.keys()[i]), names.name(i));
  }
  return text;
}

// Writes the rows of all tables; for a graph also the name of each key. The keys of ratings are the ids in the data.
void export_tables(SavedRun const& run, fs::path const& folder, ExportFormat format) {
  auto const* const graph = dynamic_cast<GraphData const*>(run.data.get());
  Session session = open_session(run.saved.config, *run.data, Group::alone(), run.plan());
  wait_restore(session, run.checkpoint());
  write_folder(folder, [&](fs::path const& beside) {
    session.store.export_rows(beside / "rows", format);
    if (graph == nullptr) return;
    write_file(beside / "entities.tsv", lines_of(graph->dataset().entities));
    write_file(beside / "relations.tsv", lines_of(graph->dataset().relations));
  });
}

}  // namespace

void export_run(fs::path const& run, std::vector<SettingOverride> const& overrides, fs::path const& folder,
                ExportFormat format) {
  if (is_click_model(run)) return SavedClicks(run, overrides).write(folder, format);
  export_tables(open_run(run, overrides), folder, format);
}

}  // namespace gpups::trainer
