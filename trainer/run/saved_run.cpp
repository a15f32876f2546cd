// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/saved_run.hpp"

#include <fmt/format.h>

#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/input/dictionary.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/step/session.hpp"
#include "trainer/tasks/common/entity_matrix.hpp"
#include "trainer/tasks/common/nearest.hpp"

namespace gpups::trainer {

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

std::string nearest_in_run(SavedRun const& run, std::vector<std::string> const& names, std::size_t count) {
  NamedRows const named = run.data->named_rows();
  GPUPS_REQUIRE(named.names != nullptr,
                "{} has no entities, words, nodes or items (nearest needs names): give the folder of a run on a "
                "knowledge graph, a text, a network or interactions",
                run.folder.string());
  Dictionary const& entities = *named.names;
  std::size_t const seen = named.seen;
  std::vector<std::uint32_t> queries;
  for (std::string const& name : names) {
    queries.push_back(find_entity(entities, name));
    GPUPS_REQUIRE(queries.back() < seen,
                  "the {} '{}' is not in the training data (its row has not been trained, so its neighbours mean "
                  "nothing): give another name",
                  entities.kind(), name);
  }

  Session session = open_session(run.saved.config, *run.data, Group::alone(), run.plan());
  wait_restore(session, run.checkpoint);
  Stream stream = session.store.make_stream();
  std::vector<Key> const keys(entities.keys().begin(), entities.keys().begin() + static_cast<std::ptrdiff_t>(seen));
  Matrix<float> const rows = read_rows(stream, session.store, TableId{0}, keys);
  std::vector<float> host = to_host(stream, rows.view().flat());
  MatrixView<float const> const on_host(host.data(), rows.rows(), rows.columns(), rows.stride());

  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += names[i] + "\n";
    for (Neighbour const& n : nearest(on_host, queries[i], count)) {
      text += fmt::format("  {:.3f}  {}\n", n.cosine, entities.name(n.entity));
    }
  }
  return text;
}

}  // namespace gpups::trainer
