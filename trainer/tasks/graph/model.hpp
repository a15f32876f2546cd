// SPDX-License-Identifier: Apache-2.0
// The interface of models of knowledge graphs: the rows that a batch uses, their gradients, and scores for evaluation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/step/batch_sampler.hpp"

namespace gpups::trainer {

// A fact of a knowledge graph, as numbers of the dictionaries of entities and relations.
struct Triple {
  std::uint32_t subject, relation, object;
  bool operator==(Triple const&) const = default;
};

// The keys of entities and relations, by number, on the host.
struct Vocabulary {
  std::vector<Key> entities;
  std::vector<Key> relations;
  // The entities of each part of a placement: part p has by_part[part_offsets[p]] .. by_part[part_offsets[p + 1] - 1].
  // Empty without a placement.
  std::vector<Key> by_part{};
  std::vector<std::uint64_t> part_offsets{};
};

// The options of all models; some models ignore some of them.
struct GraphModelOptions {
  std::string name = "complex";  // one of model_names()
  std::size_t dim = 100;         // floats in a row; a complex model has dim / 2 complex numbers
  // logistic, softmax (cross entropy of the positive and its negatives) or self_adversarial (logistic, with negatives
  // weighted by the softmax of their scores)
  std::string loss = "logistic";
  float temperature = 1;        // for self_adversarial: factor of scores in the softmax; 0: equal weights
  std::uint32_t negatives = 6;  // for the subject, and the same number for the object
  // triple: negatives for each triple; shared: for all triples of a microbatch; all: all entities (1vsAll); kvsall: all
  // entities, and a sample is a query with all of its answers, see TripleBatch
  std::string sampling = "triple";
  bool objects_only = false;  // whether subjects have no negatives; not with sampling "triple", always with "kvsall"
  float label_smoothing = 0;  // for sampling "all" and "kvsall"; see kernels::AnswerLoss
  // Dropout rates of the elements of entities' and relations' rows; not with sampling "triple", and relations of rotate
  // have none.
  float entity_dropout = 0, relation_dropout = 0;
  // For sampling "triple": how many of 16 consecutive triples of a batch use the same negative, 1 .. 16. More triples
  // use it if a batch needs more negatives than there are entities.
  std::uint32_t negative_reuse = 8;
  // The share of negatives that a microbatch draws from the entities of the part with its number. For sampling "triple"
  // it is the share of hands of 16 triples that draw there (see deal_negatives.hpp). No effect without a placement.
  float local_negatives = 0;
  float l2 = 0;            // weight of the squared norm of the rows of a positive triple
  float n3 = 0;            // weight of the sum of cubed moduli of the rows of a positive triple
  int norm = 1;            // for transe: norm of the distance, 1 or 2
  float margin = 9;        // for transe and rotate: score of distance 0
  std::uint64_t seed = 1;  // of negatives
  Initializer initializer{Initializer::Kind::kNormal, 0.1F};
  DataType value_type = DataType::kFloat;  // of entities; relations are few and updated often, so they are float32
  Optimizer optimizer{Optimizer::Kind::kAdagrad, 0.1F};
  Schedule schedule{};
};

// Returns whether all entities are candidates of each triple or query, with this sampling.
inline bool takes_all(std::string_view sampling) { return sampling == "all" || sampling == "kvsall"; }

// One rank's share of a batch of triples.
struct TripleBatch {
  Clock clock{};
  std::int64_t epoch = 0;
  std::vector<Triple> triples;
  // For each triple, its index in the global batch, which determines its negatives.
  std::vector<std::uint32_t> sample_numbers;
  std::vector<Microbatch> microbatches;
  std::uint32_t batch_triples = 0;  // size of the global batch
  // With sampling "kvsall", triple i stands for the query of its subject and relation, whose answers are
  // answers[answer_offsets[i]] .. answers[answer_offsets[i + 1] - 1]: numbers of entities, each once. Its object is one
  // of them. Else empty.
  std::vector<std::uint32_t> answer_offsets{}, answers{};
};

// A prepared batch: the entries of both tables, on the device. Plain data.
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
  // For kernels::AnswerLoss; empty with other losses.
  Array<std::uint32_t> answer_offsets{};        // the same for both sides
  std::vector<Array<std::uint32_t>> answers{};  // for objects, and for subjects
  Array<std::uint32_t> sample_numbers{};        // with dropout, which they determine
  std::vector<TableBatch> tables() const;       // views of `parts`
};

// Results of a step. The arrays are reused in later steps and never shrink.
struct GraphGradients {
  Matrix<float> sources;                   // of entities, and of relations without relation_sources
  Matrix<float> relation_sources;          // separate sources of relations; without columns if there are none
  std::vector<Array<float>> coefficients;  // for each part
  std::vector<std::size_t> entries;        // number of coefficients of each part; 0: all are 1
  Array<std::int64_t> losses;              // of each sample
  Array<float> scratch;
  std::optional<float> source_max_abs;  // largest absolute value in the sources, if known
  // Returns views of this object and of `work`, the batch of these gradients.
  std::vector<TableGradients> tables(GraphEntries const& work) const;
};

// A model without mutable state. Any thread.
class GraphModel {
 public:
  virtual ~GraphModel() = default;

  // Returns the tables of entities and relations. REQUIRES: the caller adds them to an empty store, in this order.
  virtual std::vector<TableOptions> tables() const = 0;

  // Draws negatives and lists the entries. The result depends on seed, vocabulary and batch only.
  virtual GraphEntries prepare(Stream& stream, TripleBatch const& batch) const = 0;

  // Computes the loss and all gradients. rows[part]: the rows from Store::pull. Returns losses: see
  // TaskStep::forward_backward().
  virtual View<std::int64_t const> forward_backward(Stream& stream, GraphEntries const& work,
                                                    PreparedBatch const& prepared,
                                                    std::span<MatrixView<float const> const> rows,
                                                    GraphGradients& gradients) const = 0;

  // The largest sizes of a batch.
  struct Sizes {
    std::size_t entries, rows;     // of the entity table; rows: number of distinct keys
    std::size_t entry_bytes;       // bytes of an entity's entry in GraphEntries
    std::size_t sample_bytes;      // of a sample beside its entries, with one answer for each query
    std::uint64_t gradient_bytes;  // bytes of GraphGradients
  };
  // samples, microbatches: of one rank's share of the batch.
  virtual Sizes sizes_of(std::size_t samples, std::size_t microbatches) const = 0;

  // Scores all entities as answers of queries, for evaluation. objects: the answers are objects, else subjects. known:
  // (queries, dim), the rows of the other entity. relations: (queries, relation dim). entities: (E, dim). scores:
  // (queries, E). Blocks.
  virtual void score_all(Stream& stream, bool objects, MatrixView<float const> known, MatrixView<float const> relations,
                         MatrixView<float const> entities, MatrixView<float> scores) const = 0;
};

// Returns the names of all models.
std::vector<std::string> model_names();
// Creates the model with the name in `options`. Throws Error for an invalid option.
std::unique_ptr<GraphModel> make_graph_model(GraphModelOptions const& options, Vocabulary const& vocabulary);

}  // namespace gpups::trainer
