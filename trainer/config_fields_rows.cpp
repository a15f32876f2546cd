// SPDX-License-Identifier: Apache-2.0
// The keys of how rows are updated, and of how they travel between ranks.
#include "trainer/config_make.hpp"
#include "trainer/config_uses.hpp"

namespace gpups::trainer {
namespace {

template <auto Member>
constexpr Read kOptimizer = at<&Config::optimizer, Member>;
template <auto Member>
constexpr Read kWeights = at<&Config::weights, Member>;
template <auto Member>
constexpr Read kGradients = at<&Config::gradients, Member>;
template <auto Member>
constexpr Read kRefreshes = at<&Config::refreshes, Member>;

}  // namespace

std::vector<Field> optimizer_fields() {
  using namespace uses;
  using O = OptimizerConfig;
  return {
      Make("optimizer", "kind", kOptimizer<&O::kind>, "how a gradient changes a row")
          .one_of({"sgd", "adagrad", "rowwise_adagrad", "adam", "lamb", "ftrl"})
          .with(kRows)
          .kept(),
      Make("optimizer", "learning_rate", kOptimizer<&O::learning_rate>, "").range(0, 1e6).with(kRows).kept(),
      Make("optimizer", "epsilon", kOptimizer<&O::epsilon>, "").range(0, 1e6).with(kDivides).kept(),
      Make("optimizer", "initial_accumulator", kOptimizer<&O::initial_accumulator>, "of new rows")
          .range(0, 1e6)
          .with(kAccumulates)
          .kept(),
      Make("optimizer", "l2", kOptimizer<&O::l2>, "share of its values that is added to a row's gradient")
          .range(0, 1e6)
          .with(kRows)
          .kept(),
      Make("optimizer", "clip_norm", kOptimizer<&O::clip_norm>, "largest norm of a row's gradient; 0: any")
          .range(0, 1e6)
          .with(kRows)
          .kept(),
      Make("optimizer", "beta1", kOptimizer<&O::beta1>, "share of the mean gradient that stays")
          .range(0, 0.999999)
          .with(kMoments)
          .kept(),
      Make("optimizer", "beta2", kOptimizer<&O::beta2>, "share of the mean square that stays")
          .range(0, 0.999999)
          .with(kMoments)
          .kept(),
      Make("optimizer", "l1", kOptimizer<&O::l1>, "sums of gradients up to this leave a value at 0")
          .range(0, 1e6)
          .with(kProximal)
          .kept(),
      Make("optimizer", "beta", kOptimizer<&O::beta>, "makes first steps smaller").range(0, 1e6).with(kProximal).kept(),
      Make("optimizer", "schedule", kOptimizer<&O::schedule>, "of the learning rate")
          .one_of({"constant", "linear", "cosine"})
          .kept(),
      Make("optimizer", "warmup_steps", kOptimizer<&O::warmup_steps>, "in which the rate rises from 0")
          .range(0, kMost53)
          .kept(),
      Make("optimizer", "total_steps", kOptimizer<&O::total_steps>, "where the schedule ends; 0: where the run does")
          .range(0, kMost53)
          .with(kDecaying)
          .kept(),
      Make("optimizer", "floor", kOptimizer<&O::floor>, "share of the learning rate that is left there")
          .range(0, 1)
          .with(kDecaying)
          .kept(),
  };
}

std::vector<Field> weights_fields() {
  using namespace uses;
  return {
      Make("weights", "kind", kWeights<&WeightsConfig::kind>, "how a gradient changes a row of one number")
          .one_of({"sgd", "adagrad", "rowwise_adagrad", "ftrl"})
          .with(kWide)
          .kept(),
      Make("weights", "learning_rate", kWeights<&WeightsConfig::learning_rate>, "").range(0, 1e6).with(kWide).kept(),
      Make("weights", "initial_accumulator", kWeights<&WeightsConfig::initial_accumulator>, "of new ones")
          .range(0, 1e6)
          .with(kWideStateful)
          .kept(),
      Make("weights", "l2", kWeights<&WeightsConfig::l2>, "as optimizer.l2").range(0, 1e6).with(kWide).kept(),
      Make("weights", "l1", kWeights<&WeightsConfig::l1>, "as optimizer.l1").range(0, 1e6).with(kWideProximal).kept(),
      Make("weights", "beta", kWeights<&WeightsConfig::beta>, "as optimizer.beta")
          .range(0, 1e6)
          .with(kWideProximal)
          .kept(),
      Make("weights", "admit_at", kWeights<&WeightsConfig::admit_at>, "as model.admit_at")
          .range(1, 1 << 30)
          .with(kWide)
          .kept(),
  };
}

std::vector<Field> gradients_fields() {
  using namespace uses;
  using X = TransferConfig;
  return {
      Make("gradients", "codec", kGradients<&X::codec>, "of rows' gradients between ranks").a_codec(),
      Make("gradients", "top_k", kGradients<&X::top_k>,
           "columns of a row that are sent, the largest, fewer than the widest rows have; 0: all")
          .range(0, 65536)
          .kept(),
      Make("gradients", "age_max", kGradients<&X::age_max>, "steps that a row may be held back for; 0: none")
          .range(0, 1e9)
          .kept(),
      Make("gradients", "share", kGradients<&X::share>, "of rows that ought to be sent")
          .range(0, 1)
          .kept()
          .with(kGradientsFiltered),
      Make("gradients", "bound", kGradients<&X::bound>, "by the root of the step, the most that waits")
          .range(0, 1e30)
          .kept()
          .with(kGradientsFiltered),
      Make("gradients", "rows_max", kGradients<&X::rows_max>, "held back for each other rank")
          .range(1, 1 << 30)
          .kept()
          .with(kGradientsHeld),
  };
}

std::vector<Field> refreshes_fields() {
  using namespace uses;
  using X = TransferConfig;
  return {
      Make("refreshes", "codec", kRefreshes<&X::codec>, "of changes of rows that other ranks read").a_codec(),
      Make("refreshes", "age_max", kRefreshes<&X::age_max>, "steps that a change may be held back for; 0: none")
          .range(0, 1e9)
          .kept(),
      Make("refreshes", "share", kRefreshes<&X::share>, "of rows that ought to be sent")
          .range(0, 1)
          .kept()
          .with(kRefreshesFiltered),
      Make("refreshes", "bound", kRefreshes<&X::bound>, "by the root of the step, the most that waits")
          .range(0, 1e30)
          .kept()
          .with(kRefreshesFiltered),
      Make("refreshes", "rows_max", kRefreshes<&X::rows_max>, "of which each other rank has a copy")
          .range(1, 1 << 30)
          .kept()
          .with(kRefreshesHeld),
  };
}

}  // namespace gpups::trainer
