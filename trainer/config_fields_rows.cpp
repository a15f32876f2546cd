// SPDX-License-Identifier: Apache-2.0
// The keys of how rows are updated, and of how they travel between ranks.
#include "trainer/config_constraints.hpp"
#include "trainer/config_fields.hpp"

namespace gpups::trainer {
namespace {

template <auto Member>
constexpr FieldAccessor kOptimizer = at<&Config::optimizer, Member>;
template <auto Member>
constexpr FieldAccessor kLinear = at<&Config::linear, Member>;
template <auto Member>
constexpr FieldAccessor kGradientCompression = at<&Config::gradient_compression, Member>;
template <auto Member>
constexpr FieldAccessor kRefreshCompression = at<&Config::refresh_compression, Member>;

}  // namespace

std::vector<Field> optimizer_fields() {
  using namespace constraints;
  using O = OptimizerConfig;
  return {
      FieldBuilder("optimizer", "kind", kOptimizer<&O::kind>, "how a gradient changes a row")
          .one_of({"sgd", "adagrad", "rowwise_adagrad", "adam", "lamb", "ftrl"})
          .only_if(kRows)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "learning_rate", kOptimizer<&O::learning_rate>, "")
          .range(0, 1e6)
          .only_if(kRows)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "epsilon", kOptimizer<&O::epsilon>, "")
          .range(0, 1e6)
          .only_if(kDivides)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "initial_accumulator", kOptimizer<&O::initial_accumulator>, "of new rows")
          .range(0, 1e6)
          .only_if(kAccumulates)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "l2", kOptimizer<&O::l2>, "share of its values that is added to a row's gradient")
          .range(0, 1e6)
          .only_if(kRows)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "clip_norm", kOptimizer<&O::clip_norm>, "largest norm of a row's gradient; 0: any")
          .range(0, 1e6)
          .only_if(kRows)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "beta1", kOptimizer<&O::beta1>, "share of the mean gradient that stays")
          .range(0, 0.999999)
          .only_if(kMoments)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "beta2", kOptimizer<&O::beta2>, "share of the mean square that stays")
          .range(0, 0.999999)
          .only_if(kMoments)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "l1", kOptimizer<&O::l1>, "sums of gradients up to this leave a value at 0")
          .range(0, 1e6)
          .only_if(kProximal)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "beta", kOptimizer<&O::beta>, "makes first steps smaller")
          .range(0, 1e6)
          .only_if(kProximal)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "schedule", kOptimizer<&O::schedule>, "of the learning rate")
          .one_of({"constant", "linear", "cosine"})
          .fixed_on_resume(),
      FieldBuilder("optimizer", "warmup_steps", kOptimizer<&O::warmup_steps>, "in which the rate rises from 0")
          .range(0, kMost53)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "total_steps", kOptimizer<&O::total_steps>,
                   "where the schedule ends; 0: where the run does")
          .range(0, kMost53)
          .only_if(kDecaying)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "min_factor", kOptimizer<&O::min_factor>,
                   "share of the learning rate that is left there")
          .range(0, 1)
          .only_if(kDecaying)
          .fixed_on_resume(),
  };
}

std::vector<Field> linear_fields() {
  using namespace constraints;
  return {
      FieldBuilder("linear", "kind", kLinear<&LinearConfig::kind>, "how a gradient changes a row of one number")
          .one_of({"sgd", "adagrad", "rowwise_adagrad", "ftrl"})
          .only_if(kWide)
          .fixed_on_resume(),
      FieldBuilder("linear", "learning_rate", kLinear<&LinearConfig::learning_rate>, "")
          .range(0, 1e6)
          .only_if(kWide)
          .fixed_on_resume(),
      FieldBuilder("linear", "initial_accumulator", kLinear<&LinearConfig::initial_accumulator>, "of new ones")
          .range(0, 1e6)
          .only_if(kWideStateful)
          .fixed_on_resume(),
      FieldBuilder("linear", "l2", kLinear<&LinearConfig::l2>, "as optimizer.l2")
          .range(0, 1e6)
          .only_if(kWide)
          .fixed_on_resume(),
      FieldBuilder("linear", "l1", kLinear<&LinearConfig::l1>, "as optimizer.l1")
          .range(0, 1e6)
          .only_if(kWideProximal)
          .fixed_on_resume(),
      FieldBuilder("linear", "beta", kLinear<&LinearConfig::beta>, "as optimizer.beta")
          .range(0, 1e6)
          .only_if(kWideProximal)
          .fixed_on_resume(),
      FieldBuilder("linear", "admission_count", kLinear<&LinearConfig::admission_count>, "as model.admission_count")
          .range(1, 1 << 30)
          .only_if(kWide)
          .fixed_on_resume(),
  };
}

std::vector<Field> gradient_compression_fields() {
  using namespace constraints;
  using X = CompressionConfig;
  return {
      FieldBuilder("gradient_compression", "codec", kGradientCompression<&X::codec>, "of rows' gradients between ranks")
          .is_codec(),
      FieldBuilder("gradient_compression", "top_k", kGradientCompression<&X::top_k>,
                   "columns of a row that are sent, the largest, fewer than the widest rows have; 0: all")
          .range(0, 65536)
          .fixed_on_resume(),
      FieldBuilder("gradient_compression", "age_max", kGradientCompression<&X::age_max>,
                   "steps that a row may be held back for; 0: none")
          .range(0, 1e9)
          .fixed_on_resume(),
      FieldBuilder("gradient_compression", "density", kGradientCompression<&X::density>,
                   "of rows that ought to be sent")
          .range(0, 1)
          .fixed_on_resume()
          .only_if(kGradientFilter),
      FieldBuilder("gradient_compression", "threshold_max", kGradientCompression<&X::threshold_max>,
                   "by the root of the step, the most that waits")
          .range(0, 1e30)
          .fixed_on_resume()
          .only_if(kGradientFilter),
      FieldBuilder("gradient_compression", "capacity_rows", kGradientCompression<&X::capacity_rows>,
                   "held back for each other rank")
          .range(1, 1 << 30)
          .fixed_on_resume()
          .only_if(kGradientsCompressed),
  };
}

std::vector<Field> refresh_compression_fields() {
  using namespace constraints;
  using X = CompressionConfig;
  return {
      FieldBuilder("refresh_compression", "codec", kRefreshCompression<&X::codec>,
                   "of changes of rows that other ranks read")
          .is_codec(),
      FieldBuilder("refresh_compression", "age_max", kRefreshCompression<&X::age_max>,
                   "steps that a change may be held back for; 0: none")
          .range(0, 1e9)
          .fixed_on_resume(),
      FieldBuilder("refresh_compression", "density", kRefreshCompression<&X::density>, "of rows that ought to be sent")
          .range(0, 1)
          .fixed_on_resume()
          .only_if(kRefreshFilter),
      FieldBuilder("refresh_compression", "threshold_max", kRefreshCompression<&X::threshold_max>,
                   "by the root of the step, the most that waits")
          .range(0, 1e30)
          .fixed_on_resume()
          .only_if(kRefreshFilter),
      FieldBuilder("refresh_compression", "capacity_rows", kRefreshCompression<&X::capacity_rows>,
                   "of which each other rank has a copy")
          .range(1, 1 << 30)
          .fixed_on_resume()
          .only_if(kRefreshesCompressed),
  };
}

}  // namespace gpups::trainer
