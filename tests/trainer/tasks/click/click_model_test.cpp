// SPDX-License-Identifier: Apache-2.0
// Click-through models, compared with simple models in double: probabilities, losses, and gradients by finite
// differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/tasks/click/click_model_fixture.hpp"

namespace gpups::test::click_model_test {
namespace {

constexpr std::size_t kSamples = 9;  // in microbatches of 2, 3 and 4
constexpr double kTolerance = 2e-5;
constexpr std::size_t kChecked = 24;  // elements of a parameter that are compared

double error(double got, double want) { return std::abs(got - want) / std::max(1.0, std::abs(want)); }

ClickCase made(std::string name, std::vector<std::string> more) {
  std::vector<std::string> settings{"data.numeric_columns=3", "data.categorical_columns=4", "data.multi_hot=[\"C2\"]",
                                    "data.weighted=[\"C3\"]"};
  if (name != "logistic") settings.push_back("model.dim=5");
  if (name == "deepfm" || name == "dlrm" || name == "dcnv2") settings.push_back("model.top=[7, 4]");
  if (name == "dlrm") settings.push_back("model.bottom=[6]");
  if (name == "dcnv2") settings.push_back("model.cross_layers=2");
  settings.insert(settings.end(), more.begin(), more.end());
  return {std::move(name), settings};
}

std::vector<ClickCase> cases() {
  std::vector<ClickCase> all;
  for (char const* name : {"logistic", "fm", "deepfm", "dlrm", "dcnv2"}) {
    for (char const* numbers : {"log", "buckets", "both", "none"}) {
      all.push_back(made(name, {std::string("model.numeric_features=") + numbers}));
    }
    all.push_back(made(name, {"model.pooling=mean"}));
    all.push_back(made(name, {"model.shared=[\"C1,C2\", \"C3,C4\"]", "data.multi_hot=[]", "data.weighted=[]"}));
    all.push_back(made(name, {"data.numeric_columns=0", "data.weighted=[]"}));
  }
  for (char const* name : {"fm", "deepfm", "dlrm", "dcnv2"}) all.push_back(made(name, {"model.row_dropout=0.4"}));
  for (char const* name : {"deepfm", "dlrm", "dcnv2"}) {
    all.push_back(made(name, {"model.dropout=0.3", "model.numeric_features=both"}));
    all.push_back(made(name, {"model.top=[]"}));
  }
  for (char const* name : {"dlrm", "dcnv2"}) {
    all.push_back(
        made(name, {"model.wide=true", "model.numeric_features=both", "model.dropout=0.2", "model.row_dropout=0.2"}));
  }
  all.push_back(made("dcnv2", {"model.dims=[\"C1:3\", \"C4:17\"]", "model.pooling=mean", "model.wide=true"}));
  all.push_back(made("dlrm", {"model.bottom=[]", "model.dim=16"}));
  all.push_back(made("logistic", {"data.categorical_columns=0", "data.multi_hot=[]", "data.weighted=[]"}));
  all.push_back(made("dcnv2", {"data.categorical_columns=0", "data.multi_hot=[]", "data.weighted=[]"}));
  return all;
}

class ClickModels : public testing::TestWithParam<ClickCase> {};

TEST_P(ClickModels, ProbabilitiesAndLossesMatchTheOracle) {
  ClickStepFixture f(GetParam(), kSamples);
  for (bool const training : {false, true}) {
    training ? f.run_step() : f.run_prediction();
    OracleStep step = f.step();
    step.training = training;
    for (std::size_t i = 0; i < kSamples; ++i) {
      double const logit = f.oracle_.logit(f.samples_[i], i, step);
      EXPECT_LT(error(f.computation_.probabilities(f.input_)[i], 1 / (1 + std::exp(-logit))), 5e-6) << i;
      double const loss = static_cast<double>(f.computation_.losses(f.input_)[i]) * 0x1p-30;
      EXPECT_LT(error(loss, ClickOracle::loss(logit, f.samples_[i].label)), kTolerance) << i;
    }
  }
}

TEST_P(ClickModels, RowGradientsMatchFiniteDifferences) {
  ClickStepFixture f(GetParam(), kSamples);
  f.run_step();
  double largest = 0;
  for (auto const& [name, gradient] : f.row_gradients()) {
    for (std::size_t k = 0; k < gradient.size(); ++k) {
      double& x = f.oracle_.rows.at(name)[k];
      double const want = difference(x, [&] { return f.oracle_.loss(f.samples_, f.step()); });
      ASSERT_LT(error(gradient[k], want), kTolerance)
          << name.first << " key " << name.second << " column " << k << ": " << gradient[k] << " instead of " << want;
      largest = std::max(largest, std::abs(want));
    }
  }
  EXPECT_TRUE(largest > 0.05 || f.oracle_.rows.empty()) << largest;
}

TEST_P(ClickModels, ParameterGradientsMatchFiniteDifferences) {
  ClickStepFixture f(GetParam(), kSamples);
  f.run_step();
  std::mt19937 random(1);
  for (trainer::Parameter const& parameter : f.model_.parameters().all()) {
    Dense const gradient = f.dense_gradient(parameter);
    Dense& values = f.oracle_.parameters.at(parameter.name);
    std::vector<std::size_t> places(values.values.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    std::shuffle(places.begin(), places.end(), random);
    places.resize(std::min(places.size(), kChecked));
    double largest = 0;
    for (std::size_t i : places) {
      double const want = difference(values.values[i], [&] { return f.oracle_.loss(f.samples_, f.step()); });
      ASSERT_LT(error(gradient.values[i], want), kTolerance)
          << parameter.name << "[" << i << "]: " << gradient.values[i] << " instead of " << want;
      largest = std::max(largest, std::abs(want));
    }
    EXPECT_TRUE(largest > 1e-3 || places.empty()) << parameter.name << ": " << largest;
  }
}

// The reducer starts an allreduce when a gradient is reported, so each gradient must be reported once, when complete.
TEST_P(ClickModels, ReportsEachParameterGradientOnceWhenComplete) {
  ClickStepFixture f(GetParam(), kSamples);
  f.run_step();
  auto const& model = f.model_;
  std::size_t const width = model.features().width();
  Matrix<float> blocks(Device::host(), kSamples, width), block_gradients(Device::host(), kSamples, width);
  Matrix<float> weights(Device::host(), kSamples, 1);
  for (auto const view : {blocks.view(), block_gradients.view(), weights.view()}) {
    for (float& x : view.flat()) x = 0;
  }
  for (std::size_t i = 0; i < kSamples; ++i) {
    for (std::size_t j = 0; j < width; ++j) blocks.row(i)[j] = static_cast<float>((i * 7 + j) % 5) - 2;
  }
  trainer::ClickMicrobatch const batch{
      .numbers = f.input_.numbers.view().slice(0, kSamples), .blocks = blocks, .weights = weights};
  auto const scratch = model.scratch().take(f.stream_, kSamples);
  model.forward(f.stream_, batch, f.dense_->values(), *scratch, scratch->matrix(model.terms_buffer(), kSamples));
  std::vector<float> logit_gradients(kSamples, 1);
  std::vector<float> gradients(model.parameters().size(), 0);
  std::map<std::string, std::vector<float>> numbers;
  auto const numbers_of = [&](trainer::Parameter const& p) {
    return std::vector<float>(gradients.data() + p.offset, gradients.data() + p.offset + p.size());
  };
  trainer::LayerGradients const to(View<float>(gradients), [&](Stream&, trainer::Parameter const& p) {
    EXPECT_TRUE(numbers.emplace(p.name, numbers_of(p)).second) << p.name << " twice";
  });
  model.backward(f.stream_, batch, f.dense_->values(), *scratch, {logit_gradients.data(), kSamples, 1, 1}, to,
                 block_gradients);
  EXPECT_EQ(numbers.size(), model.parameters().all().size());
  for (auto const& p : model.parameters().all()) EXPECT_EQ(numbers[p.name], numbers_of(p)) << p.name;
}

// An earlier, larger batch has used the same memory.
TEST_P(ClickModels, ResultsDoNotDependOnEarlierBatches) {
  ClickStepFixture f(GetParam(), kSamples);
  f.run_step();
  auto const rows = f.row_gradients();
  auto const losses = to_host(f.stream_, f.computation_.losses(f.input_));
  auto const parts = to_host(f.stream_, View<float const>(f.dense_->gradient(0)));
  ClickStepFixture large(GetParam(), 2 * kSamples);
  f.batch_ = large.batch_;
  auto const cuts = f.cuts_;
  f.cuts_ = {{0, 0, 2 * kSamples}};
  auto const numbers = f.numbers_;
  f.numbers_ = large.numbers_;
  f.run_step();
  EXPECT_NE(to_host(f.stream_, View<float const>(f.dense_->gradient(0))), parts);
  f.batch_ = to_batch(f.layout_, f.samples_);
  f.cuts_ = cuts;
  f.numbers_ = numbers;
  f.run_step();
  EXPECT_EQ(f.row_gradients(), rows);
  EXPECT_EQ(to_host(f.stream_, f.computation_.losses(f.input_)), losses);
  EXPECT_EQ(to_host(f.stream_, View<float const>(f.dense_->gradient(0))), parts);
}

TEST(ClickModelErrors, ReportUnsuitableColumns) {
  auto const make = [](ClickCase const& c) {
    auto const config = ClickStepFixture::config_of(c);
    trainer::ClickModel(trainer::layout_of(config), config);
  };
  for (char const* name : {"fm", "deepfm", "dlrm"}) {
    expect_error(
        [&] {
          make(made(name, {"data.categorical_columns=0", "data.multi_hot=[]", "data.weighted=[]"}));
        },
        {name, "needs categories whose rows have one dim", "set data.categorical_columns"});
  }
  expect_error(
      [&] {
        make(made("logistic", {"data.categorical_columns=0", "data.multi_hot=[]", "data.weighted=[]",
                               "model.numeric_features=none"}));
      },
      {"the data has no categories, and model.numeric_features is", "set data.categorical_columns"});
}

std::string name_of(testing::TestParamInfo<ClickCase> const& info) {
  return info.param.name + std::to_string(info.index);
}
INSTANTIATE_TEST_SUITE_P(All, ClickModels, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace gpups::test::click_model_test
