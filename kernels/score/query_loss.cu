// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/query_loss.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/score/activation.hpp"
#include "kernels/score/distance_triple.hpp"

namespace gpups::kernels {

GPUPS_FN inline float score_of(NativeLanes lanes, Algebra algebra, float margin, float const* query, float const* row,
                               std::size_t dim) {
  switch (algebra) {
    case Algebra::kTranslationL1:
      return margin - DistanceTriple<TranslationL1, float>::distance(lanes, query, row, dim);
    case Algebra::kTranslationL2:
      return margin - DistanceTriple<TranslationL2, float>::distance(lanes, query, row, dim);
    case Algebra::kRotation:
      return margin - DistanceTriple<RotationModuli, float>::distance(lanes, query, row, dim);
    default:
      return lanes.sum(row_stride(dim), [=](std::size_t k) { return query[k] * row[k]; });
  }
}

template <Space S>
void run(Exec<S> ex, SharedLoss const& g) {
  each_row(ex, g.losses.size(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const* const query = g.queries.row(i);
    float const* const object = g.objects.row(i);
    float const positive = score_of(lanes, g.algebra, g.margin, query, object, g.objects.rows.columns());
    std::uint32_t const* const negatives = g.negative_rows.data();
    SideLoss const at =
        triple_loss(lanes, g.loss, positive, g.of_objects.row(i), g.objects_only ? nullptr : g.of_subjects.row(i),
                    g.negatives, negatives, g.objects_only ? nullptr : negatives + g.negatives,
                    g.positive_rows[2 * i + 1], g.positive_rows[2 * i]);
    if (lanes.first()) {
      g.slopes[i] = at.slope;
      g.losses[i] = loss_units(at.loss);
    }
  });
}

GPUPS_KERNEL(shared_loss, SharedLoss)

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
