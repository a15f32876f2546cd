// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense/logistic_loss.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/score/activation.hpp"

namespace gpups::kernels {

GPUPS_FN inline float logit_of(MatrixView<float const> terms, std::size_t i) {
  float logit = 0;
  for (std::size_t j = 0; j < terms.columns(); ++j) logit += terms.row(i)[j];
  return logit;
}

// Functions of a logit. `yes` and `no` add up to 1; the smaller of them is computed without subtraction, so its
// relative error is small.
struct Logistic {
  float yes, no;   // sigmoid(logit), sigmoid(-logit)
  float log_term;  // log(1 + exp(-|logit|))
};
GPUPS_FN inline Logistic logistic(float logit) {
  float const e = exp_negative(logit < 0.0F ? logit : -logit);
  float const more = 1.0F / (1.0F + e), less = e * more;
  bool const negative = logit < 0.0F;
  return {negative ? less : more, negative ? more : less, log1p_unit(e)};
}

template <Space S>
void run(Exec<S> ex, LogisticLoss const& g) {
  std::size_t const m = g.gradient.size();
  GPUPS_ASSERT(g.terms.rows() >= m && g.labels.size() >= m && g.losses.size() >= m);
  GPUPS_ASSERT(g.probabilities.empty() || g.probabilities.size() >= m);
  each(ex, m, [g] GPUPS_FN(std::size_t i) {
    float const logit = logit_of(g.terms, i), label = g.labels[i];
    Logistic const at = logistic(logit);
    // With label 0 or 1, neither gradient nor loss is a difference of large numbers.
    g.gradient[i] = (1.0F - label) * at.yes - label * at.no;
    g.losses[i] = loss_units(at.log_term + (logit < 0.0F ? -label : 1.0F - label) * logit);
    if (!g.probabilities.empty()) g.probabilities[i] = at.yes;
  });
}

GPUPS_KERNEL(logistic_loss, LogisticLoss)

}  // namespace gpups::kernels
