// SPDX-License-Identifier: Apache-2.0
// The keys of [optimizer], [linear], [gradient_compression] and [refresh_compression].
#include "trainer/config/config_constraints.hpp"
#include "trainer/config/config_fields.hpp"

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
      FieldBuilder("optimizer", "kind", kOptimizer<&O::kind>, "optimizer of rows")
          .one_of({"sgd", "adagrad", "rowwise_adagrad", "adam", "lamb", "ftrl"})
          .only_if(kOptimized)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "learning_rate", kOptimizer<&O::learning_rate>, "")
          .range(0, 1e6)
          .only_if(kOptimized)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "epsilon", kOptimizer<&O::epsilon>, "")
          .range(0, 1e6)
          .only_if(kDivides)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "initial_accumulator", kOptimizer<&O::initial_accumulator>, "accumulator of new rows")
          .range(0, 1e6)
          .only_if(kAccumulates)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "l2", kOptimizer<&O::l2>, "factor of a row's values that is added to its gradient")
          .range(0, 1e6)
          .only_if(kOptimized)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "clip_norm", kOptimizer<&O::clip_norm>, "largest norm of a row's gradient; 0: no limit")
          .range(0, 1e6)
          .only_if(kOptimized)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "beta1", kOptimizer<&O::beta1>, "decay of the mean gradient")
          .range(0, 0.999999)
          .only_if(kMoments)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "beta2", kOptimizer<&O::beta2>, "decay of the mean squared gradient")
          .range(0, 0.999999)
          .only_if(kMoments)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "l1", kOptimizer<&O::l1>, "a value is 0 while its sum of gradients is at most this")
          .range(0, 1e6)
          .only_if(kProximal)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "beta", kOptimizer<&O::beta>, "larger values make the first steps smaller")
          .range(0, 1e6)
          .only_if(kProximal)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "schedule", kOptimizer<&O::schedule>,
                   "the learning rate over the run; linear, cosine: it falls to min_factor of its value")
          .one_of({"constant", "linear", "cosine"})
          .only_if(kScheduled)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "warmup_steps", kOptimizer<&O::warmup_steps>,
                   "steps in which the learning rate rises from 0")
          .range(0, kMost53)
          .only_if(kScheduled)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "total_steps", kOptimizer<&O::total_steps>,
                   "step at which the schedule ends; 0: the last step of the run")
          .range(0, kMost53)
          .only_if(kDecaying)
          .fixed_on_resume(),
      FieldBuilder("optimizer", "min_factor", kOptimizer<&O::min_factor>,
                   "share of the learning rate at the end of the schedule")
          .range(0, 1)
          .only_if(kDecaying)
          .fixed_on_resume(),
  };
}

std::vector<Field> linear_fields() {
  using namespace constraints;
  return {
      FieldBuilder("linear", "kind", kLinear<&LinearConfig::kind>, "optimizer of the linear part")
          .one_of({"sgd", "adagrad", "rowwise_adagrad", "ftrl"})
          .only_if(kWide)
          .fixed_on_resume(),
      FieldBuilder("linear", "learning_rate", kLinear<&LinearConfig::learning_rate>, "")
          .range(0, 1e6)
          .only_if(kWide)
          .fixed_on_resume(),
      FieldBuilder("linear", "initial_accumulator", kLinear<&LinearConfig::initial_accumulator>,
                   "accumulator of new rows")
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
      FieldBuilder("gradient_compression", "codec", kGradientCompression<&X::codec>, "row codec of gradients")
          .is_codec(),
      FieldBuilder("gradient_compression", "top_k", kGradientCompression<&X::top_k>,
                   "number of largest columns of a row that are sent, less than the widest rows have; 0: all")
          .range(0, 65536)
          .fixed_on_resume(),
      FieldBuilder("gradient_compression", "age_max", kGradientCompression<&X::age_max>,
                   "number of steps that a gradient may wait; 0: no row filter")
          .range(0, 1e9)
          .fixed_on_resume(),
      FieldBuilder("gradient_compression", "density", kGradientCompression<&X::density>,
                   "requested share of rows that are sent")
          .range(0, 1)
          .fixed_on_resume()
          .only_if(kGradientFilter),
      FieldBuilder("gradient_compression", "threshold_max", kGradientCompression<&X::threshold_max>,
                   "upper limit of the adaptive threshold, times the square root of the step")
          .range(0, 1e30)
          .fixed_on_resume()
          .only_if(kGradientFilter),
      FieldBuilder("gradient_compression", "capacity_rows", kGradientCompression<&X::capacity_rows>,
                   "capacity of the residuals for each other rank, in rows")
          .range(1, 1 << 30)
          .fixed_on_resume()
          .only_if(kGradientsCompressed),
  };
}

std::vector<Field> refresh_compression_fields() {
  using namespace constraints;
  using X = CompressionConfig;
  return {
      FieldBuilder("refresh_compression", "codec", kRefreshCompression<&X::codec>, "row codec of refreshes").is_codec(),
      FieldBuilder("refresh_compression", "age_max", kRefreshCompression<&X::age_max>,
                   "number of steps that a change may wait; 0: no row filter")
          .range(0, 1e9)
          .fixed_on_resume(),
      FieldBuilder("refresh_compression", "density", kRefreshCompression<&X::density>,
                   "requested share of rows that are sent")
          .range(0, 1)
          .fixed_on_resume()
          .only_if(kRefreshFilter),
      FieldBuilder("refresh_compression", "threshold_max", kRefreshCompression<&X::threshold_max>,
                   "upper limit of the adaptive threshold, times the square root of the step")
          .range(0, 1e30)
          .fixed_on_resume()
          .only_if(kRefreshFilter),
      FieldBuilder("refresh_compression", "capacity_rows", kRefreshCompression<&X::capacity_rows>,
                   "capacity of the mirrors for each other rank, in rows")
          .range(1, 1 << 30)
          .fixed_on_resume()
          .only_if(kRefreshesCompressed),
  };
}

}  // namespace gpups::trainer
