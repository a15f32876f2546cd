// SPDX-License-Identifier: Apache-2.0
// The logistic loss (binary cross-entropy) of samples, its gradients, and the predicted probabilities. The logit of a
// sample is the sum of its terms, added in order.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// loss = log(1 + exp(logit)) - label * logit, computed in a form that does not overflow.
struct LogisticLoss {
  MatrixView<float const> terms;  // (m, t), of any stride
  View<float const> labels;       // (m), each in [0, 1]
  View<float> gradient;           // (m): d loss / d logit = sigmoid(logit) - label
  View<std::int64_t> losses;      // (m), in units of 2^-30; a loss above 2^10, or NaN, counts as 2^10
  View<float> probabilities;      // (m) = sigmoid(logit); empty: not computed
};
void logistic_loss(Stream& stream, LogisticLoss const& arguments);

}  // namespace gpups::kernels
