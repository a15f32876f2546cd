// SPDX-License-Identifier: Apache-2.0
// The step with negatives that all triples of a microbatch share. For bilinear models, scores are matrix products of
// queries and negatives, computed as a dense layer with the negatives as weights. For distance models, they are the
// distances of all queries from all negatives.
#include "kernels/dense/linear.hpp"
#include "kernels/parallel_for.hpp"
#include "kernels/permute_rows.hpp"
#include "kernels/score/combine_rows.hpp"
#include "kernels/score/distance_gradients.hpp"
#include "kernels/score/distance_rows.hpp"
#include "kernels/score/finish_triples.hpp"
#include "kernels/score/shared_loss.hpp"
#include "trainer/graph/model/bilinear.hpp"

namespace gpups::trainer {

using namespace kernels;

namespace {

// Returns the rows with their padding as columns, so that products write zeros to the padding.
template <class T>
MatrixView<T> whole_rows(MatrixView<T> rows) {
  return {rows.data(), rows.rows(), row_stride(rows.columns()), rows.stride(), rows.device()};
}

}  // namespace

// The 16 extra elements avoid strides that are powers of two, with which a column of all rows would map to one set of
// the cache.
std::size_t Bilinear::shared_scratch_size(std::size_t samples, std::size_t microbatches) const {
  std::size_t const drawn = sides_ * microbatches * negatives_;
  return row_stride(samples + 16) + sides_ * samples * row_stride(negatives_ + 16) + drawn * row_stride(options_.dim);
}

Bilinear::SharedScratch Bilinear::shared_scratch(GraphEntries const& work, GraphGradients const& gradients) const {
  std::size_t const n = negatives_, stride = row_stride(n + 16);
  View<float> const all = gradients.scratch;
  float* const scores = all.data() + row_stride(work.samples + 16);
  return {.slopes = all.slice(0, work.samples),
          .scores = {scores, sides_ * work.samples, n, stride, all.device()},
          .drawn = {scores + sides_ * work.samples * stride, sides_ * work.microbatches.size() * n, options_.dim,
                    row_stride(options_.dim), all.device()}};
}

void Bilinear::compute_shared(Stream& stream, GraphEntries const& work, Positions positions,
                              std::span<MatrixView<float const> const> rows, GraphGradients& gradients) const {
  std::size_t const samples = work.samples;
  MatrixView<float> const sources = gradients.sources;
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
  parallel_for(stream, work.microbatches.size(),
               [&](Stream& part, std::size_t m) { compute_microbatch(part, work, m, positions, rows[0], gradients); });
  finish_triples(stream, {.algebra = algebra_,
                          .regulariser = {options_.l2, options_.n3},
                          .subjects = subjects,
                          .relations = relations,
                          .objects = objects,
                          .slopes = shared_scratch(work, gradients).slopes,
                          .sources = sources,
                          .objects_only = sides_ == 1,
                          .relation_sources = relation_sources(gradients, samples),
                          .losses = gradients.losses.view().slice(0, samples)});
}

void Bilinear::compute_microbatch(Stream& stream, GraphEntries const& work, std::size_t m, Positions positions,
                                  MatrixView<float const> entities, GraphGradients& gradients) const {
  std::size_t const samples = work.samples, negatives = negatives_, drawn_count = sides_ * negatives_;
  std::size_t const first = work.microbatches[m].first, count = work.microbatches[m].count;
  SharedScratch const scratch = shared_scratch(work, gradients);
  View<std::uint32_t const> const drawn = positions.entities.slice(2 * samples + m * drawn_count, drawn_count);
  MatrixView<float> const drawn_rows = scratch.drawn.slice(m * drawn_count, drawn_count);
  gather_matrix_rows(stream, {.from = whole_rows(entities), .positions = drawn, .to = whole_rows(drawn_rows)});

  auto const queries = [&](SourceRow which) { return source_rows(gradients.sources, which, first, count); };
  MatrixView<float> const of_side[] = {queries(kObjectQuery), queries(kSubjectQuery)};
  MatrixView<float> const gradients_of_side[] = {queries(kSubjectGradient), queries(kObjectGradient)};
  MatrixView<float> const scores[] = {scratch.scores.slice(first, count),
                                      sides_ == 1 ? MatrixView<float>() : scratch.scores.slice(samples + first, count)};
  for (std::size_t side = 0; side < sides_; ++side) {
    score_shared(stream, of_side[side], drawn_rows.slice(side * negatives, negatives), scores[side]);
  }
  shared_loss(stream, {.algebra = algebra_,
                       .margin = options_.margin,
                       .loss = loss_,
                       .negatives = negatives,
                       .objects_only = sides_ == 1,
                       .queries = {of_side[0]},
                       .objects = {entities, positions.entities.data() + 2 * first + 1, 2},
                       .positive_rows = positions.entities.slice(2 * first, 2 * count),
                       .negative_rows = drawn,
                       .of_objects = scores[0],
                       .of_subjects = scores[1],
                       .slopes = scratch.slopes.slice(first, count),
                       .losses = gradients.losses.view().slice(first, count)});
  std::size_t const first_source = kSourcesPerTriple * samples + m * drawn_count;
  for (std::size_t side = 0; side < sides_; ++side) {
    score_shared_backward(stream, of_side[side], drawn_rows.slice(side * negatives, negatives), scores[side],
                          gradients_of_side[side],
                          gradients.sources.view().slice(first_source + side * negatives, negatives));
  }
}

void Bilinear::score_shared(Stream& stream, MatrixView<float const> queries, MatrixView<float const> negatives,
                            MatrixView<float> scores) const {
  if (is_distance(algebra_)) {
    return distance_rows(
        stream, {.algebra = algebra_, .margin = options_.margin, .left = queries, .right = {negatives}, .out = scores});
  }
  linear_forward(
      stream, {.in = whole_rows(queries), .weights = whole_rows(negatives), .bias = {}, .relu = false, .out = scores});
}

void Bilinear::score_shared_backward(Stream& stream, MatrixView<float const> queries, MatrixView<float const> negatives,
                                     MatrixView<float> slopes, MatrixView<float> query_gradients,
                                     MatrixView<float> negative_gradients) const {
  if (is_distance(algebra_)) {
    return distance_gradients(stream, {.algebra = algebra_,
                                       .queries = queries,
                                       .candidates = negatives,
                                       .weights = slopes,
                                       .of_queries = query_gradients,
                                       .of_candidates = negative_gradients});
  }
  linear_backward(stream, {.in = whole_rows(queries),
                           .weights = whole_rows(negatives),
                           .out = {},
                           .relu = false,
                           .out_gradient = slopes,
                           .in_gradient = whole_rows(query_gradients),
                           .accumulate = false,
                           .weights_gradient = whole_rows(negative_gradients),
                           .bias_gradient = {}});
}

}  // namespace gpups::trainer
