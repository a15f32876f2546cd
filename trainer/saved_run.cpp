// SPDX-License-Identifier: Apache-2.0
#include "trainer/saved_run.hpp"

#include <fmt/format.h>

#include <utility>

#include "kernels/check.hpp"
#include "trainer/entity_matrix.hpp"
#include "trainer/evaluate.hpp"
#include "trainer/nearest.hpp"
#include "trainer/reader.hpp"
#include "trainer/run_folder.hpp"
#include "trainer/session.hpp"

namespace gpups::trainer {

SavedRun open_run(std::filesystem::path const& folder, std::vector<Override> const& overrides) {
  auto const checkpoint = folder / "checkpoint";
  GPUPS_REQUIRE(has_checkpoint(folder), "{} has no checkpoint (there is nothing to load): name the folder of a run",
                folder.string());
  Saved saved = from_blobs(read_blobs(checkpoint), checkpoint);
  Config const config = parse_config(resolved(saved.config), checkpoint.string(), folder, overrides);
  SavedRun run{.folder = folder, .saved = {config, saved.cursor}, .data = read_dataset(config.data)};
  require_same_run(saved, config, run.data.digest(), checkpoint);
  return run;
}

RankingMetrics wait_evaluate_run(SavedRun const& run, Group const& group, std::string const& split) {
  Config const& config = run.saved.config;
  auto const& triples = run.data.split(split);
  GPUPS_REQUIRE(!triples.empty(), "the data has no {} split (there is nothing to rank): choose another with --split",
                split);
  Session session = open_session(config, run.data, group, run.saved.cursor.schedule_steps);
  session.store.restore(run.checkpoint());
  wait_require_agreement(session.store, config, run.saved.cursor.data_digest);
  Stream stream = session.store.make_stream();
  Evaluator const evaluator(run.data, *session.model, evaluate_options(config.eval));
  return evaluator.wait_evaluate(stream, session.store, triples);
}

std::string nearest_in_run(SavedRun const& run, std::vector<std::string> const& names, std::size_t count) {
  std::vector<std::uint32_t> asked;
  for (std::string const& name : names) asked.push_back(find_entity(run.data.entities, name));

  Session session = open_session(run.saved.config, run.data, Group::alone(), run.saved.cursor.schedule_steps);
  session.store.restore(run.checkpoint());
  Stream stream = session.store.make_stream();
  Matrix<float> const rows = read_rows(stream, session.store, TableId{0}, run.data.entities.keys());
  std::vector<float> host = to_host(stream, rows.view().flat());
  MatrixView<float const> const on_host(host.data(), rows.rows(), rows.columns(), rows.stride());

  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += names[i] + "\n";
    for (Neighbour const& n : nearest(on_host, asked[i], count)) {
      text += fmt::format("  {:.3f}  {}\n", n.cosine, run.data.entities.name(n.entity));
    }
  }
  return text;
}

}  // namespace gpups::trainer
