// SPDX-License-Identifier: Apache-2.0
// The logistic loss (binary cross-entropy) of samples, and the probabilities that a model predicts. A sample's logit is
// the sum of its terms, in their order.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// loss = log(1 + exp(logit)) - label * logit, which is also right where exp would overflow.
struct LogisticLoss {
  MatrixView<float const> terms;  // (m, t), of any stride
  View<float const> labels;       // (m), each in [0, 1]
  View<float> gradient;           // (m): of the loss by the logit, sigmoid(logit) - label
  View<std::int64_t> losses;      // (m), in units of 2^-30; at most 2^10, which is also what is not a number
  View<float> probabilities;      // (m) = sigmoid(logit); empty: not wanted
};
void logistic_loss(Stream& stream, LogisticLoss const& arguments);

}  // namespace gpups::kernels
