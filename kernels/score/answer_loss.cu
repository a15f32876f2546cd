// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/answer_loss.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/score/activation.hpp"

namespace gpups::kernels {

// Replaces the scores by the softmax or by logistic functions, and returns the part of the loss that does not depend on
// the targets: the logarithm of the softmax's denominator, or the sum of softplus.
GPUPS_FN inline double loss_without_targets(NativeLanes lanes, Loss::Kind kind, float* scores, std::size_t n) {
  if (kind == Loss::Kind::kLogistic) {
    return lanes.sum(n, [=](std::size_t j) {
      Softplus const at = softplus(scores[j]);
      scores[j] = at.slope;
      return at.value;
    });
  }
  float const most = lanes.max(-3e38F, n, [=](std::size_t j) { return scores[j]; });
  float const total = lanes.sum(n, [=](std::size_t j) {
    float const share = exp_negative(scores[j] - most);
    scores[j] = share;
    return share;
  });
  float const scale = 1.0F / total;
  lanes.sync();
  lanes.each(n, [=](std::size_t j) { scores[j] *= scale; });
  return double{most} + double{logf(total)};
}

template <Space S>
void run(Exec<S> ex, AnswerLoss const& g) {
  GPUPS_ASSERT(g.kind == Loss::Kind::kLogistic || g.kind == Loss::Kind::kSoftmax);
  GPUPS_ASSERT(g.losses.size() == g.scores.rows() && g.offsets.size() == g.scores.rows() + 1);
  each_row(ex, g.losses.size(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float* const scores = g.scores.row(i);
    std::size_t const n = g.scores.columns(), count = g.offsets[i + 1] - g.offsets[i];
    std::uint32_t const* const answers = g.answers.data() + g.offsets[i];
    // What the target of an answer has in addition to that of every entity.
    float const share = (1.0F - g.smoothing) / (g.kind == Loss::Kind::kSoftmax ? static_cast<float>(count) : 1.0F);
    float const everywhere = g.smoothing / static_cast<float>(n);
    float const of_answers = lanes.sum(count, [=](std::size_t k) { return scores[answers[k]]; });
    float const of_all = everywhere == 0.0F ? 0.0F : lanes.sum(n, [=](std::size_t j) { return scores[j]; });
    lanes.sync();
    double const of_targets = double{share} * of_answers + double{everywhere} * of_all;
    double const loss = loss_without_targets(lanes, g.kind, scores, n) - of_targets;
    double const reported = (loss < 0 ? 0 : loss) / (g.kind == Loss::Kind::kLogistic ? static_cast<double>(n) : 1);
    lanes.sync();
    if (everywhere != 0.0F) lanes.each(n, [=](std::size_t j) { scores[j] -= everywhere; });
    lanes.each(count, [=](std::size_t k) { scores[answers[k]] -= share; });
    if (lanes.first()) g.losses[i] = (g.accumulate ? g.losses[i] : 0) + loss_units(reported);
  });
}

GPUPS_KERNEL(answer_loss, AnswerLoss)

}  // namespace gpups::kernels
