// SPDX-License-Identifier: Apache-2.0
// The keys of dense layers.
#include "gpups/top_k_allreduce.hpp"
#include "trainer/config_make.hpp"
#include "trainer/config_uses.hpp"

namespace gpups::trainer {
namespace {

template <auto Member>
constexpr Read kDense = at<&Config::dense, Member>;

std::vector<std::string> top_k_algorithm_names() {
  std::vector<std::string> names{"auto"};
  for (auto const& algorithm : top_k_algorithms()) names.emplace_back(algorithm.name);
  return names;
}

}  // namespace

std::vector<Field> dense_fields() {
  using namespace uses;
  return {
      Make("dense", "optimizer", kDense<&DenseConfig::optimizer>, "how a gradient changes dense layers")
          .one_of({"adam", "adagrad", "sgd", "lamb", "ftrl"})
          .with(kClicks)
          .kept(),
      Make("dense", "learning_rate", kDense<&DenseConfig::learning_rate>, "").range(0, 1e6).with(kClicks).kept(),
      Make("dense", "momentum", kDense<&DenseConfig::momentum>, "").range(0, 0.9999).with(kMomentum).kept(),
      Make("dense", "beta1", kDense<&DenseConfig::beta1>, "of the first moment")
          .range(0, 0.9999)
          .with(kDenseMoments)
          .kept(),
      Make("dense", "beta2", kDense<&DenseConfig::beta2>, "of the second")
          .range(0, 0.999999)
          .with(kDenseMoments)
          .kept(),
      Make("dense", "epsilon", kDense<&DenseConfig::epsilon>, "").range(1e-30, 1e6).with(kDenseDivides).kept(),
      Make("dense", "initial_accumulator", kDense<&DenseConfig::initial_accumulator>, "")
          .range(0, 1e6)
          .with(kDenseAccumulates)
          .kept(),
      Make("dense", "weight_decay", kDense<&DenseConfig::weight_decay>,
           "share of a weight that a step takes, by its rate")
          .range(0, 1e6)
          .with(kDenseDecays)
          .kept(),
      Make("dense", "l1", kDense<&DenseConfig::l1>, "as optimizer.l1").range(0, 1e6).with(kDenseProximal).kept(),
      Make("dense", "l2", kDense<&DenseConfig::l2>, "pulls weights towards 0")
          .range(0, 1e6)
          .with(kDenseProximal)
          .kept(),
      Make("dense", "beta", kDense<&DenseConfig::beta>, "as optimizer.beta")
          .range(1e-30, 1e6)
          .with(kDenseProximal)
          .kept(),
      Make("dense", "exchange", kDense<&DenseConfig::exchange>,
           "exact: sums of all gradients; top_k: of the largest, of layers of 4096 numbers or more; others wait")
          .one_of({"exact", "top_k"})
          .with(kClicks)
          .kept(),
      Make("dense", "density", kDense<&DenseConfig::density>, "share of a layer's gradient that a step sends")
          .range(1e-6, 1)
          .with(kTopK)
          .kept(),
      Make("dense", "density_first", kDense<&DenseConfig::density_first>, "share in the first step of the warm-up")
          .range(1e-6, 1)
          .with(kTopKWarmsUp)
          .kept(),
      Make("dense", "warmup_steps", kDense<&DenseConfig::warmup_steps>,
           "steps in which the share falls from density_first to density")
          .range(0, 1e9)
          .with(kTopK)
          .kept(),
      Make("dense", "momentum_correction", kDense<&DenseConfig::momentum_correction>,
           "true: momentum is taken of all gradients, before the largest are sent")
          .with(kTopKMomentum)
          .kept(),
      Make("dense", "codec", kDense<&DenseConfig::codec>, "of what is sent; what is rounded off waits")
          .one_of({"lossless", "float16", "bfloat16", "int8"})
          .with(kTopK)
          .kept(),
      Make("dense", "algorithm", kDense<&DenseConfig::algorithm>,
           "of the sums; auto: sparse_gather of two ranks, else resparsified")
          .one_of(top_k_algorithm_names())
          .with(kTopK)
          .kept(),
  };
}

}  // namespace gpups::trainer
