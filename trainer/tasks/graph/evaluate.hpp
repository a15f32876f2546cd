// SPDX-License-Identifier: Apache-2.0
// Filtered ranking: every held-out triple asks for its object and for its subject among all entities, other known
// answers left out. Ties count as the middle of their places.
//
// Costs two scores per triple and entity. Every rank holds all entities' rows meanwhile and ranks its share.
#pragma once

#include <span>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config/config.hpp"
#include "trainer/tasks/graph/dataset.hpp"
#include "trainer/tasks/graph/model.hpp"
#include "trainer/tasks/graph/ranking.hpp"

namespace gpups::trainer {

// The triples to rank, and the metrics.
struct EvaluateOptions {
  std::size_t samples_max = 0;               // number of triples to rank; 0: all
  bool spread = true;                        // true: evenly spaced in the split; false: its first triples
  std::vector<std::int64_t> hits{1, 3, 10};  // the k of Hits@k
  bool reciprocal = false;                   // whether objects ask for subjects with the inverse relation
};
// Converts a configuration to options.
EvaluateOptions evaluate_options(Config const& config);

// Returns the bytes of the scores of a block of queries, (queries, entities), as the average over the ranks, because a
// rank may have no block. triples: size of the split. ranks: number of ranks that share its blocks.
std::uint64_t score_bytes(std::size_t entities, std::size_t triples, EvaluateOptions const& options, std::size_t ranks);

// Ranks the objects and subjects of triples among all entities, without other known answers.
class Evaluator {
 public:
  // `data` and `model` must outlive this object.
  Evaluator(Dataset const& data, GraphModel const& model, EvaluateOptions const& options);

  // Ranks a split. The result has the same bits for every number of ranks. Blocks. Collective, between steps.
  RankingMetrics wait_evaluate(Stream& stream, Store& store, std::span<Triple const> split) const;

  // Ranks the given triples and adds the ranks to `sums`. entities, relations: all rows, those of inverses last, on the
  // device of `stream`.
  // wait_evaluate() calls it for the blocks of this rank. Blocks.
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
