// SPDX-License-Identifier: Apache-2.0
// Groups of keys that several kinds of tasks have.
#include <algorithm>
#include <initializer_list>

#include "gpups/top_k_allreduce.hpp"
#include "trainer/config/fields.hpp"

namespace gpups::trainer {
namespace {

template <auto Member>
constexpr FieldAccessor kData = at<&Config::data, Member>;
template <auto Member>
constexpr FieldAccessor kModel = at<&Config::model, Member>;
template <auto Member>
constexpr FieldAccessor kOptimizer = at<&Config::optimizer, Member>;
template <auto Member>
constexpr FieldAccessor kDense = at<&Config::dense, Member>;

bool is(std::string const& word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Constraint const kAccumulates{[](Config const& c) {
                                return is(c.optimizer.kind, {"adagrad", "rowwise_adagrad", "ftrl"});
                              },
                              "only optimizer.kind = \"adagrad\", \"rowwise_adagrad\" or \"ftrl\" uses it"};
Constraint const kDivides{[](Config const& c) {
                            return !is(c.optimizer.kind, {"sgd", "ftrl"});
                          },
                          "optimizer.kind = \"sgd\" and \"ftrl\" do not use it"};
Constraint const kMoments{[](Config const& c) {
                            return is(c.optimizer.kind, {"adam", "lamb"});
                          },
                          "only optimizer.kind = \"adam\" or \"lamb\" uses it"};
Constraint const kProximal{[](Config const& c) { return c.optimizer.kind == "ftrl"; },
                           "only optimizer.kind = \"ftrl\" uses it"};
Constraint const kDecaying{[](Config const& c) { return c.optimizer.schedule != "constant"; },
                           "optimizer.schedule is \"constant\""};

Constraint const kDenseMomentum{[](Config const& c) { return c.dense.optimizer == "sgd"; },
                                "only dense.optimizer = \"sgd\" uses it"};
Constraint const kDenseMoments{[](Config const& c) {
                                 return is(c.dense.optimizer, {"adam", "lamb"});
                               },
                               "only dense.optimizer = \"adam\" or \"lamb\" uses it"};
Constraint const kDenseAccumulates{[](Config const& c) {
                                     return is(c.dense.optimizer, {"adagrad", "ftrl"});
                                   },
                                   "only dense.optimizer = \"adagrad\" or \"ftrl\" uses it"};
Constraint const kDenseDivides{[](Config const& c) {
                                 return !is(c.dense.optimizer, {"sgd", "ftrl"});
                               },
                               "dense.optimizer = \"sgd\" and \"ftrl\" do not use it"};
Constraint const kDenseDecays{
    [](Config const& c) { return c.dense.optimizer != "ftrl"; },
    "dense.optimizer = \"ftrl\" computes the weights from sums of gradients in each step: set dense.l2"};
Constraint const kDenseProximal{[](Config const& c) { return c.dense.optimizer == "ftrl"; },
                                "only dense.optimizer = \"ftrl\" uses it"};
bool sends_top_k(Config const& c) { return c.dense.compression == "top_k"; }
Constraint const kTopK{sends_top_k, "only dense.compression = \"top_k\" uses it"};
Constraint const kWarmsUp{[](Config const& c) { return c.dense.warmup_steps > 0; },
                          "there is no warm-up: set dense.compression = \"top_k\" and dense.warmup_steps"};
Constraint const kTopKMomentum{
    [](Config const& c) { return sends_top_k(c) && c.dense.optimizer == "sgd" && c.dense.momentum > 0; },
    "only dense.compression = \"top_k\" with dense.optimizer = \"sgd\" and dense.momentum > 0 uses it"};

std::vector<std::string> top_k_algorithm_names() {
  std::vector<std::string> names{"auto"};
  for (auto const& algorithm : top_k_algorithms()) names.emplace_back(algorithm.name);
  return names;
}

}  // namespace

Constraint const kValidIsCut{[](Config const& c) { return c.data.valid.empty(); }, "data.valid has the samples"};
Constraint const kTestIsCut{[](Config const& c) { return c.data.test.empty(); }, "data.test has the samples"};
Constraint const kAddsL2{[](Config const& c) {
                           return !is(c.optimizer.kind, {"ftrl", "lamb"});
                         },
                         "optimizer.kind = \"ftrl\" and \"lamb\" use optimizer.l2 in ways of their own"};
Constraint const kAnyIsCut{[](Config const& c) { return c.data.valid.empty() || c.data.test.empty(); },
                           "no samples are held out at random"};

FieldBuilder train_file() { return {"data", "train", kData<&DataConfig::train>, "file of training samples"}; }
FieldBuilder valid_file() {
  return {"data", "valid", kData<&DataConfig::valid>, "file of validation samples; empty: none"};
}
FieldBuilder test_file() { return {"data", "test", kData<&DataConfig::test>, "file of test samples; empty: none"}; }
FieldBuilder bad_share_max() {
  return FieldBuilder("data", "bad_share_max", kData<&DataConfig::bad_share_max>,
                      "share of bad lines above which the run stops")
      .range(0, 1);
}
namespace {

template <auto Member>
FieldPointer in_table(Config& config) {
  return &(config.data.table.*Member);
}

}  // namespace

std::vector<Field> table_fields() {
  using T = TableSettings;
  return {
      FieldBuilder("data", "separator", in_table<&T::separator>,
                   "between columns: auto, tab, comma, semicolon, bar, colon, blanks, or the text itself"),
      FieldBuilder("data", "heading", in_table<&T::heading>, "whether the first line names the columns")
          .one_of({"auto", "yes", "no"}),
      FieldBuilder("data", "comment", in_table<&T::comment>, "what comment lines begin with; empty: there are none"),
      FieldBuilder("data", "columns", in_table<&T::columns>,
                   "the columns of a sample, each by its name or its number from 1; empty: by their order or names")
          .keeps_order()};
}
FieldBuilder valid_share() {
  return FieldBuilder("data", "valid_share", kData<&DataConfig::valid_share>, "share of samples for validation")
      .range(0, 0.45);
}
FieldBuilder test_share() {
  return FieldBuilder("data", "test_share", kData<&DataConfig::test_share>, "share of samples for the test")
      .range(0, 0.45);
}
FieldBuilder split_seed() {
  return FieldBuilder("data", "split_seed", kData<&DataConfig::split_seed>,
                      "seed of the choice of validation and test samples")
      .range(0, kMost53);
}

std::vector<Field> row_fields() {
  using M = ModelConfig;
  return {
      FieldBuilder("model", "dim", kModel<&M::dim>, "number of values in a row").range(1, 65536).fixed_on_resume(),
      FieldBuilder("model", "init", kModel<&M::init>, "distribution of initial values")
          .one_of({"normal", "uniform", "constant"})
          .fixed_on_resume(),
      FieldBuilder("model", "init_scale", kModel<&M::init_scale>, "standard deviation, half width, or the constant")
          .range(0, 1e6)
          .fixed_on_resume(),
      FieldBuilder("model", "value_type", kModel<&M::value_type>, "data type of rows (in graphs: of entities)")
          .one_of({"float32", "bfloat16", "float16"})
          .fixed_on_resume(),
  };
}

std::vector<Field> optimizer_fields() {
  using O = OptimizerConfig;
  return {
      FieldBuilder("optimizer", "kind", kOptimizer<&O::kind>, "optimizer of rows")
          .one_of({"sgd", "adagrad", "rowwise_adagrad", "adam", "lamb", "ftrl"})
          .fixed_on_resume(),
      FieldBuilder("optimizer", "learning_rate", kOptimizer<&O::learning_rate>, "").range(0, 1e6).fixed_on_resume(),
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
          .fixed_on_resume(),
      FieldBuilder("optimizer", "clip_norm", kOptimizer<&O::clip_norm>, "largest norm of a row's gradient; 0: no limit")
          .range(0, 1e6)
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
  };
}

std::vector<Field> schedule_fields() {
  using O = OptimizerConfig;
  return {
      FieldBuilder("optimizer", "schedule", kOptimizer<&O::schedule>,
                   "the learning rate over the run; linear, cosine: it falls to min_factor of its value")
          .one_of({"constant", "linear", "cosine"})
          .fixed_on_resume(),
      FieldBuilder("optimizer", "warmup_steps", kOptimizer<&O::warmup_steps>,
                   "steps in which the learning rate rises from 0")
          .range(0, kMost53)
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

std::vector<Field> dense_fields() {
  using D = DenseConfig;
  return {
      FieldBuilder("dense", "optimizer", kDense<&D::optimizer>, "optimizer of dense layers")
          .one_of({"adam", "adagrad", "sgd", "lamb", "ftrl"})
          .fixed_on_resume(),
      FieldBuilder("dense", "learning_rate", kDense<&D::learning_rate>, "").range(0, 1e6).fixed_on_resume(),
      FieldBuilder("dense", "momentum", kDense<&D::momentum>, "")
          .range(0, 0.9999)
          .only_if(kDenseMomentum)
          .fixed_on_resume(),
      FieldBuilder("dense", "beta1", kDense<&D::beta1>, "decay of the mean gradient")
          .range(0, 0.9999)
          .only_if(kDenseMoments)
          .fixed_on_resume(),
      FieldBuilder("dense", "beta2", kDense<&D::beta2>, "decay of the mean squared gradient")
          .range(0, 0.999999)
          .only_if(kDenseMoments)
          .fixed_on_resume(),
      FieldBuilder("dense", "epsilon", kDense<&D::epsilon>, "")
          .range(1e-30, 1e6)
          .only_if(kDenseDivides)
          .fixed_on_resume(),
      FieldBuilder("dense", "initial_accumulator", kDense<&D::initial_accumulator>, "")
          .range(0, 1e6)
          .only_if(kDenseAccumulates)
          .fixed_on_resume(),
      FieldBuilder("dense", "weight_decay", kDense<&D::weight_decay>,
                   "share of a weight that a step subtracts, times the learning rate")
          .range(0, 1e6)
          .only_if(kDenseDecays)
          .fixed_on_resume(),
      FieldBuilder("dense", "l1", kDense<&D::l1>, "as optimizer.l1")
          .range(0, 1e6)
          .only_if(kDenseProximal)
          .fixed_on_resume(),
      FieldBuilder("dense", "l2", kDense<&D::l2>, "weight of the squared weights in the loss")
          .range(0, 1e6)
          .only_if(kDenseProximal)
          .fixed_on_resume(),
      FieldBuilder("dense", "beta", kDense<&D::beta>, "as optimizer.beta")
          .range(1e-30, 1e6)
          .only_if(kDenseProximal)
          .fixed_on_resume(),
      FieldBuilder("dense", "precision", kDense<&D::precision>,
                   "numbers that layers multiply on a GPU; tf32 and bfloat16 use its tensor cores")
          .one_of({"fp32", "tf32", "bfloat16"})
          .fixed_on_resume(),
      FieldBuilder("dense", "compression", kDense<&D::compression>,
                   "none: all gradients are sent; top_k: layers of 4096 numbers or more send their largest elements")
          .one_of({"none", "top_k"})
          .fixed_on_resume(),
      FieldBuilder("dense", "density", kDense<&D::density>, "share of a layer's gradient that is sent in a step")
          .range(1e-6, 1)
          .only_if(kTopK)
          .fixed_on_resume(),
      FieldBuilder("dense", "initial_density", kDense<&D::initial_density>,
                   "share that is sent in the first step of the warm-up")
          .range(1e-6, 1)
          .only_if(kTopK)
          .only_if(kWarmsUp)
          .fixed_on_resume(),
      FieldBuilder("dense", "warmup_steps", kDense<&D::warmup_steps>,
                   "steps in which the share falls from initial_density to density")
          .range(0, 1e9)
          .only_if(kTopK)
          .fixed_on_resume(),
      FieldBuilder("dense", "momentum_correction", kDense<&D::momentum_correction>,
                   "true: momentum is applied before the largest elements are selected")
          .only_if(kTopKMomentum)
          .fixed_on_resume(),
      FieldBuilder("dense", "codec", kDense<&D::codec>,
                   "number format of sent elements; rounding errors are sent later")
          .one_of({"lossless", "float16", "bfloat16", "int8"})
          .only_if(kTopK)
          .fixed_on_resume(),
      FieldBuilder("dense", "algorithm", kDense<&D::algorithm>,
                   "algorithm of the sums; auto: sparse_allgather for two ranks, else spardl")
          .one_of(top_k_algorithm_names())
          .only_if(kTopK)
          .fixed_on_resume(),
  };
}

FieldBuilder ranking_cutoffs() {
  return FieldBuilder("eval", "hits", at<&Config::eval, &EvalConfig::hits>,
                      "the k of Hits@k, or of recall@k and ndcg@k")
      .range(1, kMost32);
}

FieldBuilder reuse_batches() {
  return FieldBuilder("train", "reuse_batches", at<&Config::train, &TrainConfig::reuse_batches>,
                      "true: epochs have the same batches, each prepared once; needs about 50 bytes per sample")
      .fixed_on_resume();
}

FieldBuilder expire_after() {
  return FieldBuilder("train", "expire_after", at<&Config::train, &TrainConfig::expire_after>,
                      "rows without an update in this many steps are removed after each epoch; 0: never")
      .range(0, 4e9)
      .fixed_on_resume();
}

FieldBuilder initial_placement() {
  return FieldBuilder("placement", "initial", at<&Config::placement, &PlacementConfig::initial>,
                      "hash: samples in random order; graph: ranks get samples that read the same rows")
      .one_of({"hash", "graph"})
      .fixed_on_resume();
}

}  // namespace gpups::trainer
