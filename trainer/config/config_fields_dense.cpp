// SPDX-License-Identifier: Apache-2.0
// The keys of [dense].
#include "gpups/top_k_allreduce.hpp"
#include "trainer/config/config_constraints.hpp"
#include "trainer/config/config_fields.hpp"

namespace gpups::trainer {
namespace {

template <auto Member>
constexpr FieldAccessor kDense = at<&Config::dense, Member>;

std::vector<std::string> top_k_algorithm_names() {
  std::vector<std::string> names{"auto"};
  for (auto const& algorithm : top_k_algorithms()) names.emplace_back(algorithm.name);
  return names;
}

}  // namespace

std::vector<Field> dense_fields() {
  using namespace constraints;
  return {
      FieldBuilder("dense", "optimizer", kDense<&DenseConfig::optimizer>, "optimizer of dense layers")
          .one_of({"adam", "adagrad", "sgd", "lamb", "ftrl"})
          .only_if(kClicks)
          .fixed_on_resume(),
      FieldBuilder("dense", "learning_rate", kDense<&DenseConfig::learning_rate>, "")
          .range(0, 1e6)
          .only_if(kClicks)
          .fixed_on_resume(),
      FieldBuilder("dense", "momentum", kDense<&DenseConfig::momentum>, "")
          .range(0, 0.9999)
          .only_if(kMomentum)
          .fixed_on_resume(),
      FieldBuilder("dense", "beta1", kDense<&DenseConfig::beta1>, "decay of the mean gradient")
          .range(0, 0.9999)
          .only_if(kDenseMoments)
          .fixed_on_resume(),
      FieldBuilder("dense", "beta2", kDense<&DenseConfig::beta2>, "decay of the mean squared gradient")
          .range(0, 0.999999)
          .only_if(kDenseMoments)
          .fixed_on_resume(),
      FieldBuilder("dense", "epsilon", kDense<&DenseConfig::epsilon>, "")
          .range(1e-30, 1e6)
          .only_if(kDenseDivides)
          .fixed_on_resume(),
      FieldBuilder("dense", "initial_accumulator", kDense<&DenseConfig::initial_accumulator>, "")
          .range(0, 1e6)
          .only_if(kDenseAccumulates)
          .fixed_on_resume(),
      FieldBuilder("dense", "weight_decay", kDense<&DenseConfig::weight_decay>,
                   "share of a weight that a step subtracts, times the learning rate")
          .range(0, 1e6)
          .only_if(kDenseDecays)
          .fixed_on_resume(),
      FieldBuilder("dense", "l1", kDense<&DenseConfig::l1>, "as optimizer.l1")
          .range(0, 1e6)
          .only_if(kDenseProximal)
          .fixed_on_resume(),
      FieldBuilder("dense", "l2", kDense<&DenseConfig::l2>, "weight of the squared weights in the loss")
          .range(0, 1e6)
          .only_if(kDenseProximal)
          .fixed_on_resume(),
      FieldBuilder("dense", "beta", kDense<&DenseConfig::beta>, "as optimizer.beta")
          .range(1e-30, 1e6)
          .only_if(kDenseProximal)
          .fixed_on_resume(),
      FieldBuilder("dense", "compression", kDense<&DenseConfig::compression>,
                   "none: all gradients are sent; top_k: layers of 4096 numbers or more send their largest elements")
          .one_of({"none", "top_k"})
          .only_if(kClicks)
          .fixed_on_resume(),
      FieldBuilder("dense", "density", kDense<&DenseConfig::density>,
                   "share of a layer's gradient that is sent in a step")
          .range(1e-6, 1)
          .only_if(kTopK)
          .fixed_on_resume(),
      FieldBuilder("dense", "initial_density", kDense<&DenseConfig::initial_density>,
                   "share that is sent in the first step of the warm-up")
          .range(1e-6, 1)
          .only_if(kTopKWarmsUp)
          .fixed_on_resume(),
      FieldBuilder("dense", "warmup_steps", kDense<&DenseConfig::warmup_steps>,
                   "steps in which the share falls from initial_density to density")
          .range(0, 1e9)
          .only_if(kTopK)
          .fixed_on_resume(),
      FieldBuilder("dense", "momentum_correction", kDense<&DenseConfig::momentum_correction>,
                   "true: momentum is applied before the largest elements are selected")
          .only_if(kTopKMomentum)
          .fixed_on_resume(),
      FieldBuilder("dense", "codec", kDense<&DenseConfig::codec>,
                   "number format of sent elements; rounding errors are sent later")
          .one_of({"lossless", "float16", "bfloat16", "int8"})
          .only_if(kTopK)
          .fixed_on_resume(),
      FieldBuilder("dense", "algorithm", kDense<&DenseConfig::algorithm>,
                   "algorithm of the sums; auto: sparse_allgather for two ranks, else spardl")
          .one_of(top_k_algorithm_names())
          .only_if(kTopK)
          .fixed_on_resume(),
  };
}

}  // namespace gpups::trainer
