// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/evaluate.hpp"

#include <algorithm>

#include "kernels/base/nvtx.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "trainer/base/long_loop.hpp"
#include "trainer/tasks/common/nearest.hpp"
#include "trainer/tasks/common/target_ranks.hpp"
#include "trainer/tasks/graph/graph_kind.hpp"
#include "trainer/tasks/graph/reciprocal.hpp"

namespace gpups::trainer {
namespace {

std::vector<Triple> sample(std::span<Triple const> triples, EvaluateOptions const& options) {
  std::size_t const most = options.samples_max;
  std::size_t const count = most == 0 ? triples.size() : std::min(most, triples.size());
  std::vector<Triple> chosen;
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(triples[options.spread ? i * triples.size() / count : i]);
  return chosen;
}

}  // namespace

std::uint64_t score_bytes(std::size_t entities, std::size_t triples, EvaluateOptions const& options,
                          std::size_t ranks) {
  std::size_t const queries = options.samples_max == 0 ? triples : std::min(options.samples_max, triples);
  std::size_t const block = score_rows_at_once(entities), blocks = (queries + block - 1) / block;
  return std::min(block, queries) * row_stride(entities) * sizeof(float) * std::min(blocks, ranks) / ranks;
}

EvaluateOptions evaluate_options(Config const& config) {
  GraphSettings const& graph = config.settings<GraphSettings>();
  return {.samples_max = static_cast<std::size_t>(graph.samples_max),
          .spread = graph.sample == "spread",
          .hits = config.eval.hits,
          .reciprocal = graph.reciprocal};
}

Evaluator::Evaluator(Dataset const& data, GraphModel const& model, EvaluateOptions const& options)
    : data_(data),
      model_(model),
      options_(options),
      objects_({data.train, data.valid, data.test}, true),
      subjects_({data.train, data.valid, data.test}, false) {}

RankingMetrics Evaluator::wait_evaluate(Stream& stream, Store& store, std::span<Triple const> split) const {
  kernels::NvtxRange const range("evaluate");
  Matrix<float> const entities = read_rows(stream, store, TableId{0}, data_.entities.keys());
  std::vector<Key> relation_keys = data_.relations.keys();
  if (options_.reciprocal) {
    std::vector<Key> const inverses = inverse_keys(data_.relations, data_.relations.size());
    relation_keys.insert(relation_keys.end(), inverses.begin(), inverses.end());
  }
  Matrix<float> const relations = read_rows(stream, store, TableId{1}, relation_keys);

  std::vector<Triple> const triples = sample(split, options_);
  RankingSums sums(options_.hits);
  std::size_t const block = score_rows_at_once(entities.rows());
  auto const ranks = static_cast<std::size_t>(store.ranks());
  LongLoop progress("evaluating", static_cast<double>(triples.size()), number(store.rank()) != 0);
  for (std::size_t b = number(store.rank()); b * block < triples.size(); b += ranks) {
    store.throw_if_failed();  // checked here because a block takes long
    if (progress.stops(static_cast<double>(b * block))) break;
    std::size_t const count = std::min(block, triples.size() - b * block);
    rank(stream, entities, relations, std::span(triples).subspan(b * block, count), sums);
  }
  store.wait_allreduce(sums.values());
  RankingMetrics metrics = sums.metrics();
  metrics.triples = split.size();
  metrics.unseen = data_.count_unseen(triples);
  return metrics;
}

void Evaluator::rank(Stream& stream, MatrixView<float const> entities, MatrixView<float const> relations,
                     std::span<Triple const> triples, RankingSums& sums) const {
  std::size_t const block = score_rows_at_once(entities.rows());
  for (std::size_t first = 0; first < triples.size(); first += block) {
    auto const some = triples.subspan(first, std::min(block, triples.size() - first));
    rank_side(stream, entities, relations, some, true, sums);
    rank_side(stream, entities, relations, some, false, sums);
  }
}

void Evaluator::rank_side(Stream& stream, MatrixView<float const> entities, MatrixView<float const> relations,
                          std::span<Triple const> triples, bool objects, RankingSums& sums) const {
  std::size_t const queries = triples.size();
  bool const inverse = options_.reciprocal && !objects;  // the subject is then the object of the inverse relation
  auto const first_relation = inverse ? static_cast<std::uint32_t>(data_.relations.size()) : 0;
  std::vector<std::uint32_t> known, relation;
  QueryTargets answers;
  for (Triple const& t : triples) {
    known.push_back(objects ? t.subject : t.object);
    relation.push_back(first_relation + t.relation);
    answers.targets.push_back(objects ? t.object : t.subject);
    auto const all = (objects ? objects_ : subjects_).of(known.back(), t.relation);
    answers.left_out.insert(answers.left_out.end(), all.begin(), all.end());
    answers.offsets.push_back(static_cast<std::uint32_t>(answers.left_out.size()));
  }

  Matrix<float> const known_rows(stream.device(), queries, entities.columns());
  Matrix<float> const relation_rows(stream.device(), queries, relations.columns());
  auto const known_there = to_device(stream, known), relation_there = to_device(stream, relation);
  for (auto const& rows : {known_rows.view(), relation_rows.view()}) {
    memory::fill_bytes(stream, rows.data(), 0, rows.flat().bytes());  // zeros the padding
  }
  kernels::gather_matrix_rows(stream, {.from = entities, .positions = known_there, .to = known_rows});
  kernels::gather_matrix_rows(stream, {.from = relations, .positions = relation_there, .to = relation_rows});
  Matrix<float> const scores(stream.device(), queries, entities.rows());
  model_.score_all(stream, objects || inverse, known_rows, relation_rows, entities, scores);

  for (TargetRank const& rank : wait_target_ranks(stream, scores, answers)) sums.add(rank.better, rank.equal);
}

}  // namespace gpups::trainer
