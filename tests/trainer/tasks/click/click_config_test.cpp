// SPDX-License-Identifier: Apache-2.0
// Settings of click-through models: defaults, rejected settings, and settings that must not change on resume.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/expect_error.hpp"
#include "trainer/config/config.hpp"
#include "trainer/config/fields.hpp"
#include "trainer/config/table_settings.hpp"
#include "trainer/config/task_kind.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/click/click_kind.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::click_config_test {
namespace {

using test::expect_error;

Config parse(std::string const& text, std::vector<SettingOverride> const& overrides = {}) {
  return parse_config("[data]\nreader = 'clicks'\ntrain = 'a.tsv'\n" + text, "run.toml", "/data", overrides);
}

TEST(ClickConfig, UsesDefaultsOfClickModels) {
  Config const c = parse("");
  EXPECT_EQ(c.model.name, "dlrm");
  EXPECT_EQ(c.model.dim, 16);
  EXPECT_EQ(c.model.init_scale, 0.01);
  EXPECT_EQ(c.data.valid, "");
  EXPECT_EQ(c.data.test, "");
  EXPECT_EQ(c.data.valid_share, 0);
  EXPECT_EQ(c.data.test_share, 0.1);
  EXPECT_EQ(c.settings<ClickSettings>().numeric_columns, 13);
  EXPECT_EQ(c.settings<ClickSettings>().categorical_columns, 26);
  // Given values replace defaults, in the file or as overrides, before or after the reader is set.
  EXPECT_EQ(parse("[model]\ndim = 8\n").model.dim, 8);
  EXPECT_EQ(parse("[model]\nname = 'fm'\n").model.name, "fm");
  EXPECT_EQ(parse("", {"model.init_scale=0.5"}).model.init_scale, 0.5);
  EXPECT_EQ(parse_config("", "t", "/", {"model.dim=8", "data.train=x", "data.reader=clicks"}).model.dim, 8);
  // Graph models keep their own defaults.
  Config const graph = parse_config("", "t", "/");
  EXPECT_EQ(graph.model.name, "complex");
  EXPECT_EQ(graph.model.dim, 100);
  EXPECT_EQ(graph.data.train, "train.txt");
}

TEST(ClickConfig, RejectsMissingTrainingFile) {
  expect_error([] { parse_config("[data]\nreader = 'clicks'\n", "run.toml", "/", {}); },
               {"run.toml: data.train is empty (there are no samples to train on): set it to a file"});
}

TEST(ClickConfig, RejectsModelOfAnotherReader) {
  for (char const* model : {"complex", "distmult"}) {
    expect_error([&] { parse(std::string("[model]\nname = '") + model + "'\n"); },
                 {model, "data.reader is \"clicks\"", "use one of logistic, fm, deepfm, dlrm, dcnv2"});
  }
  for (std::string const& model : click_kind().models()) {
    expect_error([&] { parse_config("[model]\nname = '" + model + "'\n", "run.toml", "/", {}); },
                 {("model.name is \"" + model + "\" and data.reader is \"triples\"").c_str(), "use one of "});
  }
  expect_error([] { parse("[model]\nname = 'dlmr'\n"); }, {"\"dlmr\" (unknown)", "did you mean \"dlrm\"?"});
}

TEST(ClickConfig, RejectsSettingsTheModelDoesNotUse) {
  struct Case {
    char const *model, *setting, *why;
  };
  for (auto const& [model, setting, why] : std::initializer_list<Case>{
           {"logistic", "model.dim=4", "a linear part only"},
           {"logistic", "model.init=uniform", "a linear part only"},
           {"logistic", "model.init_scale=1", "a linear part only"},
           {"logistic", "model.value_type=bfloat16", "a linear part only"},
           {"logistic", "model.admission_count=2", "a linear part only"},
           {"logistic", "model.row_dropout=0.1", "a linear part only"},
           {"logistic", "model.dropout=0.1", "\"deepfm\", \"dlrm\" or \"dcnv2\""},
           {"logistic", "optimizer.kind=sgd", "a linear part only"},
           {"logistic", "optimizer.learning_rate=1", "a linear part only"},
           {"logistic", "optimizer.epsilon=1", "a linear part only"},
           {"logistic", "optimizer.initial_accumulator=1", "a linear part only"},
           {"logistic", "optimizer.l2=1", "a linear part only"},
           {"logistic", "optimizer.clip_norm=1", "a linear part only"},
           {"logistic", "model.wide=true", "\"dlrm\" or \"dcnv2\""},
           {"fm", "model.wide=true", "\"dlrm\" or \"dcnv2\""},
           {"fm", "model.top=[8]", "\"deepfm\", \"dlrm\" or \"dcnv2\""},
           {"fm", "model.dims=[\"C1:8\"]", "model.name = \"dcnv2\""},
           {"deepfm", "model.bottom=[8]", "model.name = \"dlrm\""},
           {"dlrm", "model.cross_layers=1", "model.name = \"dcnv2\""},
           {"dlrm", "model.dims=[\"C1:8\"]", "model.name = \"dcnv2\""},
           {"dlrm", "linear.learning_rate=1", "set model.wide"},
           {"dcnv2", "linear.admission_count=2", "set model.wide"},
           {"dcnv2", "linear.initial_accumulator=1", "no linear part"},
           {"dcnv2", "model.bottom=[8]", "model.name = \"dlrm\""},
           {"dlrm", "model.pooling=mean", "no category has several values"},
           {"dlrm", "model.l2=0.1", "\"interactions\", \"text\" or \"edges\" uses it"},
           {"dlrm", "model.loss=softmax", "only data.reader = \"triples\" or \"wordnet\" uses it"},
           {"dlrm", "model.negatives=3",
            "only data.reader = \"triples\", \"wordnet\", \"interactions\", \"text\" or \"edges\" uses it"},
           {"dlrm", "model.n3=0.1", "only data.reader = \"triples\" or \"wordnet\" uses it"},
           {"dlrm", "eval.hits=[1]", "only data.reader = \"triples\", \"wordnet\" or \"interactions\" uses it"},
           {"dlrm", "eval.samples_max=3", "only data.reader = \"triples\" or \"wordnet\" uses it"},
           {"dlrm", "data.split_seed=3", "only data.reader = "},
           {"dlrm", "dense.momentum=0.5", "dense.optimizer = \"sgd\""},
           {"dlrm", "dense.initial_accumulator=0.5", "dense.optimizer = \"adagrad\" or \"ftrl\""},
           {"dlrm", "dense.l1=0.5", "dense.optimizer = \"ftrl\""},
           {"dlrm", "dense.l2=0.5", "dense.optimizer = \"ftrl\""},
           {"dlrm", "dense.beta=0.5", "dense.optimizer = \"ftrl\""},
           {"fm", "linear.l1=0.5", "linear.kind = \"ftrl\""},
           {"fm", "linear.beta=0.5", "linear.kind = \"ftrl\""}}) {
    expect_error(
        [&] {
          parse("", {std::string("model.name=") + model, setting});
        },
        {(std::string("--set ") + setting).c_str(), "has no effect here", why});
  }
}

TEST(ClickConfig, RejectsSettingsMadeIneffectiveByOthers) {
  auto const reject = [](std::vector<SettingOverride> const& settings, char const* why) {
    expect_error([&] { parse("", settings); }, {"has no effect here", why});
  };
  reject({"dense.optimizer=sgd", "dense.beta1=0.5"}, "dense.optimizer = \"adam\"");
  reject({"dense.optimizer=sgd", "dense.epsilon=0.5"}, "dense.optimizer = \"sgd\" and \"ftrl\" do not use it");
  reject({"dense.optimizer=adagrad", "dense.beta2=0.5"}, "dense.optimizer = \"adam\" or \"lamb\"");
  reject({"dense.optimizer=ftrl", "dense.beta1=0.5"}, "dense.optimizer = \"adam\" or \"lamb\"");
  reject({"dense.optimizer=ftrl", "dense.epsilon=0.5"}, "\"ftrl\" do not use it");
  reject({"dense.optimizer=ftrl", "dense.weight_decay=0.5"}, "from sums of gradients in each step: set dense.l2");
  reject({"dense.optimizer=lamb", "dense.momentum=0.5"}, "dense.optimizer = \"sgd\"");
  reject({"dense.optimizer=lamb", "dense.initial_accumulator=1"}, "dense.optimizer = \"adagrad\" or \"ftrl\"");
  reject({"dense.density=0.5"}, "only dense.compression = \"top_k\" uses it");
  reject({"dense.codec=int8"}, "only dense.compression = \"top_k\" uses it");
  reject({"dense.algorithm=ssar_split_allgather"}, "only dense.compression = \"top_k\" uses it");
  reject({"dense.warmup_steps=5"}, "only dense.compression = \"top_k\" uses it");
  reject({"dense.compression=top_k", "dense.initial_density=0.5"}, "there is no warm-up: set");
  reject({"dense.compression=top_k", "dense.momentum_correction=true"},
         "dense.optimizer = \"sgd\" and dense.momentum > 0 uses it");
  reject({"dense.compression=top_k", "dense.optimizer=sgd", "dense.momentum=0", "dense.momentum_correction=true"},
         "dense.optimizer = \"sgd\" and dense.momentum > 0 uses it");
  EXPECT_NO_THROW(parse("", {"dense.compression=top_k", "dense.optimizer=sgd", "dense.momentum_correction=true",
                             "dense.warmup_steps=5", "dense.initial_density=0.5", "dense.algorithm=spardl"}));
  expect_error([] { parse("", {"dense.compression=top_k", "dense.algorithm=ring"}); }, {"\"ring\"", "spardl"});
  expect_error([] { parse("", {"dense.compression=topk"}); }, {"did you mean \"top_k\"?"});
  expect_error([] { parse("", {"dense.compression=top_k", "dense.density=0"}); }, {"dense.density"});
  expect_error(
      [] {
        parse("", {"dense.compression=top_k", "dense.density=0.5", "dense.warmup_steps=3"});
      },
      {"dense.density is 0.5 and dense.initial_density is 0.25",
       "set dense.initial_density to at least dense.density"});
  EXPECT_NO_THROW(parse("", {"dense.compression=top_k", "dense.density=0.5"}));
  reject({"linear.l1=0.5"}, "a model with a linear part uses it");
  reject({"model.wide=true", "linear.kind=sgd", "linear.initial_accumulator=1"}, "keeps no state");
  reject({"data.test=b.tsv", "data.test_share=0.1"}, "data.test has the samples");
  reject({"data.valid=b.tsv", "data.valid_share=0.1"}, "data.valid has the samples");
  EXPECT_NO_THROW(parse("", {"data.multi_hot=[\"C1\"]", "model.pooling=mean"}));
  EXPECT_NO_THROW(parse("", {"model.wide=true", "linear.kind=rowwise_adagrad", "linear.initial_accumulator=1"}));
  EXPECT_NO_THROW(parse("", {"dense.optimizer=lamb", "dense.beta1=0.5", "dense.epsilon=1", "dense.weight_decay=1"}));
  EXPECT_NO_THROW(parse("", {"dense.optimizer=ftrl", "dense.initial_accumulator=1", "dense.l1=1", "dense.l2=1"}));
  EXPECT_NO_THROW(parse("", {"model.wide=true", "linear.kind=ftrl", "linear.initial_accumulator=1"}));
  expect_error(
      [] {
        parse("", {"model.wide=true", "linear.kind=ftrl", "optimizer.schedule=cosine"});
      },
      {"the optimizer of rows is \"ftrl\"", "would shrink", "set optimizer.schedule = \"constant\""});
  expect_error([] { parse("", {"optimizer.kind=ftrl", "optimizer.schedule=linear"}); }, {"schedule is \"linear\""});
  EXPECT_NO_THROW(parse("", {"dense.optimizer=ftrl", "optimizer.schedule=linear"}));
}

TEST(ClickConfig, ProgressiveValidationNeedsTheOrderOfTheFile) {
  EXPECT_EQ(parse("").settings<ClickSettings>().order, "shuffled");
  EXPECT_EQ(parse("", {"eval.progressive=true"}).settings<ClickSettings>().order, "file");
  EXPECT_EQ(parse("[eval]\nprogressive = true\n", {"eval.progressive=false"}).settings<ClickSettings>().order,
            "shuffled");
  expect_error(
      [] {
        parse("", {"eval.progressive=true", "data.order=shuffled"});
      },
      {"run.toml: eval.progressive is true and data.order is \"shuffled\"", "would be too good",
       "set data.order = \"file\" or eval.progressive = false"});
  expect_error([] { parse("", {"data.order=random"}); }, {"\"random\" (unknown)"});
  expect_error([] { parse("", {"train.shuffle=false"}); }, {"there is no key 'shuffle'", "did you mean data.order?"});
}

TEST(ClickConfig, GraphModelsRejectClickSettings) {
  for (char const* setting : {"data.numeric_columns=3",   "data.categorical_columns=3",
                              "data.multi_hot=[\"C1\"]",  "data.weighted=[\"C1\"]",
                              "data.order=file",          "model.numeric_features=none",
                              "model.pooling=mean",       "model.dims=[\"C1:3\"]",
                              "model.shared=[\"C1,C2\"]", "model.admission_count=2",
                              "model.bottom=[3]",         "model.top=[3]",
                              "model.cross_layers=3",     "model.wide=true",
                              "model.row_dropout=0.1",    "model.dropout=0.1",
                              "linear.kind=sgd",          "linear.l2=0.1",
                              "dense.optimizer=sgd",      "dense.learning_rate=1",
                              "dense.weight_decay=1",     "train.expire_after=5",
                              "eval.progressive=true"}) {
    expect_error([&] { parse_config("", "t", "/", {setting}); },
                 {(std::string("--set ") + setting).c_str(), "has no effect here"});
  }
}

TEST(ClickConfig, RejectsWrongTypesAndValuesOutOfRange) {
  expect_error([] { parse("[model]\ntop = 8\n"); }, {"model.top is an integer", "write an array of integers"});
  expect_error([] { parse("[model]\ntop = [8, 'x']\n"); }, {"model.top contains a string", "array of integers"});
  expect_error([] { parse("[model]\ntop = [8, 1.5]\n"); }, {"model.top contains a number with a fraction"});
  expect_error([] { parse("[model]\nbottom = [0]\n"); }, {"model.bottom is 0", "from 1 to 65536"});
  expect_error([] { parse("", {"model.shared=[1]"}); }, {"model.shared contains an integer", "array of strings"});
  expect_error([] { parse("", {"model.shared=C1,C2"}); }, {"model.shared is 'C1,C2'", "write an array of strings"});
  expect_error([] { parse("", {"model.wide=1"}); }, {"model.wide is an integer", "write true or false"});
  expect_error([] { parse("", {"data.multi_hot=[\"C1\", \"C1\"]"}); }, {"data.multi_hot contains C1 twice"});
  expect_error([] { parse("", {"model.dropout=1"}); }, {"model.dropout is 1", "from 0 to 0.99"});
  expect_error([] { parse("", {"model.row_dropout=-0.1"}); }, {"model.row_dropout", "out of range"});
  expect_error([] { parse("", {"data.test_share=0.5"}); }, {"data.test_share is 0.5", "from 0 to 0.45"});
  expect_error([] { parse("", {"data.categorical_columns=4096"}); },
               {"data.categorical_columns is 4096", "from 0 to 4095"});
  expect_error([] { parse("", {"model.admission_count=0"}); }, {"model.admission_count is 0"});
  expect_error([] { parse("", {"dense.beta1=1"}); }, {"dense.beta1 is 1"});
  expect_error([] { parse("", {"dense.epsilon=0"}); }, {"dense.epsilon is 0"});
  expect_error([] { parse("", {"dense.optimizer=adamw"}); }, {"\"adamw\" (unknown)", "did you mean \"adam\"?"});
  expect_error([] { parse("", {"dense.optimizer=rowwise_adagrad"}); }, {"\"rowwise_adagrad\" (unknown)"});
  expect_error([] { parse("", {"model.wide=true", "linear.kind=lamb"}); }, {"\"lamb\" (unknown)"});
  expect_error([] { parse("", {"dense.optimizer=ftrl", "dense.l1=-1"}); }, {"dense.l1 is -1"});
}

TEST(ClickConfig, LayerListsKeepOrderAndMayBeEmpty) {
  EXPECT_EQ(parse("[model]\ntop = [8, 32, 8]\n").settings<ClickSettings>().top, (std::vector<std::int64_t>{8, 32, 8}));
  EXPECT_TRUE(parse("[model]\ntop = []\n").settings<ClickSettings>().top.empty());
  EXPECT_EQ(parse("", {"data.multi_hot=[\"C2\", \"C1\"]"}).settings<ClickSettings>().multi_hot,
            (std::vector<std::string>{"C1", "C2"}));
}

std::vector<SettingOverride> changed() {
  return {"model.name=dcnv2",      "model.wide=true",
          "model.dims=[\"C1:8\"]", "model.shared=[\"C2,C3\"]",
          "model.top=[4, 2]",      "data.multi_hot=[\"C\\u00e9\"]",
          "model.pooling=mean",    "dense.optimizer=sgd",
          "dense.momentum=0.25",   "linear.l2=0.5",
          "eval.progressive=true", "model.row_dropout=0.25"};
}

TEST(ClickConfig, ResolvedConfigurationRoundTrips) {
  Config const once = parse("", changed());
  Config const again = parse_config(resolved(once), "resolved.toml", "/elsewhere");
  EXPECT_EQ(resolved(again), resolved(once));
  EXPECT_EQ(again.settings<ClickSettings>().dims, once.settings<ClickSettings>().dims);
  EXPECT_EQ(again.settings<ClickSettings>().multi_hot, once.settings<ClickSettings>().multi_hot);
  for (std::string const& model : click_kind().models()) {
    Config const c = parse("", {"model.name=" + model});
    EXPECT_EQ(resolved(parse_config(resolved(c), "resolved.toml", "/")), resolved(c)) << model;
  }
}

// Ranks must agree on every key of click models that has an effect, and on no other.
TEST(ClickConfig, CommonSettingsIncludeModelStructure) {
  std::set<std::string> common;
  for (auto const& [name, value] : common_settings(parse("", changed()))) common.insert(name);
  for (char const* name : {"data.train",
                           "data.numeric_columns",
                           "data.categorical_columns",
                           "data.multi_hot",
                           "data.weighted",
                           "data.order",
                           "model.numeric_features",
                           "model.pooling",
                           "model.dims",
                           "model.shared",
                           "model.admission_count",
                           "model.top",
                           "model.wide",
                           "model.row_dropout",
                           "model.cross_layers",
                           "model.dropout",
                           "linear.kind",
                           "linear.learning_rate",
                           "linear.l2",
                           "linear.initial_accumulator",
                           "linear.admission_count",
                           "dense.optimizer",
                           "dense.learning_rate",
                           "dense.momentum",
                           "dense.weight_decay",
                           "train.expire_after",
                           "eval.progressive"}) {
    EXPECT_TRUE(common.contains(name)) << name;
  }
  for (char const* name : {"model.bottom", "dense.beta1", "model.loss", "eval.hits", "run.ranks", "data.folder"}) {
    EXPECT_FALSE(common.contains(name)) << name;
  }
}

TEST(ClickConfig, ResumeDifferencesIncludeModelStructure) {
  std::vector<SettingOverride> const base{"model.name=dcnv2", "model.wide=true", "data.multi_hot=[\"C4\"]"};
  Config const c = parse("", base);
  for (char const* setting : {"data.numeric_columns=3",
                              "data.categorical_columns=9",
                              "data.multi_hot=[\"C5\"]",
                              "data.weighted=[\"C6\"]",
                              "data.order=file",
                              "model.numeric_features=both",
                              "model.pooling=mean",
                              "model.dims=[\"C1:3\"]",
                              "model.shared=[\"C1,C2\"]",
                              "model.admission_count=2",
                              "model.value_type=float16",
                              "model.top=[3]",
                              "model.cross_layers=2",
                              "model.wide=false",
                              "model.row_dropout=0.1",
                              "model.dropout=0.1",
                              "linear.kind=sgd",
                              "linear.learning_rate=1",
                              "linear.initial_accumulator=1",
                              "linear.l2=1",
                              "linear.admission_count=3",
                              "dense.optimizer=sgd",
                              "dense.learning_rate=1",
                              "dense.beta1=0",
                              "dense.beta2=0",
                              "dense.epsilon=1",
                              "dense.weight_decay=1",
                              "dense.optimizer=lamb",
                              "train.expire_after=4"}) {
    auto with = base;
    with.emplace_back(setting);
    auto const found = resume_differences(c, parse("", with));
    std::string const key = std::string(setting).substr(0, std::string(setting).find('='));
    EXPECT_TRUE(std::any_of(found.begin(), found.end(), [&](Difference const& d) { return d.key == key; })) << key;
  }
  std::vector<SettingOverride> const proximal{"model.name=fm", "linear.kind=ftrl", "dense.optimizer=ftrl"};
  for (char const* setting : {"linear.l1=1", "linear.beta=2", "dense.l1=1", "dense.l2=1", "dense.beta=2"}) {
    auto with = proximal;
    with.emplace_back(setting);
    EXPECT_EQ(resume_differences(parse("", proximal), parse("", with)).size(), 1U) << setting;
  }
  auto in_order = base;
  in_order.emplace_back("data.order=file");
  auto progressive = in_order;
  progressive.emplace_back("eval.progressive=true");
  EXPECT_TRUE(resume_differences(parse("", in_order), parse("", progressive)).empty());
}

TEST(TableSettings, ConvertToLibraryOptions) {
  Config const c = parse("", {"model.wide=true", "linear.kind=rowwise_adagrad", "linear.learning_rate=0.25",
                              "linear.initial_accumulator=0.5", "linear.l2=0.125", "dense.optimizer=sgd",
                              "dense.momentum=0.75", "dense.weight_decay=0.0625", "dense.learning_rate=2",
                              "optimizer.schedule=cosine", "optimizer.warmup_steps=3", "optimizer.min_factor=0.5"});
  Optimizer const linear = linear_optimizer(c.settings<ClickSettings>().linear);
  EXPECT_EQ(linear.kind, Optimizer::Kind::kRowwiseAdagrad);
  EXPECT_EQ(linear.learning_rate, 0.25F);
  EXPECT_EQ(linear.initial_accumulator, 0.5F);
  EXPECT_EQ(linear.l2, 0.125F);
  auto const dense = dense_optimizer(c.dense);
  EXPECT_EQ(dense.kind, kernels::DenseOptimizer::Kind::kSgd);
  EXPECT_EQ(dense.momentum, 0.75F);
  EXPECT_EQ(dense.weight_decay, 0.0625F);
  EXPECT_EQ(dense.learning_rate, 2);
  Config const f = parse("", {"model.wide=true", "linear.kind=ftrl", "linear.l1=0.75", "linear.beta=0.375",
                              "dense.optimizer=ftrl", "dense.l1=0.5", "dense.l2=0.25", "dense.beta=3"});
  EXPECT_EQ(linear_optimizer(f.settings<ClickSettings>().linear).kind, Optimizer::Kind::kFtrl);
  EXPECT_EQ(linear_optimizer(f.settings<ClickSettings>().linear).l1, 0.75F);
  EXPECT_EQ(linear_optimizer(f.settings<ClickSettings>().linear).beta, 0.375F);
  EXPECT_EQ(dense_optimizer(f.dense).kind, kernels::DenseOptimizer::Kind::kFtrl);
  EXPECT_EQ(dense_optimizer(f.dense).l1, 0.5F);
  EXPECT_EQ(dense_optimizer(f.dense).l2, 0.25F);
  EXPECT_EQ(dense_optimizer(f.dense).beta, 3);
  EXPECT_EQ(dense_optimizer(parse("", {"dense.optimizer=lamb"}).dense).kind, kernels::DenseOptimizer::Kind::kLamb);
  Schedule const by_run = schedule(c.optimizer, 70);
  EXPECT_EQ(by_run.kind, Schedule::Kind::kCosine);
  EXPECT_EQ(by_run.warmup_steps, 3);
  EXPECT_EQ(by_run.total_steps, 70);
  EXPECT_EQ(by_run.min_factor, 0.5F);
  EXPECT_EQ(schedule(parse("", {"optimizer.schedule=linear", "optimizer.total_steps=9"}).optimizer, 70).total_steps, 9);
  auto const usual = dense_optimizer(parse("").dense);
  EXPECT_EQ(usual.kind, kernels::DenseOptimizer::Kind::kAdam);
  EXPECT_EQ(usual.beta1, 0.9F);
  EXPECT_EQ(usual.beta2, 0.999F);
  EXPECT_EQ(usual.epsilon, 1e-8F);
}

TEST(Tasks, EveryReaderAndModelHasOneKind) {
  std::vector<std::string> readers;
  for (TaskKind const* const kind : task_kinds()) {
    EXPECT_FALSE(kind->models().empty());
    for (std::string const& reader : kind->readers()) readers.push_back(reader);
  }
  EXPECT_EQ(std::set(readers.begin(), readers.end()).size(), readers.size());
  EXPECT_EQ(click_kind().models(), (std::vector<std::string>{"logistic", "fm", "deepfm", "dlrm", "dcnv2"}));
}

}  // namespace
}  // namespace gpups::trainer::click_config_test
