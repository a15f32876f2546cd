// SPDX-License-Identifier: Apache-2.0
// The loss of queries from the scores of all entities, where a query may have several right answers (Dettmers et al.
// 2018, ConvE). The scores are replaced by the derivatives of the loss. Reads and writes each score a few times.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

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
