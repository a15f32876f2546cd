// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/model/bilinear.hpp"

#include <algorithm>
#include <numbers>
#include <numeric>

#include "kernels/base/check.hpp"
#include "kernels/score/negatives.hpp"
#include "kernels/score/pair_rows.hpp"
#include "kernels/score/step_triples.hpp"
#include "kernels/score/triple_queries.hpp"

namespace gpups::trainer {
namespace {

kernels::Loss loss_of(GraphModelOptions const& options) {
  using Kind = kernels::Loss::Kind;
  Kind const kind = options.loss == "softmax"            ? Kind::kSoftmax
                    : options.loss == "self_adversarial" ? Kind::kSelfAdversarial
                                                         : Kind::kLogistic;
  return {kind, options.temperature};
}

// Replaces an array by a larger one if it is too small. Waits first, because queued work may use the old array.
template <class Owner, class... Size>
void grow(Stream& stream, Owner& owner, bool large_enough, Size... size) {
  if (large_enough) return;
  stream.wait();
  owner = Owner(stream.device(), size...);
}

std::vector<std::uint32_t> numbers_of(std::vector<Microbatch> const& microbatches) {
  std::vector<std::uint32_t> numbers;
  for (Microbatch const& microbatch : microbatches) numbers.push_back(microbatch.number);
  return numbers;
}

// Adds the answers of a batch's queries, for objects and, with `sides` 2, for subjects.
void add_answers(Stream& stream, TripleBatch const& batch, std::size_t sides, GraphEntries& work) {
  if (!batch.answer_offsets.empty()) {
    work.answer_offsets = to_device(stream, batch.answer_offsets);
    work.answers.push_back(to_device(stream, batch.answers));
    return;
  }
  std::vector<std::uint32_t> offsets(batch.triples.size() + 1);
  std::iota(offsets.begin(), offsets.end(), 0U);
  work.answer_offsets = to_device(stream, offsets);
  for (std::size_t side = 0; side < sides; ++side) {
    std::vector<std::uint32_t> answers;
    for (Triple const& triple : batch.triples) answers.push_back(side == 0 ? triple.object : triple.subject);
    work.answers.push_back(to_device(stream, answers));
  }
}

// Returns the number of each triple in the global batch; then, with `parts`, the part of each triple.
std::vector<std::uint32_t> triples_to_deal(TripleBatch const& batch, bool parts) {
  std::vector<std::uint32_t> triples = batch.sample_numbers;
  if (!parts) return triples;
  for (Microbatch const& microbatch : batch.microbatches) {
    triples.insert(triples.end(), microbatch.count, microbatch.number);
  }
  return triples;
}

}  // namespace

Bilinear::Bilinear(kernels::Algebra algebra, GraphModelOptions const& options, Vocabulary const& vocabulary)
    : algebra_(algebra),
      options_(options),
      loss_(loss_of(options)),
      shared_(options.sampling != "triple"),
      all_labelled_(takes_all(options.sampling) && loss_.kind != kernels::Loss::Kind::kSelfAdversarial),
      sides_(options.objects_only ? 1 : 2),
      negatives_(takes_all(options.sampling) ? vocabulary.entities.size() : options.negatives),
      vocabulary_(vocabulary, options.seed) {}

std::vector<TableOptions> Bilinear::tables() const {
  auto const table = [&](char const* name, std::size_t dim, Initializer initializer, std::size_t rows,
                         DataType values) {
    return TableOptions{.name = name,
                        .dim = dim,
                        .initializer = initializer,
                        .optimizer = options_.optimizer,
                        .schedule = options_.schedule,
                        .expected_rows = rows,
                        .value_type = values};
  };
  std::vector<Key> const &entities = vocabulary_.host().entities, &relations = vocabulary_.host().relations;
  Initializer const of_angles{Initializer::Kind::kUniform, std::numbers::pi_v<float>};
  Initializer const of_relations = algebra_ == kernels::Algebra::kRotation ? of_angles : options_.initializer;
  return {table("entities", options_.dim, options_.initializer, entities.size(), options_.value_type),
          table("relations", relation_dim(algebra_, options_.dim), of_relations, relations.size(), DataType::kFloat)};
}

Bilinear::BatchSizes Bilinear::sizes(std::size_t samples, std::size_t microbatches) const {
  std::size_t const drawn = sides_ * negatives_ * (shared_ ? microbatches : samples);
  std::size_t const of_triple =
      shared_ ? kernels::kSourcesPerTriple : kernels::step_sources(algebra_, options_.negatives);
  return {2 * samples + drawn, of_triple * samples + (shared_ ? drawn : 0)};
}

GraphModel::Sizes Bilinear::sizes_of(std::size_t samples, std::size_t microbatches) const {
  auto const [entries, sources] = sizes(samples, microbatches);
  // Neighbouring triples share negatives, see deal_negatives().
  std::size_t const negatives = entries - 2 * samples;
  std::size_t drawn = shared_ ? negatives : negatives / options_.negative_reuse + 1;
  // Where microbatches meet, triples of both draw local negatives of their own.
  if (!shared_ && options_.local_negatives > 0) {
    drawn += 2 * microbatches * (2 * options_.negatives * kernels::kHandTriples / options_.negative_reuse + 1);
  }
  std::uint64_t floats = sources * row_stride(options_.dim) + (shared_ ? 0 : entries);
  if (own_relation_sources()) floats += samples * row_stride(relation_dim(algebra_, options_.dim));
  if (shared_) floats += shared_scratch_size(samples, microbatches);
  // kernels::distance_gradients needs the distances of a side's pairs once more.
  if (shared_ && algebra_ == kernels::Algebra::kTranslationL2) floats += samples * row_stride(negatives_);
  return {.entries = entries,
          .rows = std::min(vocabulary_.host().entities.size(), 2 * samples + drawn),
          .entry_bytes = sizeof(Key) + (own_entity_sources() ? 0 : sizeof(std::uint32_t)),
          .sample_bytes = ((all_labelled_ ? 1 + sides_ : 0) + (drops() ? 1 : 0)) * sizeof(std::uint32_t),
          .gradient_bytes = floats * sizeof(float) + samples * sizeof(std::int64_t)};
}

GraphEntries Bilinear::prepare(Stream& stream, TripleBatch const& batch) const {
  GPUPS_ASSERT(batch.sample_numbers.size() == batch.triples.size());
  auto const [entities, relations, shuffled, by_part, part_offsets] = vocabulary_.keys(stream);
  std::size_t const samples = batch.triples.size();
  std::size_t const entries = sizes(samples, batch.microbatches.size()).entries;
  GraphEntries work{.clock = batch.clock, .samples = samples, .parts = {}, .microbatches = batch.microbatches};
  work.parts.push_back({TableId{0}, Array<Key>(stream.device(), entries),
                        Array<std::uint32_t>(stream.device(), own_entity_sources() ? 0 : entries)});
  work.parts.push_back(
      {TableId{1}, Array<Key>(stream.device(), samples), Array<std::uint32_t>(stream.device(), samples)});

  static_assert(sizeof(Triple) == 3 * sizeof(std::uint32_t));
  Array<Triple> const triples = to_device(stream, batch.triples);
  bool const local = options_.local_negatives > 0 && !part_offsets.empty();
  Array<std::uint32_t> const drawing =
      to_device(stream, shared_ ? numbers_of(batch.microbatches) : triples_to_deal(batch, local));
  std::size_t const per_triple = shared_ ? 2 : 2 + 2 * std::size_t{options_.negatives};
  kernels::expand_triples(
      stream, {.triples = {reinterpret_cast<std::uint32_t const*>(triples.data()), 3 * samples, triples.device()},
               .entities = entities,
               .relations = relations,
               .entries_per_triple = per_triple,
               .entity_keys = work.parts[0].keys,
               .entity_sources = work.parts[0].sources,
               .relation_keys = work.parts[1].keys,
               .relation_sources = work.parts[1].sources,
               .own_relation_sources = own_relation_sources()});
  shared_ ? kernels::draw_negatives(stream,
                                    {.seed = options_.seed,
                                     .clock = batch.clock,
                                     .groups = drawing,
                                     .negatives = negatives_,
                                     .sides = sides_,
                                     .all = takes_all(options_.sampling),
                                     .entities = entities,
                                     .by_part = by_part,
                                     .part_offsets = part_offsets,
                                     .local = part_offsets.empty() ? 0 : local_negatives(),
                                     .first = 2 * samples,
                                     .first_source = static_cast<std::uint32_t>(kernels::kSourcesPerTriple * samples),
                                     .keys = work.parts[0].keys,
                                     .sources = work.parts[0].sources})
          : kernels::deal_negatives(stream, {.seed = options_.seed,
                                             .clock = batch.clock,
                                             .numbers = drawing.view().slice(0, samples),
                                             .batch_triples = batch.batch_triples,
                                             .negatives = options_.negatives,
                                             .reuse = options_.negative_reuse,
                                             .entities = shuffled,
                                             .local = options_.local_negatives,
                                             .parts = drawing.view().slice(samples, drawing.size() - samples),
                                             .by_part = by_part,
                                             .part_offsets = part_offsets,
                                             .first = 2,
                                             .step = per_triple,
                                             .keys = work.parts[0].keys,
                                             .sources = work.parts[0].sources});
  if (all_labelled_) add_answers(stream, batch, sides_, work);
  if (drops()) work.sample_numbers = to_device(stream, batch.sample_numbers);
  stream.wait();  // the kernels read local arrays
  return work;
}

View<std::int64_t const> Bilinear::forward_backward(Stream& stream, GraphEntries const& work,
                                                    PreparedBatch const& prepared,
                                                    std::span<MatrixView<float const> const> rows,
                                                    GraphGradients& gradients) const {
  return compute(stream, work, {prepared.positions(0), prepared.positions(1)}, rows, gradients);
}

void Bilinear::reserve(Stream& stream, GraphEntries const& work, GraphGradients& gradients) const {
  auto const [entries, sources] = sizes(work.samples, work.microbatches.size());
  gradients.coefficients.resize(2);
  gradients.entries = {shared_ ? 0 : entries, 0};
  bool const same_dim = gradients.sources.columns() == options_.dim;
  grow(stream, gradients.sources, same_dim && gradients.sources.rows() >= sources, sources, options_.dim);
  if (own_relation_sources()) {
    std::size_t const dim = relation_dim(algebra_, options_.dim);
    auto& relations = gradients.relation_sources;
    grow(stream, relations, relations.columns() == dim && relations.rows() >= work.samples, work.samples, dim);
  }
  auto& coefficients = gradients.coefficients[0];
  grow(stream, coefficients, coefficients.size() >= gradients.entries[0], gradients.entries[0]);
  grow(stream, gradients.losses, gradients.losses.size() >= work.samples, work.samples);
  std::size_t const scratch = shared_ ? shared_scratch_size(work.samples, work.microbatches.size()) : 0;
  grow(stream, gradients.scratch, gradients.scratch.size() >= scratch, scratch);
}

MatrixView<float> Bilinear::relation_sources(GraphGradients const& gradients, std::size_t samples) const {
  if (own_relation_sources()) return gradients.relation_sources.view().slice(0, samples);
  return source_rows(gradients.sources, kernels::kRelationGradient, 0, samples);
}

View<std::int64_t const> Bilinear::compute(Stream& stream, GraphEntries const& work, Positions positions,
                                           std::span<MatrixView<float const> const> rows,
                                           GraphGradients& gradients) const {
  GPUPS_ASSERT(positions.entities.size() == work.parts[0].keys.size());
  GPUPS_ASSERT(positions.relations.size() == work.samples);
  GPUPS_ASSERT(rows[0].columns() == options_.dim && rows[0].stride() == row_stride(options_.dim));
  reserve(stream, work, gradients);
  View<std::int64_t> const losses = gradients.losses.view().slice(0, work.samples);
  if (shared_) {
    compute_shared(stream, work, positions, rows, gradients);
  } else {
    View<float> most;
    if (stream.device().is_host()) most = {&gradients.source_max_abs.emplace(0.0F), 1, stream.device()};
    kernels::step_triples(stream, {.algebra = algebra_,
                                   .margin = options_.margin,
                                   .loss = loss_,
                                   .regulariser = {options_.l2, options_.n3},
                                   .negatives = options_.negatives,
                                   .entities = rows[0],
                                   .relations = rows[1],
                                   .entity_rows = positions.entities,
                                   .relation_rows = positions.relations,
                                   .sources = gradients.sources,
                                   .relation_sources = relation_sources(gradients, work.samples),
                                   .coefficients = gradients.coefficients[0],
                                   .losses = losses,
                                   .source_max_abs = most});
  }
  return losses;
}

void Bilinear::score_all(Stream& stream, bool objects, MatrixView<float const> known, MatrixView<float const> relations,
                         MatrixView<float const> entities, MatrixView<float> scores) const {
  Matrix<float> const queries(stream.device(), known.rows(), known.columns());
  kernels::combine_rows(
      stream, {.algebra = algebra_, .conjugate = !objects, .left = {known}, .right = {relations}, .out = queries});
  if (is_distance(algebra_)) {
    kernels::distance_rows(
        stream, {.algebra = algebra_, .margin = options_.margin, .left = queries, .right = {entities}, .out = scores});
  } else {
    kernels::dot_rows(stream, {.left = queries, .right = {entities}, .out = scores});
  }
  stream.wait();  // the kernels read the local queries
}

}  // namespace gpups::trainer
