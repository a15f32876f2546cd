// SPDX-License-Identifier: Apache-2.0
// One training step through a store: rows move against the gradient of the mean loss, computed by the definition.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/model_fixture.hpp"

namespace gpups::test::model_step_test {
namespace {

// Returns the current rows of a table.
Rows rows_of(Store& store, TableId table, std::vector<Key> const& keys, std::size_t dim) {
  Stream stream = store.make_stream();
  Matrix<float> const values(Device::host(), keys.size(), dim);
  store.lookup(stream, table, View<Key const>(keys), values, {});
  Rows rows;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (float x : values.row(i)) rows[number(keys[i])].push_back(x);
  }
  return rows;
}

// The parameters are the name of the model and the sampling.
class ModelStep : public testing::TestWithParam<std::tuple<char const*, char const*>> {};
INSTANTIATE_TEST_SUITE_P(All, ModelStep,
                         testing::Combine(testing::Values("complex", "rescal", "transe", "rotate"),
                                          testing::Values("triple", "shared")));

TEST_P(ModelStep, MovesRowsAgainstTheGradient) {
  GraphModelOptions options;
  options.name = std::get<0>(GetParam()), options.sampling = std::get<1>(GetParam()), options.loss = "softmax";
  options.dim = options.name == "rescal" ? 20 : 40;
  options.initializer.scale = 0.5F;
  options.optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 0.5F};
  std::size_t const samples = 6;
  Vocabulary const vocabulary = make_vocabulary(9, 3);
  auto const model = trainer::make_graph_model(options, vocabulary);
  Store store(Group::alone(), {});
  for (TableOptions const& table : model->tables()) store.add_table(table);
  Stream stream = store.make_stream();
  Rows const entities = rows_of(store, TableId{0}, vocabulary.entities, options.dim);
  Rows const relations = rows_of(store, TableId{1}, vocabulary.relations, relation_dim(options));

  Batch batch = make_batch(samples, 2, 9, 3);
  batch.clock = Clock{0};
  GraphEntries const work = model->prepare(stream, batch);
  PreparedBatch const prepared = store.prepare(stream, batch.clock, work.tables(), samples);
  store.wait_ready(prepared);
  Matrix<float> const pulled[] = {{Device::host(), prepared.rows(0), options.dim},
                                  {Device::host(), prepared.rows(1), relation_dim(options)}};
  MatrixView<float> const rows[] = {pulled[0], pulled[1]};
  MatrixView<float const> const read[] = {pulled[0], pulled[1]};
  store.pull(stream, prepared, rows);
  GraphGradients gradients;
  auto const losses = model->forward_backward(stream, work, prepared, read, gradients);
  double const loss = static_cast<double>(std::accumulate(losses.begin(), losses.end(), std::int64_t{0})) * 0x1p-30;
  store.push(stream, prepared, gradients.tables(work));
  store.advance_clock();
  store.wait_applied();

  auto const triples = oracle_triples(options, vocabulary, batch, work);
  EXPECT_NEAR(loss, oracle_loss(options, entities, relations, triples), 1e-4);
  for (bool of_relations : {false, true}) {
    Rows const gradient = oracle_gradients(options, entities, relations, triples, of_relations);
    Rows const& before = of_relations ? relations : entities;
    Rows const after =
        rows_of(store, TableId{of_relations ? 1U : 0U}, of_relations ? vocabulary.relations : vocabulary.entities,
                of_relations ? relation_dim(options) : options.dim);
    for (auto const& [key, row] : after) {
      for (std::size_t k = 0; k < row.size(); ++k) {
        ASSERT_NEAR(row[k], before.at(key)[k] - 0.5 * gradient.at(key)[k] / samples, 1e-5) << key << ", " << k;
      }
    }
  }
}

}  // namespace
}  // namespace gpups::test::model_step_test
