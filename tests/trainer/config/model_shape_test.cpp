// SPDX-License-Identifier: Apache-2.0
// The sizes of models by configuration. Settings that have no effect on a model of that size are rejected.
#include "trainer/config/task_kind.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::model_shape_test {
namespace {

using test::expect_error;

Config parse(std::string const& reader, std::vector<SettingOverride> settings = {}) {
  std::string const train = reader == "clicks" || reader == "ratings" ? "train = 'none.tsv'\n" : "";
  return parse_config(fmt::format("[data]\nreader = '{}'\n{}", reader, train), "run.toml", "/data", settings);
}

ModelShape shape_of(Config const& config) { return config.task.kind->shape(config); }

TEST(ModelShape, ReportsWidestRow) {
  auto const widest = [](std::string const& reader, std::vector<SettingOverride> const& settings) {
    return shape_of(parse(reader, settings)).widest_row;
  };
  EXPECT_EQ(widest("triples", {"model.dim=32"}), 32U);
  EXPECT_EQ(widest("wordnet", {"model.name=rotate", "model.dim=32"}), 32U);
  EXPECT_EQ(widest("triples", {"model.name=rescal", "model.dim=8"}), 64U);  // relations are matrices
  EXPECT_EQ(widest("ratings", {"model.dim=24"}), 25U);                      // with the bias
  EXPECT_EQ(widest("ratings", {"model.dim=24", "model.biases=false"}), 24U);
  EXPECT_EQ(widest("clicks", {"model.dim=16"}), 16U);
  EXPECT_EQ(widest("clicks", {"model.name=dcnv2", "model.dim=16", "model.dims=['C3:48', 'C4:20']"}), 48U);
  EXPECT_EQ(widest("clicks", {"model.name=dcnv2", "data.categorical_columns=1", "model.dim=16", "model.dims=['C1:4']"}),
            4U);
  EXPECT_EQ(widest("clicks", {"model.name=logistic"}), 1U);
}

TEST(ModelShape, ReportsLargestLayer) {
  auto const largest = [](std::string const& reader, std::vector<SettingOverride> const& settings) {
    return shape_of(parse(reader, settings)).largest_layer;
  };
  EXPECT_EQ(largest("triples", {}), 0U);
  EXPECT_EQ(largest("clicks", {}), 512U * 368);          // inputs: a row of 16, 351 products, and padding
  EXPECT_EQ(largest("clicks", {"model.name=fm"}), 16U);  // weights of 13 numbers, and padding
}

TEST(ModelShape, RejectsFactorizationMachineOfOneCategory) {
  auto const check = [](std::vector<SettingOverride> const& settings) {
    require_effect(parse("clicks", settings), "run.toml");
  };
  auto const reject = [&](std::vector<SettingOverride> settings, char const* what) {
    settings.emplace_back("data.categorical_columns=1");
    expect_error([&] { check(settings); },
                 {"there is one category", "products would have no effect", "in two columns or more", what});
  };
  reject({"model.name=fm"}, "run.toml: model.name is \"fm\"");
  reject({"model.name=fm", "data.multi_hot=['C1']"}, "or set model.name = \"logistic\"");
  reject({"model.name=deepfm"}, "or set model.name = \"dcnv2\"");
  reject({"model.name=fm", "model.numeric_features=buckets", "data.numeric_columns=0"}, "one category");
  for (char const* model : {"model.name=fm", "model.name=deepfm"}) {
    EXPECT_NO_THROW(check({model, "data.categorical_columns=2"}));
    EXPECT_NO_THROW(check({model, "data.categorical_columns=1", "model.numeric_features=both"}));
    EXPECT_NO_THROW(check({model, "data.categorical_columns=0", "model.numeric_features=buckets"}));
  }
  for (char const* model : {"model.name=logistic", "model.name=dlrm", "model.name=dcnv2"}) {
    EXPECT_NO_THROW(check({model, "data.categorical_columns=1"}));
  }
}

TEST(ModelShape, RejectsTopKOfAllColumns) {
  auto const reject = [](std::string const& reader, std::vector<SettingOverride> const& settings,
                         std::string const& what) {
    expect_error([&] { require_effect(parse(reader, settings), "run.toml"); },
                 {"run.toml: gradient_compression.top_k is", what.c_str(), "set a smaller number"});
  };
  reject("triples", {"model.dim=32", "gradient_compression.top_k=33"},
         "is 33 and the widest rows of the model have 32 columns");
  reject("triples", {"model.dim=32", "gradient_compression.top_k=32"},
         "is 32 and the widest rows of the model have 32 columns");
  reject("ratings", {"model.dim=24", "gradient_compression.top_k=25"}, "have 25 columns");
  reject("clicks", {"model.name=logistic", "gradient_compression.top_k=1"}, "have 1 columns");
  EXPECT_NO_THROW(require_effect(parse("triples", {"model.dim=32", "gradient_compression.top_k=31"}), "run.toml"));
  EXPECT_NO_THROW(require_effect(
      parse("triples", {"model.name=rescal", "model.dim=8", "gradient_compression.top_k=40"}), "run.toml"));
  EXPECT_NO_THROW(require_effect(parse("clicks", {"model.wide=true", "model.dim=16", "gradient_compression.top_k=15"}),
                                 "run.toml"));
}

TEST(ModelShape, RejectsTopKOfSmallLayers) {
  std::vector<SettingOverride> small{"dense.compression=top_k", "model.bottom=[16]", "model.dim=16", "model.top=[8]"};
  std::string text;
  try {
    require_effect(parse("clicks", small), "run.toml");
  } catch (Error const& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("run.toml: dense.compression is \"top_k\" and the largest layer of the model has"),
            std::string::npos);
  EXPECT_NE(text.find("layers of fewer than 4096 are not compressed"), std::string::npos);
  EXPECT_NE(text.find("set dense.compression = \"none\""), std::string::npos);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  small.emplace_back("dense.compression=none");
  EXPECT_NO_THROW(require_effect(parse("clicks", small), "run.toml"));
  EXPECT_NO_THROW(require_effect(parse("clicks", {"dense.compression=top_k"}), "run.toml"));
}

TEST(ModelShape, PrecisionIsOfGpus) {
  auto const with = [](std::string const& precision) { return parse("clicks", {"dense.precision=" + precision}); };
  EXPECT_NO_THROW(require_precision(with("fp32"), Device::host()));
  EXPECT_NO_THROW(require_precision(with("tf32"), Device::cuda(0)));
  expect_error([&] { require_precision(with("tf32"), Device::host()); },
               {"dense.precision is \"tf32\"", "the device is the host", "train on a GPU"});
}

}  // namespace
}  // namespace gpups::trainer::model_shape_test
