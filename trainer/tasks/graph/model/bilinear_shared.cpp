// SPDX-License-Identifier: Apache-2.0
// The step with negatives that all triples of a microbatch share; they may be all entities. For bilinear models, scores
// are matrix products of queries and negatives, computed as a dense layer with the negatives as weights. For distance
// models, they are the distances of all queries from all negatives. With dropout, the step computes with copies of the
// rows, and drops the same elements of their gradients.
#include <utility>

#include "kernels/dense/dropout.hpp"
#include "kernels/dense/linear.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/runtime/arena.hpp"
#include "kernels/score/pair_rows.hpp"
#include "kernels/score/query_loss.hpp"
#include "kernels/score/triple_queries.hpp"
#include "trainer/tasks/graph/model/bilinear.hpp"

namespace gpups::trainer {

using namespace kernels;

namespace {

// Returns the rows with their padding as columns, so that products write zeros to the padding.
template <class T>
MatrixView<T> whole_rows(MatrixView<T> rows) {
  return {rows.data(), rows.rows(), row_stride(rows.columns()), rows.stride(), rows.device()};
}

// Returns the rows first, first + 2, first + 4 ..
MatrixView<float> every_second(MatrixView<float> rows, std::size_t first) {
  return {rows.row(first), rows.rows() / 2, rows.columns(), 2 * rows.stride(), rows.device()};
}

PickedRows slice(PickedRows const& rows, std::size_t first, std::size_t count) {
  if (rows.index == nullptr) return {rows.rows.slice(first, count)};
  return {rows.rows, rows.index + first * rows.step, rows.step};
}

}  // namespace

// The 16 extra elements avoid strides that are powers of two, with which a column of all rows would map to one set of
// the cache.
std::size_t Bilinear::shared_scratch_size(std::size_t samples, std::size_t microbatches) const {
  std::size_t const drawn = sides_ * microbatches * negatives_;
  std::size_t const relation_stride = row_stride(relation_dim(algebra_, options_.dim));
  return row_stride(samples + 16) + sides_ * samples * row_stride(negatives_ + 16) + drawn * row_stride(options_.dim) +
         (drops() ? samples * (2 * row_stride(options_.dim) + relation_stride) : 0);
}

Bilinear::SharedScratch Bilinear::shared_scratch(GraphEntries const& work, GraphGradients const& gradients) const {
  View<float> const all = gradients.scratch;
  float* next = all.data() + row_stride(work.samples + 16);
  auto const matrix = [&](std::size_t rows, std::size_t columns, std::size_t stride) {
    float* const first = std::exchange(next, next + rows * stride);
    return MatrixView<float>{first, rows, columns, stride, all.device()};
  };
  std::size_t const n = negatives_, dim = options_.dim, of_relation = relation_dim(algebra_, dim);
  SharedScratch scratch{.slopes = all.slice(0, work.samples),
                        .scores = matrix(sides_ * work.samples, n, row_stride(n + 16)),
                        .drawn = matrix(sides_ * work.microbatches.size() * n, dim, row_stride(dim)),
                        .entities = {},
                        .relations = {}};
  if (!drops()) return scratch;
  scratch.entities = matrix(2 * work.samples, dim, row_stride(dim));
  scratch.relations = matrix(work.samples, of_relation, row_stride(of_relation));
  return scratch;
}

void Bilinear::drop(Stream& stream, GraphEntries const& work, DropoutLayer layer, MatrixView<float> rows,
                    std::optional<std::uint32_t> first_number) const {
  float const rate = layer == DropoutLayer::kRelations ? options_.relation_dropout : options_.entity_dropout;
  if (rate == 0) return;
  dropout(stream, {.values = rows,
                   .rate = rate,
                   .seed = options_.seed,
                   .layer = static_cast<std::uint32_t>(layer),
                   .clock = work.clock,
                   .sample_numbers = first_number ? View<std::uint32_t const>() : work.sample_numbers.view(),
                   .first_number = first_number.value_or(0)});
}

Bilinear::InputRows Bilinear::input_rows(Stream& stream, GraphEntries const& work, Positions positions,
                                         std::span<MatrixView<float const> const> rows,
                                         SharedScratch const& scratch) const {
  InputRows inputs{.subjects = {rows[0], positions.entities.data(), 2},
                   .relations = {rows[1], positions.relations.data(), 1},
                   .objects = {rows[0], positions.entities.data() + 1, 2}};
  if (options_.entity_dropout > 0) {
    gather_matrix_rows(stream, {.from = whole_rows(rows[0]),
                                .positions = positions.entities.slice(0, 2 * work.samples),
                                .to = whole_rows(scratch.entities)});
    MatrixView<float> const subjects = every_second(scratch.entities, 0), objects = every_second(scratch.entities, 1);
    drop(stream, work, DropoutLayer::kSubjects, subjects);
    drop(stream, work, DropoutLayer::kObjects, objects);
    inputs.subjects = {subjects};
    inputs.objects = {objects};
  }
  if (options_.relation_dropout > 0) {
    gather_matrix_rows(
        stream, {.from = whole_rows(rows[1]), .positions = positions.relations, .to = whole_rows(scratch.relations)});
    drop(stream, work, DropoutLayer::kRelations, scratch.relations);
    inputs.relations = {scratch.relations};
  }
  return inputs;
}

void Bilinear::compute_shared(Stream& stream, GraphEntries const& work, Positions positions,
                              std::span<MatrixView<float const> const> rows, GraphGradients& gradients) const {
  std::size_t const samples = work.samples;
  MatrixView<float> const sources = gradients.sources;
  SharedScratch const scratch = shared_scratch(work, gradients);
  InputRows const inputs = input_rows(stream, work, positions, rows, scratch);
  auto const& [subjects, relations, objects] = inputs;

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
  if (all_labelled_) {  // answers are among the candidates, so positives have no part of their own
    memory::fill_bytes(stream, scratch.slopes.data(), 0, scratch.slopes.bytes());
  }
  parallel_for(stream, work.microbatches.size(), [&](Stream& part, std::size_t m) {
    compute_microbatch(part, work, m, positions, rows[0], inputs, gradients);
  });
  finish_triples(stream, {.algebra = algebra_,
                          .regulariser = {options_.l2, options_.n3},
                          .subjects = subjects,
                          .relations = relations,
                          .objects = objects,
                          .slopes = scratch.slopes,
                          .sources = sources,
                          .objects_only = sides_ == 1,
                          .relation_sources = relation_sources(gradients, samples),
                          .losses = gradients.losses.view().slice(0, samples),
                          .loss_scale = loss_.kind == Loss::Kind::kLogistic && all_labelled_
                                            ? 1.0F / static_cast<float>(negatives_)  // as that of AnswerLoss
                                            : 1.0F});
  drop(stream, work, DropoutLayer::kSubjects, source_rows(sources, kSubjectGradient, 0, samples));
  drop(stream, work, DropoutLayer::kObjects, source_rows(sources, kObjectGradient, 0, samples));
  drop(stream, work, DropoutLayer::kRelations, relation_sources(gradients, samples));
}

void Bilinear::compute_loss(Stream& stream, GraphEntries const& work, std::size_t m, Positions positions,
                            InputRows const& inputs, GraphGradients& gradients) const {
  std::size_t const samples = work.samples, drawn_count = sides_ * negatives_;
  std::size_t const first = work.microbatches[m].first, count = work.microbatches[m].count;
  SharedScratch const scratch = shared_scratch(work, gradients);
  MatrixView<float> const scores[] = {scratch.scores.slice(first, count),
                                      sides_ == 1 ? MatrixView<float>() : scratch.scores.slice(samples + first, count)};
  View<std::int64_t> const losses = gradients.losses.view().slice(first, count);
  if (all_labelled_) {
    for (std::size_t side = 0; side < sides_; ++side) {
      answer_loss(stream, {.kind = loss_.kind,
                           .smoothing = options_.label_smoothing,
                           .offsets = work.answer_offsets.view().slice(first, count + 1),
                           .answers = work.answers[side],
                           .scores = scores[side],
                           .losses = losses,
                           .accumulate = side > 0});
    }
    return;
  }
  shared_loss(stream, {.algebra = algebra_,
                       .margin = options_.margin,
                       .loss = loss_,
                       .negatives = negatives_,
                       .objects_only = sides_ == 1,
                       .queries = {source_rows(gradients.sources, kObjectQuery, first, count)},
                       .objects = slice(inputs.objects, first, count),
                       .positive_rows = positions.entities.slice(2 * first, 2 * count),
                       .negative_rows = positions.entities.slice(2 * samples + m * drawn_count, drawn_count),
                       .of_objects = scores[0],
                       .of_subjects = scores[1],
                       .slopes = scratch.slopes.slice(first, count),
                       .losses = losses});
}

void Bilinear::compute_microbatch(Stream& stream, GraphEntries const& work, std::size_t m, Positions positions,
                                  MatrixView<float const> entities, InputRows const& inputs,
                                  GraphGradients& gradients) const {
  std::size_t const samples = work.samples, negatives = negatives_, drawn_count = sides_ * negatives_;
  std::size_t const first = work.microbatches[m].first, count = work.microbatches[m].count;
  SharedScratch const scratch = shared_scratch(work, gradients);
  View<std::uint32_t const> const drawn = positions.entities.slice(2 * samples + m * drawn_count, drawn_count);
  MatrixView<float> const drawn_rows = scratch.drawn.slice(m * drawn_count, drawn_count);
  gather_matrix_rows(stream, {.from = whole_rows(entities), .positions = drawn, .to = whole_rows(drawn_rows)});
  auto const first_number = static_cast<std::uint32_t>(work.microbatches[m].number * drawn_count);
  drop(stream, work, DropoutLayer::kNegatives, drawn_rows, first_number);

  auto const queries = [&](SourceRow which) { return source_rows(gradients.sources, which, first, count); };
  MatrixView<float> const of_side[] = {queries(kObjectQuery), queries(kSubjectQuery)};
  MatrixView<float> const gradients_of_side[] = {queries(kSubjectGradient), queries(kObjectGradient)};
  MatrixView<float> const scores[] = {scratch.scores.slice(first, count),
                                      sides_ == 1 ? MatrixView<float>() : scratch.scores.slice(samples + first, count)};
  for (std::size_t side = 0; side < sides_; ++side) {
    score_shared(stream, of_side[side], drawn_rows.slice(side * negatives, negatives), scores[side]);
  }
  compute_loss(stream, work, m, positions, inputs, gradients);
  std::size_t const first_source = kSourcesPerTriple * samples + m * drawn_count;
  for (std::size_t side = 0; side < sides_; ++side) {
    score_shared_backward(stream, of_side[side], drawn_rows.slice(side * negatives, negatives), scores[side],
                          gradients_of_side[side],
                          gradients.sources.view().slice(first_source + side * negatives, negatives));
  }
  drop(stream, work, DropoutLayer::kNegatives, gradients.sources.view().slice(first_source, drawn_count), first_number);
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
