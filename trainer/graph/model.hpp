// SPDX-License-Identifier: Apache-2.0
// A model of a knowledge graph: what rows a batch needs, and what their gradients are.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/batch_sampler.hpp"
#include "trainer/graph/dictionary.hpp"

namespace gpups::trainer {

// The things a knowledge graph is about, as keys: number -> key, on the host.
struct Vocabulary {
  std::vector<Key> entities;
  std::vector<Key> relations;
};

struct GraphModelOptions {
  std::string name = "complex";  // one of model_names()
  std::size_t dim = 100;         // values in a row (real numbers: a complex model has dim / 2 complex ones)
  // logistic, softmax (cross entropy of the positive against its negatives) or self_adversarial (logistic, with the
  // negatives weighted by their scores)
  std::string loss = "logistic";
  float temperature = 1;            // of self_adversarial: 0 weights all alike, more the higher scores
  std::uint32_t negatives = 6;      // drawn for the subject, and as many for the object
  std::string sampling = "triple";  // triple: drawn for each triple; shared: for each microbatch, by all its triples
  // Triples that use an entity which was drawn, of 16 that are neighbours in the batch: 1 .. 16. More, where a batch
  // draws more than there are entities. For sampling "triple".
  std::uint32_t negative_reuse = 8;
  float l2 = 0;            // weight of the squared norm of the rows of a positive triple
  float n3 = 0;            // weight of the sum of cubed moduli of the rows of a positive triple
  int norm = 1;            // of transe's distance: 1 or 2
  float margin = 9;        // of transe and rotate: the score of distance 0
  std::uint64_t seed = 1;  // of negatives
  Initializer initializer{Initializer::Kind::kNormal, 0.1F};
  DataType value_type = DataType::kFloat;  // of entities; relations are few, and learnt from in every step
  Optimizer optimizer{Optimizer::Kind::kAdagrad, 0.1F};
  Schedule schedule{};
};

// A batch of triples.
struct TripleBatch {
  Clock clock{};
  std::int64_t epoch = 0;
  std::vector<Triple> triples;
  // For each triple, its number in the global batch: what its negatives are drawn by.
  std::vector<std::uint32_t> sample_numbers;
  std::vector<Microbatch> microbatches;
  std::uint32_t batch_triples = 0;  // of the global batch, over all ranks
};

// What a model made of a batch ahead of its step: the entries of its tables, on the device. Plain data.
struct GraphEntries {
  Clock clock{};
  std::size_t samples = 0;
  struct EntryList {
    TableId table{};
    Array<Key> keys;
    Array<std::uint32_t> sources;
  };
  std::vector<EntryList> parts;  // 0: entities, 1: relations
  std::vector<Microbatch> microbatches;
  std::vector<TableBatch> tables() const;  // refers to `parts`
};

// What a step computes, reused from step to step; arrays only grow.
struct GraphGradients {
  Matrix<float> sources;                   // of both tables
  Matrix<float> relation_sources;          // of the relations, where their rows are wider; else without columns
  std::vector<Array<float>> coefficients;  // one per part
  std::vector<std::size_t> entries;        // of each part that has coefficients; 0: they are all 1
  Array<std::int64_t> losses;              // of each sample
  Array<float> scratch;
  std::optional<float> source_max_abs;  // where it is known: the largest absolute value in the sources
  // Refers to what is here and in `work`, whose gradients these are.
  std::vector<TableGradients> tables(GraphEntries const& work) const;
};

class GraphModel {
 public:
  virtual ~GraphModel() = default;

  // Entities first, then relations. REQUIRES: add these to the store in this order, before anything else.
  virtual std::vector<TableOptions> tables() const = 0;

  // RoundingKey negatives and lists the entries. Any thread; a function of seed, vocabulary and batch alone.
  virtual GraphEntries prepare(Stream& stream, TripleBatch const& batch) const = 0;

  // rows[part] is what Store::pull gave. Returns the sum over the samples of their loss, in units of 2^-30: an
  // integer, so that it has no order. Waits for `stream`, for that number.
  virtual std::int64_t forward_backward(Stream& stream, GraphEntries const& work, PreparedBatch const& prepared,
                                        std::span<MatrixView<float const> const> rows,
                                        GraphGradients& gradients) const = 0;

  // The most that a batch of so many samples takes.
  struct Sizes {
    std::size_t entries, rows;     // of entities: rows are the distinct ones
    std::size_t entry_bytes;       // of an entity's entry, in GraphEntries
    std::uint64_t gradient_bytes;  // of GraphGradients
  };
  virtual Sizes sizes_of(std::size_t samples, std::size_t microbatches) const = 0;

  // For evaluation: scores[i][e] of query i with entity e in the place of its object (or its subject).
  // subjects_or_objects: (queries, dim) rows of the known entity; relations: (queries, dim); entities: (E, dim);
  // scores: (queries, E).
  virtual void score_all(Stream& stream, bool objects, MatrixView<float const> known, MatrixView<float const> relations,
                         MatrixView<float const> entities, MatrixView<float> scores) const = 0;
};

std::vector<std::string> model_names();
// Throws Error for options that do not fit each other, naming the option.
std::unique_ptr<GraphModel> make_graph_model(GraphModelOptions const& options, Vocabulary const& vocabulary);

}  // namespace gpups::trainer
