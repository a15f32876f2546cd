// SPDX-License-Identifier: Apache-2.0
// The step with negatives that all triples of a microbatch share: matrix products of queries and negatives.
#include "kernels/score/combine_rows.hpp"
#include "kernels/score/dot_rows.hpp"
#include "kernels/score/finish_triples.hpp"
#include "kernels/score/mix_rows.hpp"
#include "kernels/score/shared_loss.hpp"
#include "trainer/graph/model/bilinear.hpp"

namespace gpups::trainer {

using namespace kernels;

void Bilinear::compute_shared(Stream& stream, Work const& work, Positions positions,
                              std::span<MatrixView<float const> const> rows, Gradients& gradients) const {
  std::size_t const samples = work.samples, negatives = options_.negatives;
  MatrixView<float> const sources = gradients.sources;
  View<float> const slopes = gradients.scratch.view().slice(0, samples);
  // Scores, then derivatives by them: one row for each triple and side.
  MatrixView<float> const scores(gradients.scratch.data() + first_score(samples), 2 * samples, negatives,
                                 score_stride(), stream.device());
  PickedRows const subjects{rows[0], positions.entities.data(), 2};
  PickedRows const objects{rows[0], positions.entities.data() + 1, 2};
  PickedRows const relations{rows[1], positions.relations.data(), 1};

  combine_rows(stream, {.algebra = algebra_,
                        .conjugate = false,
                        .left = subjects,
                        .right = relations,
                        .out = source_rows(sources, kObjectQuery, 0, samples)});
  combine_rows(stream, {.algebra = algebra_,
                        .conjugate = true,
                        .left = objects,
                        .right = relations,
                        .out = source_rows(sources, kSubjectQuery, 0, samples)});
  for (std::size_t m = 0; m < work.microbatches.size(); ++m) {
    std::size_t const first = work.microbatches[m].first, count = work.microbatches[m].count;
    View<std::uint32_t const> const drawn = positions.entities.slice(2 * (samples + m * negatives), 2 * negatives);
    for (std::size_t side = 0; side < 2; ++side) {
      dot_rows(stream, {.left = source_rows(sources, side == 0 ? kObjectQuery : kSubjectQuery, first, count),
                        .right = {rows[0], drawn.data() + side * negatives},
                        .out = scores.slice(side * samples + first, count)});
    }
    shared_loss(stream, {.loss = loss_,
                         .negatives = negatives,
                         .queries = {source_rows(sources, kObjectQuery, first, count)},
                         .objects = {rows[0], objects.index + 2 * first, 2},
                         .positive_rows = positions.entities.slice(2 * first, 2 * count),
                         .negative_rows = drawn,
                         .of_objects = scores.slice(first, count),
                         .of_subjects = scores.slice(samples + first, count),
                         .slopes = slopes.slice(first, count),
                         .losses = gradients.losses.view().slice(first, count)});
    for (std::size_t side = 0; side < 2; ++side) {
      MatrixView<float> const weights = scores.slice(side * samples + first, count);
      mix_rows(stream, {.weights = weights.data(),  // gradients of the queries
                        .row_step = weights.stride(),
                        .column_step = 1,
                        .rows = {rows[0], drawn.data() + side * negatives},
                        .count = negatives,
                        .out = source_rows(sources, side == 0 ? kSubjectGradient : kObjectGradient, first, count)});
      mix_rows(stream, {.weights = weights.data(),  // gradients of the negatives
                        .row_step = 1,
                        .column_step = weights.stride(),
                        .rows = {source_rows(sources, side == 0 ? kObjectQuery : kSubjectQuery, first, count)},
                        .count = count,
                        .out = sources.slice(kSourcesPerTriple * samples + (2 * m + side) * negatives, negatives)});
    }
  }
  finish_triples(stream, {.algebra = algebra_,
                          .regulariser = {options_.l2, options_.n3},
                          .subjects = subjects,
                          .relations = relations,
                          .objects = objects,
                          .slopes = slopes,
                          .sources = sources,
                          .relation_sources = relation_sources(gradients, samples),
                          .losses = gradients.losses.view().slice(0, samples)});
}

}  // namespace gpups::trainer
