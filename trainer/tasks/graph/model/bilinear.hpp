// SPDX-License-Identifier: Apache-2.0
// Models whose scores are linear in each of a triple's three rows: ComplEx (Trouillon et al., ICML 2016), DistMult
// (Yang et al., ICLR 2015) and RESCAL (Nickel et al., ICML 2011); and models whose scores are distances: TransE (Bordes
// et al., NIPS 2013) and RotatE (Sun et al., ICLR 2019). All of them score many candidates with one query.
#pragma once

#include <cmath>

#include "kernels/score/types.hpp"
#include "trainer/tasks/graph/model/device_vocabulary.hpp"

namespace gpups::trainer {

// Returns source row `which` of the triples first .. first + count - 1.
inline MatrixView<float> source_rows(MatrixView<float> sources, kernels::SourceRow which, std::size_t first,
                                     std::size_t count) {
  std::size_t const per_triple = kernels::kSourcesPerTriple;
  return {sources.row(per_triple * first + which), count, sources.columns(), per_triple * sources.stride(),
          sources.device()};
}

// A model that an Algebra defines.
class Bilinear : public GraphModel {
 public:
  // REQUIRES: options that make_graph_model accepts.
  Bilinear(kernels::Algebra algebra, GraphModelOptions const& options, Vocabulary const& vocabulary);

  std::vector<TableOptions> tables() const override;
  GraphEntries prepare(Stream& stream, TripleBatch const& batch) const override;
  View<std::int64_t const> forward_backward(Stream& stream, GraphEntries const& work, PreparedBatch const& prepared,
                                            std::span<MatrixView<float const> const> rows,
                                            GraphGradients& gradients) const override;
  void score_all(Stream& stream, bool objects, MatrixView<float const> known, MatrixView<float const> relations,
                 MatrixView<float const> entities, MatrixView<float> scores) const override;

  Sizes sizes_of(std::size_t samples, std::size_t microbatches) const override;

  // forward_backward() with the row of each entry.
  struct Positions {
    View<std::uint32_t const> entities, relations;
  };
  View<std::int64_t const> compute(Stream& stream, GraphEntries const& work, Positions positions,
                                   std::span<MatrixView<float const> const> rows, GraphGradients& gradients) const;

 private:
  // The uses of dropout.
  enum class DropoutLayer : std::uint32_t { kSubjects, kObjects, kNegatives, kRelations };
  // The number of entries of the entity table, and of source rows, of a batch.
  struct BatchSizes {
    std::size_t entries, sources;
  };
  BatchSizes sizes(std::size_t samples, std::size_t microbatches) const;
  // Scratch arrays for shared negatives, all in one allocation.
  struct SharedScratch {
    View<float> slopes;        // for each triple: derivative of the loss by the score of the positive
    MatrixView<float> scores;  // (sides * triples, negatives), of objects first; later the derivatives by the scores
    MatrixView<float> drawn;   // (microbatches * sides * negatives, dim): rows of the negatives
    // With dropout: (2 * triples, dim), the rows of subjects and objects; and (triples, relation_dim).
    MatrixView<float> entities, relations;
  };
  // The rows of a batch's triples, or of some of them.
  struct InputRows {
    kernels::PickedRows subjects, relations, objects;
  };
  std::size_t shared_scratch_size(std::size_t samples, std::size_t microbatches) const;
  SharedScratch shared_scratch(GraphEntries const& work, GraphGradients const& gradients) const;
  // Returns how many shared negatives of a side are entities of the microbatch's own part.
  std::size_t local_negatives() const {
    return static_cast<std::size_t>(std::lround(options_.local_negatives * static_cast<float>(negatives_)));
  }
  bool drops() const { return options_.entity_dropout > 0 || options_.relation_dropout > 0; }
  // Returns whether entry e of the entity table has source e.
  bool own_entity_sources() const { return is_distance(algebra_) && !shared_; }
  // Returns whether relations have separate sources, GraphGradients::relation_sources.
  bool own_relation_sources() const {
    return own_entity_sources() || algebra_ == kernels::Algebra::kMatrix || algebra_ == kernels::Algebra::kRotation;
  }
  void reserve(Stream& stream, GraphEntries const& work, GraphGradients& gradients) const;
  // Returns the gradient of each sample's relation.
  MatrixView<float> relation_sources(GraphGradients const& gradients, std::size_t samples) const;
  void compute_shared(Stream& stream, GraphEntries const& work, Positions positions,
                      std::span<MatrixView<float const> const> rows, GraphGradients& gradients) const;
  void compute_microbatch(Stream& stream, GraphEntries const& work, std::size_t m, Positions positions,
                          MatrixView<float const> entities, InputRows const& inputs, GraphGradients& gradients) const;
  // Returns the rows of all triples; with dropout, copies without the numbers that this step drops.
  InputRows input_rows(Stream& stream, GraphEntries const& work, Positions positions,
                       std::span<MatrixView<float const> const> rows, SharedScratch const& scratch) const;
  // Applies the dropout of a layer to rows, or to their gradients. The rows have the numbers of the batch's samples,
  // or, if there is one, first_number and those after it.
  void drop(Stream& stream, GraphEntries const& work, DropoutLayer layer, MatrixView<float> rows,
            std::optional<std::uint32_t> first_number = {}) const;
  // Computes the loss of a microbatch, and replaces scores by derivatives.
  void compute_loss(Stream& stream, GraphEntries const& work, std::size_t m, Positions positions,
                    InputRows const& inputs, GraphGradients& gradients) const;
  // Computes the scores of all pairs of queries and negatives; and the gradients of both, from the derivatives of the
  // loss by the scores.
  void score_shared(Stream& stream, MatrixView<float const> queries, MatrixView<float const> negatives,
                    MatrixView<float> scores) const;
  void score_shared_backward(Stream& stream, MatrixView<float const> queries, MatrixView<float const> negatives,
                             MatrixView<float> slopes, MatrixView<float> query_gradients,
                             MatrixView<float> negative_gradients) const;

  kernels::Algebra algebra_;
  GraphModelOptions options_;
  kernels::Loss loss_;
  bool shared_;            // whether the triples of a microbatch share their negatives
  bool all_labelled_;      // whether each entity is a candidate with a target: AnswerLoss
  std::size_t sides_;      // 2, or 1 without negatives for subjects
  std::size_t negatives_;  // of a side
  DeviceVocabulary vocabulary_;
};

}  // namespace gpups::trainer
