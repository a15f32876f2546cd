// SPDX-License-Identifier: Apache-2.0
// Losses of queries from the scores of candidates that many queries share, and their derivatives by the scores.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

// The loss of triples with shared negatives, computed from scores. The scores are replaced by the derivatives of the
// loss.
struct SharedLoss {
  Algebra algebra;
  float margin = 0;  // of a distance score
  Loss loss;
  std::size_t negatives;                    // of each side
  bool objects_only = false;                // whether subjects have no negatives and no loss
  PickedRows queries;                       // (n): the query for objects of each triple
  PickedRows objects;                       // (n): the row of each triple's object
  View<std::uint32_t const> positive_rows;  // (n, 2): rows of subject and object in the entity table
  View<std::uint32_t const> negative_rows;  // (sides * negatives): for objects, then for subjects
  // (n, negatives): the scores of the negatives for objects and for subjects; replaced by derivatives. With
  // objects_only, of_subjects is not used.
  MatrixView<float> of_objects, of_subjects;
  View<float> slopes;         // (n): the derivative of the loss by the score of the positive
  View<std::int64_t> losses;  // (n), in units of kLossUnit
};
void shared_loss(Stream& stream, SharedLoss const& arguments);

// The loss of queries from the scores of all entities, where a query may have several right answers (Dettmers et al.
// 2018, ConvE). The scores are replaced by the derivatives of the loss. Reads and writes each score a few times.

// The target of an entity is y = 1 for an answer, and 0 for others. Label smoothing (Szegedy et al. 2016) replaces y by
// (1 - smoothing) * y + smoothing / m.
//
// kLogistic: binary cross entropy, the sum over all entities of softplus(score) - target * score. kSoftmax: cross
// entropy of the softmax of the scores and the targets, where the answers share y: each has 1 / their number. The
// reported loss of kLogistic is the mean over the entities, so that it stays below 2^10 with any number of them.
struct AnswerLoss {
  Loss::Kind kind;  // kLogistic or kSoftmax
  float smoothing;  // 0 .. 1
  // Query i has the answers answers[offsets[i]] .. answers[offsets[i + 1] - 1]: columns of its scores, each once, and
  // at least one.
  View<std::uint32_t const> offsets;  // (n + 1)
  View<std::uint32_t const> answers;
  MatrixView<float> scores;   // (n, m): of each query and entity; replaced by derivatives
  View<std::int64_t> losses;  // (n), in units of kLossUnit
  bool accumulate = false;    // whether the loss is added to `losses`
};
void answer_loss(Stream& stream, AnswerLoss const& arguments);

}  // namespace gpups::kernels
