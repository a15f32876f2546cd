// SPDX-License-Identifier: Apache-2.0
// Types that the scoring kernels share: the algebra of a score, the loss, and rows selected by index.
//
// The score of a triple is Re(sum of s_k r_k conj(o_k)). Rows are complex, [re | im] in two halves (ComplEx), or real
// (DistMult). With kMatrix the relation is a matrix R, stored by rows without gaps, and the score is s R o (RESCAL).
// These scores are linear in each row. So a triple scores any object with the query q = s r (the row s R), and any
// subject with the query p = o conj(r) (the column R o), as dot products.
//
// With the other algebras the score is a margin minus a distance: of q = s + r from o (TransE), or of s rotated by the
// angles r from o (RotatE). A triple scores any object by its distance from q, and any subject by its distance from p =
// o - r, or from o rotated back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// kTranslationL1, kTranslationL2: the distance is the sum of absolute differences, or Euclidean. kRotation: the rows of
// entities are complex, those of relations are angles in radians, and the distance is the sum of the moduli of the
// differences.
enum class Algebra : std::uint8_t { kReal, kComplex, kMatrix, kTranslationL1, kTranslationL2, kRotation };

constexpr bool is_distance(Algebra algebra) { return algebra >= Algebra::kTranslationL1; }

// Returns the number of values of a relation's row, where entities have rows of `dim`.
constexpr std::size_t relation_dim(Algebra algebra, std::size_t dim) {
  return algebra == Algebra::kMatrix ? dim * dim : algebra == Algebra::kRotation ? dim / 2 : dim;
}

// kLogistic: softplus(-positive) + the sum of softplus(negative) over the negatives of both sides.
//
// kSoftmax: for each side, -log of the softmax of the positive among itself and the negatives of the side, except
// negatives that are the true answer.
//
// kSelfAdversarial (Sun et al. 2019): for each side, softplus(-positive) + a weighted mean of softplus(negative).
// Weights are proportional to exp(temperature * negative) and count as constants; a negative that is the true answer
// has weight 0.
struct Loss {
  enum class Kind : std::uint8_t { kLogistic, kSoftmax, kSelfAdversarial };
  Kind kind = Kind::kLogistic;
  float temperature = 1;
};

// The regulariser adds l2 * sum |x|^2 + n3 * sum |x|^3 to the loss, over the numbers x of the rows of positive triples.
struct Regulariser {
  float l2 = 0;
  float n3 = 0;
};

// A list of rows: row i is rows.row(index[i * step]), or rows.row(i) if there is no index.
struct PickedRows {
  MatrixView<float const> rows;
  std::uint32_t const* index = nullptr;
  std::size_t step = 1;

  constexpr float const* row(std::size_t i) const { return rows.row(index == nullptr ? i : index[i * step]); }
};

// Losses are integers in units of 2^-30, so that their sums do not depend on the order of additions.
inline constexpr double kLossUnit = 0x1p-30;

// The rows of `sources` for triple i are kSourcesPerTriple * i + one of these. If the relation is a matrix, its
// gradient is stored elsewhere, and kRelationGradient is scratch. step_triples.hpp describes the sources of distances.
inline constexpr std::uint32_t kSourcesPerTriple = 5;
enum SourceRow : std::uint32_t { kObjectQuery, kSubjectQuery, kSubjectGradient, kObjectGradient, kRelationGradient };

}  // namespace gpups::kernels
