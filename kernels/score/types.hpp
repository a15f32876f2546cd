// SPDX-License-Identifier: Apache-2.0
// What the kernels of scoring have in common: the algebra of a score, the loss, and rows picked by number.
//
// The score of a triple is Re(sum of s_k r_k conj(o_k)). Rows are complex, [re | im] in two halves (ComplEx), or real
// (DistMult). Or the relation is a matrix R, row after row without gaps, and the score is s R o (RESCAL). Each is
// linear in each row, so a triple scores any object with the query q = s r (the row s R) and any subject with the query
// p = o conj(r) (the column R o), as plain dot products of their numbers.
//
// Or the score is a margin less a distance: of q = s + r from o (TransE), or of s turned by the angles r from o
// (RotatE). Such a triple scores any object with its distance from q, and any subject with its distance from p = o - r,
// or o turned back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// kTranslationL1, kTranslationL2: the distance is the sum of absolute differences, or Euclidean.
// kRotation: entities' rows are complex, relations' are angles in radians, and the distance is the sum of the moduli of
// differences.
enum class Algebra : std::uint8_t { kReal, kComplex, kMatrix, kTranslationL1, kTranslationL2, kRotation };

constexpr bool is_distance(Algebra algebra) { return algebra >= Algebra::kTranslationL1; }

// Values in a relation's row, for entities' rows of `dim`.
constexpr std::size_t relation_dim(Algebra algebra, std::size_t dim) {
  return algebra == Algebra::kMatrix ? dim * dim : algebra == Algebra::kRotation ? dim / 2 : dim;
}

// kLogistic: softplus(-positive) + the sum of softplus(negative) over the negatives of both sides.
// kSoftmax: for each side, minus the logarithm of the positive's share among itself and the side's negatives; a
// negative that is the true answer has no share.
// kSelfAdversarial (Sun et al. 2019): for each side, softplus(-positive) + a mean of softplus(negative), with weights
// in proportion to exp(temperature * negative), which count as constants; 0 for a negative that is the true answer.
struct Loss {
  enum class Kind : std::uint8_t { kLogistic, kSoftmax, kSelfAdversarial };
  Kind kind = Kind::kLogistic;
  float temperature = 1;
};

// Weights of the rows of positive triples in the loss: l2 * sum |x|^2 + n3 * sum |x|^3 over their numbers x.
struct Regulariser {
  float l2 = 0;
  float n3 = 0;
};

// Row i is rows.row(index[i * step]), or rows.row(i) without an index.
struct PickedRows {
  MatrixView<float const> rows;
  std::uint32_t const* index = nullptr;
  std::size_t step = 1;

  constexpr float const* row(std::size_t i) const { return rows.row(index == nullptr ? i : index[i * step]); }
};

// Losses are integers in units of 2^-30, so that their sums have no order.
inline constexpr double kLossUnit = 0x1p-30;

// Rows of `sources` that belong to triple i: kSourcesPerTriple * i + one of these. The gradient of a matrix does not
// fit and lies elsewhere; its row is scratch. Distances to negatives of a triple's own: see step_triples.hpp.
inline constexpr std::uint32_t kSourcesPerTriple = 5;
enum SourceRow : std::uint32_t { kObjectQuery, kSubjectQuery, kSubjectGradient, kObjectGradient, kRelationGradient };

}  // namespace gpups::kernels
