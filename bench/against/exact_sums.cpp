// SPDX-License-Identifier: Apache-2.0
// Compares a step whose gradients are summed exactly with one whose gradients are summed in float, where the bits
// depend on the order.
#include <memory>

#include "bench/against/races.hpp"
#include "bench/against/sparse_gradients.hpp"
#include "kernels/base/vector.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/score/step_triples.hpp"
#include "kernels/update/update_row.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::bench {
namespace {

using kernels::HostLanes;
using kernels::Vector;

constexpr std::size_t kTriples = 4096, kNegatives = 6, kEntities = 15000, kRelations = 200, kDim = 100;
constexpr std::size_t kVector = kernels::kVector, kVectors = row_stride(kDim) / kVector, kEntriesAhead = 8;

// to = scale * the sum of the gradients of a row.
void float_sum(kernels::SumGradients const& s, std::size_t row, float scale, float* to) {
  Vector sum[kVectors] = {};
  std::size_t const end = s.order.size();
  for (std::size_t k = s.offsets[row]; k < s.offsets[row + 1]; ++k) {
    std::uint32_t const e = s.order[k], later = s.order[k + kEntriesAhead < end ? k + kEntriesAhead : k];
    float const* const from = s.source_rows.row(s.sources[e]);
    float const* const ahead = s.source_rows.row(s.sources[later]);
    for (std::size_t j = 0; j < kVectors; ++j) {
      __builtin_prefetch(ahead + kVector * j);
      sum[j] += s.coefficients[e] * kernels::load<Vector>(from + kVector * j);
    }
  }
  for (std::size_t j = 0; j < kVectors; ++j) kernels::store(to + kVector * j, sum[j] * scale);
}

void float_sum_and_update(Stream& stream, kernels::SumAndUpdate const& step) {
  auto const& u = step.update;
  kernels::each_row(kernels::host_exec(stream), u.ids.size(), [&](std::size_t i, HostLanes lanes) {
    if (i + kernels::kRowsAhead < u.ids.size()) kernels::prefetch_row(u, u.ids[i + kernels::kRowsAhead]);
    alignas(64) float mean[row_stride(kDim)];
    float_sum(step.gradients, i, static_cast<float>(u.scale), mean);
    kernels::update_row(lanes, u, u.ids[i], kernels::Mean{mean});
  });
}

// The arrays of the part of a step that comes before the sums.
struct Triples {
  Matrix<float> entities, relations;
  Array<std::uint32_t> entity_rows, relation_rows;
  Array<std::int64_t> losses;
};

template <class RowOf>
Array<std::uint32_t> numbers(Stream& stream, std::size_t count, RowOf row) {
  std::vector<std::uint32_t> all(count);
  for (auto& one : all) one = static_cast<std::uint32_t>(row());
  return to_device(stream, all);
}

// Replaces each row by its position among the rows of the batch, `ids`.
std::vector<std::uint32_t> places_of(std::vector<std::uint32_t> rows, View<std::uint32_t const> ids) {
  std::vector<std::uint32_t> place(kEntities);
  for (std::uint32_t i = 0; i < ids.size(); ++i) place[ids[i]] = i;
  for (auto& row : rows) row = place[row];
  return rows;
}

Matrix<float> random_rows(Stream& stream, test::Random& random, std::size_t rows) {
  return test::matrix(stream, test::floats(random, rows, kDim), rows, kDim);
}

void pull_and_step(Stream& stream, Triples const& t, SparseGradients const& g, View<float> source_max_abs) {
  kernels::gather(stream, {.rows = g.values.const_ref(), .ids = g.ids, .out = t.entities.view().slice(0, g.rows())});
  MatrixView<float> const sources = g.source_rows;
  MatrixView<float> const relation_sources(sources.row(kernels::kRelationGradient), kTriples, kDim,
                                           kernels::kSourcesPerTriple * sources.stride(), sources.device());
  kernels::step_triples(stream, {.algebra = kernels::Algebra::kComplex,
                                 .loss = {},
                                 .regulariser = {0, 0},
                                 .negatives = kNegatives,
                                 .entities = t.entities,
                                 .relations = t.relations,
                                 .entity_rows = t.entity_rows,
                                 .relation_rows = t.relation_rows,
                                 .sources = sources,
                                 .relation_sources = relation_sources,
                                 .coefficients = g.coefficients,
                                 .losses = t.losses,
                                 .source_max_abs = source_max_abs});
}

}  // namespace

// A step of ComplEx: triples with 6 + 6 negatives; entities of triples are drawn by popularity, negatives uniformly.
// The ratio ours / theirs is the speed relative to sums in float.
Race exact_sums_race(Stream& stream) {
  test::Random random(1);
  std::vector<std::uint32_t> rows, sources;
  for (std::uint32_t t = 0; t < kTriples; ++t) {
    auto const source = [&](kernels::SourceRow which) {
      sources.push_back(static_cast<std::uint32_t>(kernels::kSourcesPerTriple * t + which));
    };
    for (auto const key : test::zipf_keys(random, 2, kEntities)) {
      rows.push_back(static_cast<std::uint32_t>(number(key) % kEntities));
    }
    source(kernels::kSubjectGradient), source(kernels::kObjectGradient);
    for (std::uint32_t n = 0; n < 2 * kNegatives; ++n) {
      rows.push_back(static_cast<std::uint32_t>(test::below(random, kEntities)));
      source(n < kNegatives ? kernels::kObjectQuery : kernels::kSubjectQuery);
    }
  }
  auto const g = std::make_shared<SparseGradients>(
      sparse_gradients(stream, rows, sources, kEntities, kDim, {.kind = Optimizer::Kind::kAdagrad}));
  auto const t = std::make_shared<Triples>(
      Triples{.entities = random_rows(stream, random, kEntities),
              .relations = random_rows(stream, random, kRelations),
              .entity_rows = to_device(stream, places_of(rows, g->ids)),
              .relation_rows = numbers(stream, kTriples, [&] { return test::below(random, kRelations); }),
              .losses = Array<std::int64_t>(stream.device(), kTriples)});
  return {"triples",
          {"exact", kTriples,
           [=, &stream] {
             float most = 0;
             pull_and_step(stream, *t, *g, {&most, 1, stream.device()});
             auto step = g->arguments();
             step.gradients.contribution_max =
                 kernels::contribution_max(kernels::wait_max_abs(stream, g->coefficients_as_row()), most, kGridLog2);
             kernels::sum_and_update(stream, step);
           }},
          {"sums in float", kTriples, [=, &stream] {
             pull_and_step(stream, *t, *g, {});
             float_sum_and_update(stream, g->arguments());
           }}};
}

}  // namespace gpups::bench
