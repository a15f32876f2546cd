// SPDX-License-Identifier: Apache-2.0
// Filtered ranking: every held-out triple asks for its object and for its subject among all entities, other known
// answers left out. Ties count as the middle of their places.
//
// Costs two scores per triple and entity. Every rank holds all entities' rows meanwhile and ranks its share.
#pragma once

#include <span>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config.hpp"
#include "trainer/graph/dataset.hpp"
#include "trainer/graph/model.hpp"
#include "trainer/graph/ranking.hpp"
#include "trainer/graph/ranking_filter.hpp"

namespace gpups::trainer {

struct EvaluateOptions {
  std::size_t samples_max = 0;  // triples to rank; 0: all
  bool spread = true;           // evenly over the split; false: its first ones
  std::vector<std::int64_t> hits{1, 3, 10};
};
EvaluateOptions evaluate_options(EvalConfig const& config);

// Scores of a block of queries, (queries, entities), of one side. triples: of the split; ranks: that share its blocks.
// On average over the ranks, since some may have no block.
std::uint64_t score_bytes(std::size_t entities, std::size_t triples, EvaluateOptions const& options, std::size_t ranks);

class Evaluator {
 public:
  // `data` and `model` must stay.
  Evaluator(Dataset const& data, GraphModel const& model, EvaluateOptions const& options);

  // The same bits for every number of ranks. Waits. Collective, between steps.
  RankingMetrics wait_evaluate(Stream& stream, Store& store, std::span<Triple const> split) const;

  // Ranks the given triples against the rows of all entities and relations, on the device of `stream`: what
  // wait_evaluate() does with the rank's share. Waits.
  void rank(Stream& stream, MatrixView<float const> entities, MatrixView<float const> relations,
            std::span<Triple const> triples, RankingSums& sums) const;

 private:
  void rank_side(Stream& stream, MatrixView<float const> entities, MatrixView<float const> relations,
                 std::span<Triple const> triples, bool objects, RankingSums& sums) const;

  Dataset const& data_;
  GraphModel const& model_;
  EvaluateOptions options_;
  RankingFilter objects_, subjects_;
};

}  // namespace gpups::trainer
