// SPDX-License-Identifier: Apache-2.0
// Ranks of an evaluation, compared with plain loops, for a model with a simple score.
#include "trainer/tasks/graph/evaluate.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>

namespace gpups::trainer::evaluate_test {
namespace {

// The score of (s, r, o) is s[0] * r[0] + 2 * o[0], so there are many ties.
class LineModel final : public GraphModel {
 public:
  std::vector<TableOptions> tables() const override { return {}; }
  GraphEntries prepare(Stream&, TripleBatch const&) const override { return {}; }
  View<std::int64_t const> forward_backward(Stream&, GraphEntries const&, PreparedBatch const&,
                                            std::span<MatrixView<float const> const>, GraphGradients&) const override {
    return {};
  }
  Sizes sizes_of(std::size_t, std::size_t) const override { return {}; }
  void score_all(Stream&, bool objects, MatrixView<float const> known, MatrixView<float const> relations,
                 MatrixView<float const> entities, MatrixView<float> scores) const override {
    for (std::size_t q = 0; q < scores.rows(); ++q) {
      for (std::size_t e = 0; e < scores.columns(); ++e) {
        float const s = objects ? known.row(q)[0] : entities.row(e)[0];
        float const o = objects ? entities.row(e)[0] : known.row(q)[0];
        scores.row(q)[e] = s * relations.row(q)[0] + 2 * o;
      }
    }
  }
};

using Fact = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;

TEST(Evaluator, RanksMatchHandComputation) {
  std::mt19937 random(3);
  Dataset data;
  std::uint32_t const entities = 50, relations = 3;
  std::set<Fact> facts;
  auto const below = [&random](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  auto const draw = [&](std::size_t count) {
    std::vector<Triple> triples;
    for (std::size_t i = 0; i < count; ++i) {
      Triple const t{below(entities), below(relations), below(entities)};
      triples.push_back(t);
      facts.emplace(t.subject, t.relation, t.object);
    }
    return triples;
  };
  data.train = draw(300), data.valid = draw(20), data.test = draw(60);

  Stream stream(Device::host(), 2);
  Matrix<float> const e(Device::host(), entities, 5), r(Device::host(), relations, 5);
  for (std::size_t i = 0; i < entities; ++i) e.row(i)[0] = static_cast<float>(random() % 7);
  for (std::size_t i = 0; i < relations; ++i) r.row(i)[0] = static_cast<float>(random() % 3);

  auto const score = [&](std::uint32_t s, std::uint32_t p, std::uint32_t o) {
    return e.row(s)[0] * r.row(p)[0] + 2 * e.row(o)[0];
  };
  double reciprocal = 0, ranks = 0, hits = 0;
  for (Triple const& t : data.test) {
    for (bool objects : {true, false}) {
      double rank = 1;
      for (std::uint32_t other = 0; other < entities; ++other) {
        std::uint32_t const s = objects ? t.subject : other, o = objects ? other : t.object;
        if (facts.contains({s, t.relation, o})) continue;
        float const a = score(s, t.relation, o), b = score(t.subject, t.relation, t.object);
        rank += a > b ? 1 : a == b ? 0.5 : 0;
      }
      reciprocal += 1 / rank;
      ranks += rank;
      hits += rank <= 3 ? 1 : 0;
    }
  }

  LineModel const model;
  Evaluator const evaluator(data, model, {});
  RankingSums sums({3});
  evaluator.rank(stream, e, r, data.test, sums);
  RankingMetrics const m = sums.metrics();
  EXPECT_EQ(m.ranked, 120);
  EXPECT_NEAR(m.mrr, reciprocal / 120, 1e-8);
  EXPECT_NEAR(m.mean_rank, ranks / 120, 1e-9);
  EXPECT_NEAR(m.hits[0].second, hits / 120, 1e-9);
}

}  // namespace
}  // namespace gpups::trainer::evaluate_test
