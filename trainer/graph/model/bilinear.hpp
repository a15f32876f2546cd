// SPDX-License-Identifier: Apache-2.0
// ComplEx (Trouillon et al., ICML 2016), DistMult (Yang et al., ICLR 2015) and RESCAL (Nickel et al., ICML 2011), whose
// scores are linear in each of a triple's three rows; TransE (Bordes et al., NIPS 2013) and RotatE (Sun et al., ICLR
// 2019), whose scores are distances. All score many candidates with one query.
#pragma once

#include "kernels/score/types.hpp"
#include "trainer/graph/model/device_vocabulary.hpp"

namespace gpups::trainer {

// Row `which` of the sources of `count` triples from `first` on.
inline MatrixView<float> source_rows(MatrixView<float> sources, kernels::SourceRow which, std::size_t first,
                                     std::size_t count) {
  std::size_t const per_triple = kernels::kSourcesPerTriple;
  return {sources.row(per_triple * first + which), count, sources.columns(), per_triple * sources.stride(),
          sources.device()};
}

class Bilinear : public GraphModel {
 public:
  // REQUIRES: options that make_graph_model accepts.
  Bilinear(kernels::Algebra algebra, GraphModelOptions const& options, Vocabulary const& vocabulary);

  std::vector<TableOptions> tables() const override;
  GraphEntries prepare(Stream& stream, TripleBatch const& batch) const override;
  std::int64_t forward_backward(Stream& stream, GraphEntries const& work, PreparedBatch const& prepared,
                                std::span<MatrixView<float const> const> rows,
                                GraphGradients& gradients) const override;
  void score_all(Stream& stream, bool objects, MatrixView<float const> known, MatrixView<float const> relations,
                 MatrixView<float const> entities, MatrixView<float> scores) const override;

  Sizes sizes_of(std::size_t samples, std::size_t microbatches) const override;

  // forward_backward, given the row of each entry.
  struct Positions {
    View<std::uint32_t const> entities, relations;
  };
  std::int64_t compute(Stream& stream, GraphEntries const& work, Positions positions,
                       std::span<MatrixView<float const> const> rows, GraphGradients& gradients) const;

 private:
  // Entries of the entity table and rows of sources that a batch takes.
  struct BatchSizes {
    std::size_t entries, sources;
  };
  BatchSizes sizes(std::size_t samples, std::size_t microbatches) const;
  // What shared negatives take beside gradients, out of one array.
  struct SharedScratch {
    View<float> slopes;        // of each triple: the derivative by its positive's score
    MatrixView<float> scores;  // (2 * triples, negatives), for objects first; then derivatives by them
    MatrixView<float> drawn;   // (microbatches * 2 * negatives, dim): the negatives' rows, one after the other
  };
  std::size_t shared_scratch_size(std::size_t samples, std::size_t microbatches) const;
  SharedScratch shared_scratch(GraphEntries const& work, GraphGradients const& gradients) const;
  // Each entry of the entity table has a source of its own number.
  bool own_entity_sources() const { return is_distance(algebra_) && !shared_; }
  bool own_relation_sources() const {
    return own_entity_sources() || algebra_ == kernels::Algebra::kMatrix || algebra_ == kernels::Algebra::kRotation;
  }
  void reserve(Stream& stream, GraphEntries const& work, GraphGradients& gradients) const;
  // The gradient of each sample's relation.
  MatrixView<float> relation_sources(GraphGradients const& gradients, std::size_t samples) const;
  void compute_shared(Stream& stream, GraphEntries const& work, Positions positions,
                      std::span<MatrixView<float const> const> rows, GraphGradients& gradients) const;
  void compute_microbatch(Stream& stream, GraphEntries const& work, std::size_t m, Positions positions,
                          MatrixView<float const> entities, GraphGradients& gradients) const;
  // Scores of all pairs of queries and negatives; and the gradients of both, from the derivatives of the loss by
  // scores.
  void score_shared(Stream& stream, MatrixView<float const> queries, MatrixView<float const> negatives,
                    MatrixView<float> scores) const;
  void score_shared_backward(Stream& stream, MatrixView<float const> queries, MatrixView<float const> negatives,
                             MatrixView<float> slopes, MatrixView<float> query_gradients,
                             MatrixView<float> negative_gradients) const;

  kernels::Algebra algebra_;
  GraphModelOptions options_;
  kernels::Loss loss_;
  bool shared_;
  DeviceVocabulary vocabulary_;
};

}  // namespace gpups::trainer
