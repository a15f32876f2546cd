// SPDX-License-Identifier: Apache-2.0
// A step of a graph model without a store: tables and the distinct keys of a batch are maps.
#pragma once

#include <optional>
#include <random>
#include <set>

#include "tests/support/model_oracle.hpp"
#include "tests/support/on_devices.hpp"
#include "trainer/tasks/graph/model/bilinear.hpp"

namespace gpups::test {

using Batch = trainer::TripleBatch;
using trainer::Bilinear;
using trainer::GraphEntries;
using trainer::GraphGradients;
using trainer::GraphModelOptions;
using trainer::Vocabulary;

inline Vocabulary make_vocabulary(std::size_t entities, std::size_t relations) {
  Vocabulary v;
  for (std::size_t i = 0; i < entities; ++i) v.entities.push_back(Key{1000003 * i + 17});
  for (std::size_t i = 0; i < relations; ++i) v.relations.push_back(Key{999 * i + 5});
  return v;
}

inline Batch make_batch(std::size_t samples, std::size_t microbatches, std::size_t entities, std::size_t relations) {
  std::mt19937 random(7);
  Batch batch;
  batch.clock = Clock{3};
  for (std::size_t i = 0; i < samples; ++i) {
    batch.triples.push_back({static_cast<std::uint32_t>(random() % entities),
                             static_cast<std::uint32_t>(random() % relations),
                             static_cast<std::uint32_t>(random() % entities)});
    batch.sample_numbers.push_back(static_cast<std::uint32_t>(i));
  }
  for (std::size_t m = 0; m < microbatches; ++m) {
    std::size_t const first = m * samples / microbatches, last = (m + 1) * samples / microbatches;
    batch.microbatches.push_back(
        {static_cast<std::uint32_t>(m), static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last - first)});
  }
  batch.batch_triples = static_cast<std::uint32_t>(samples);
  return batch;
}

// Makes the triples of a batch queries with up to four answers, one of which is the object.
inline void add_answers(Batch& batch, std::size_t entities) {
  std::mt19937 random(11);
  batch.answer_offsets.push_back(0);
  for (trainer::Triple const& triple : batch.triples) {
    std::set<std::uint32_t> answers{triple.object};
    for (std::size_t more = random() % 4; more > 0; --more) {
      answers.insert(static_cast<std::uint32_t>(random() % entities));
    }
    batch.answers.insert(batch.answers.end(), answers.begin(), answers.end());
    batch.answer_offsets.push_back(static_cast<std::uint32_t>(batch.answers.size()));
  }
}
inline Batch make_batch_for(GraphModelOptions const& options, std::size_t samples, std::size_t microbatches,
                            std::size_t entities, std::size_t relations) {
  Batch batch = make_batch(samples, microbatches, entities, relations);
  if (options.sampling == "kvsall") add_answers(batch, entities);
  return batch;
}

// Returns the batch of a rank that computes microbatches first .. first+count-1 only.
inline Batch slice_or_empty(Batch const& whole, std::size_t first, std::size_t count) {
  Batch part{.clock = whole.clock,
             .epoch = whole.epoch,
             .triples = {},
             .sample_numbers = {},
             .microbatches = {},
             .batch_triples = whole.batch_triples};
  if (!whole.answer_offsets.empty()) part.answer_offsets.push_back(0);
  for (std::size_t m = first; m < first + count; ++m) {
    auto microbatch = whole.microbatches[m];
    for (std::uint32_t i = microbatch.first; i < microbatch.first + microbatch.count; ++i) {
      part.triples.push_back(whole.triples[i]);
      part.sample_numbers.push_back(whole.sample_numbers[i]);
      if (whole.answer_offsets.empty()) continue;
      part.answers.insert(part.answers.end(), whole.answers.begin() + whole.answer_offsets[i],
                          whole.answers.begin() + whole.answer_offsets[i + 1]);
      part.answer_offsets.push_back(static_cast<std::uint32_t>(part.answers.size()));
    }
    microbatch.first = static_cast<std::uint32_t>(part.triples.size()) - microbatch.count;
    part.microbatches.push_back(microbatch);
  }
  return part;
}

// Returns the number of columns of a relation's row.
inline std::size_t relation_dim(GraphModelOptions const& options) {
  if (options.name == "rotate") return options.dim / 2;
  return options.name == "rescal" ? options.dim * options.dim : options.dim;
}

// Returns random rows of floats, so that the library and the oracle have the same numbers.
inline Rows random_rows(std::vector<Key> const& keys, std::size_t dim, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 0.5F);
  Rows rows;
  for (Key key : keys) {
    for (std::size_t k = 0; k < dim; ++k) rows[number(key)].push_back(normal(random));
  }
  return rows;
}

inline Matrix<float> to_matrix(Rows const& table, std::vector<std::uint64_t> const& keys, std::size_t dim) {
  Matrix<float> matrix(Device::host(), keys.size(), dim);
  for (float& x : matrix.view().flat()) x = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t k = 0; k < dim; ++k) matrix.row(i)[k] = static_cast<float>(table.at(keys[i])[k]);
  }
  return matrix;
}

// The distinct keys of one part in the order of their first use, and the row of each entry.
struct Distinct {
  std::vector<std::uint64_t> keys;
  std::vector<std::uint32_t> positions;
};
inline Distinct distinct(GraphEntries::EntryList const& part) {
  Distinct d;
  std::map<std::uint64_t, std::uint32_t> known;
  for (Key key : part.keys.view()) {
    auto const [at, is_new] = known.try_emplace(number(key), static_cast<std::uint32_t>(d.keys.size()));
    if (is_new) d.keys.push_back(number(key));
    d.positions.push_back(at->second);
  }
  return d;
}

struct Step {
  GraphEntries work;
  GraphGradients gradients;
  double loss;
  std::int64_t loss_units;
};
inline GraphEntries on_host(Stream& stream, GraphEntries const& work) {
  GraphEntries copy{.clock = work.clock, .samples = work.samples, .parts = {}, .microbatches = work.microbatches};
  for (GraphEntries::EntryList const& part : work.parts) {
    copy.parts.push_back({part.table, moved(stream, Device::host(), part.keys.view()),
                          moved(stream, Device::host(), part.sources.view())});
  }
  return copy;
}
inline GraphGradients on_host(Stream& stream, GraphGradients gradients) {
  for (auto* sources : {&gradients.sources, &gradients.relation_sources}) {
    *sources = moved(stream, Device::host(), sources->view());
  }
  for (auto& c : gradients.coefficients) c = moved(stream, Device::host(), c.view());
  return gradients;
}

// Runs a step. value: all elements of all rows have this value; not set: they are random. Results are copied to the
// host.
inline Step run_step(GraphModelOptions const& options, Vocabulary const& vocabulary, Batch const& batch, int threads,
                     GraphGradients gradients = {}, std::optional<double> value = {}, Device device = Device::host()) {
  auto const model = trainer::make_graph_model(options, vocabulary);
  auto const& bilinear = dynamic_cast<Bilinear const&>(*model);
  Stream stream(device, threads);
  GraphEntries const work = model->prepare(stream, batch);
  Step step{.work = on_host(stream, work), .gradients = {}, .loss = 0, .loss_units = 0};
  Distinct const e = distinct(step.work.parts[0]), r = distinct(step.work.parts[1]);
  auto const rows_of = [&](std::vector<Key> const& keys, std::size_t dim, unsigned seed) {
    Rows table = random_rows(keys, dim, seed);
    for (auto& [key, row] : table) {
      if (value) row.assign(dim, *value);
    }
    return table;
  };
  std::size_t const dims[] = {options.dim, relation_dim(options)};
  auto const there = [&](Rows const& rows, std::vector<std::uint64_t> const& keys, std::size_t dim) {
    return moved(stream, device, to_matrix(rows, keys, dim).view());
  };
  Matrix<float> const entities = there(rows_of(vocabulary.entities, dims[0], 1), e.keys, dims[0]);
  Matrix<float> const relations = there(rows_of(vocabulary.relations, dims[1], 2), r.keys, dims[1]);
  MatrixView<float const> const rows[] = {entities, relations};
  Array<std::uint32_t> const positions[] = {to_device(stream, e.positions), to_device(stream, r.positions)};
  auto const losses = to_host(stream, bilinear.compute(stream, work, {positions[0], positions[1]}, rows, gradients));
  step.loss_units = std::accumulate(losses.begin(), losses.end(), std::int64_t{0});
  step.gradients = device.is_host() ? std::move(gradients) : on_host(stream, std::move(gradients));
  step.loss = static_cast<double>(step.loss_units) * 0x1p-30;
  return step;
}

// Returns the source of entry i: its contribution to the gradient of its key, without the coefficient.
inline float const* source_of(Step const& step, std::size_t part, std::size_t i) {
  auto const tables = step.gradients.tables(step.work);
  auto const& sources = step.work.parts[part].sources;
  return tables[part].sources.row(sources.empty() ? i : sources[i]);
}

// Returns the gradient of each key: the sum of coefficient * source over its entries.
inline Rows summed(Step const& step, std::size_t part, std::size_t dim) {
  Rows sums;
  auto const tables = step.gradients.tables(step.work);
  auto const& entries = step.work.parts[part];
  for (std::size_t i = 0; i < entries.keys.size(); ++i) {
    Row& sum = sums.try_emplace(number(entries.keys[i]), Row(dim)).first->second;
    double const factor = tables[part].coefficients.empty() ? 1.0 : tables[part].coefficients[i];
    for (std::size_t k = 0; k < dim; ++k) sum[k] += factor * source_of(step, part, i)[k];
  }
  return sums;
}

// Returns the triples of a batch with the negatives that prepare() drew for them.
inline std::vector<OracleTriple> oracle_triples(GraphModelOptions const& options, Vocabulary const& vocabulary,
                                                Batch const& batch, GraphEntries const& work) {
  bool const all = trainer::takes_all(options.sampling);
  std::size_t const n = all ? vocabulary.entities.size() : options.negatives;
  std::size_t const sides = options.objects_only ? 1 : 2;
  auto const drawn = [&](std::size_t first, std::size_t count) {
    std::vector<std::uint64_t> keys;
    for (std::size_t j = 0; j < count; ++j) keys.push_back(number(work.parts[0].keys[first + j]));
    return keys;
  };
  std::vector<OracleTriple> triples;
  for (std::size_t m = 0; m < batch.microbatches.size(); ++m) {
    for (std::size_t k = 0; k < batch.microbatches[m].count; ++k) {
      std::size_t const i = batch.microbatches[m].first + k;
      std::size_t const first =
          options.sampling == "triple" ? i * (2 + 2 * n) + 2 : 2 * batch.triples.size() + m * sides * n;
      triples.push_back({number(vocabulary.entities[batch.triples[i].subject]),
                         number(vocabulary.relations[batch.triples[i].relation]),
                         number(vocabulary.entities[batch.triples[i].object]), drawn(first, n),
                         drawn(first + n, (sides - 1) * n)});
      OracleTriple& triple = triples.back();
      triple.subject_answers = {triple.subject};
      if (batch.answers.empty()) triple.object_answers = {triple.object};
      for (std::uint32_t a = 0; !batch.answers.empty() && a < batch.answer_offsets[i + 1] - batch.answer_offsets[i];
           ++a) {
        std::uint32_t const answer = batch.answers[batch.answer_offsets[i] + a];
        triple.object_answers.push_back(number(vocabulary.entities[answer]));
      }
    }
  }
  return triples;
}

}  // namespace gpups::test
