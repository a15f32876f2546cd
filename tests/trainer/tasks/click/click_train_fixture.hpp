// SPDX-License-Identifier: Apache-2.0
// Runs of small click-through models on synthetic clicks.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <utility>

#include "tests/trainer/run/train_fixture.hpp"

namespace gpups::trainer {

// Makes lines with Criteo's columns. The probability of a click depends on C1, C2 and I1. With 700 samples, 600 are for
// training: nine steps of 64 and a small one.
inline std::string synthetic_clicks(std::size_t samples) {
  std::mt19937 random(4);
  auto const uniform = [&random] { return static_cast<double>(random()) * 0x1p-32; };
  std::string text;
  for (std::size_t i = 0; i < samples; ++i) {
    auto const number = static_cast<int>(random() % 30);
    std::size_t const first = random() % 6, second = random() % 5;
    double const logit = (first < 3 ? 2 : -2) + (second < 2 ? 1.5 : -1.5) + (number > 15 ? 1 : -1);
    text += uniform() < 1 / (1 + std::exp(-logit)) ? "1" : "0";
    text += fmt::format("\t{}", number);
    for (int f = 2; f <= 13; ++f) text += random() % 5 == 0 ? "\t" : fmt::format("\t{}", random() % 200);
    text += fmt::format("\t{:08x}\t{:08x}", first + 77, second + 99);
    for (int f = 3; f <= 26; ++f) text += random() % 9 == 0 ? "\t" : fmt::format("\t{:08x}", random() % 4);
    text += "\n";
  }
  return text;
}

class ClickTrainTest : public RunTest {
 protected:
  ClickTrainTest() : RunTest({"data.reader=clicks", "data.test_share=0.1428571", "model.dim=4"}) {
    clicks_ = folder_.write("clicks.tsv", synthetic_clicks(700));
  }

  // Settings of a small model of each kind.
  Settings small(std::string const& model, Settings more = {}) const {
    Settings settings{"data.train=" + clicks_.string(), "model.name=" + model};
    if (model == "deepfm" || model == "dlrm" || model == "dcnv2") settings.push_back("model.top=[8]");
    if (model == "dlrm") settings.push_back("model.bottom=[8]");
    if (model == "dcnv2") settings.push_back("model.cross_layers=1");
    settings.insert(settings.end(), more.begin(), more.end());
    return settings;
  }
  // Settings of a model with dropout, admission, expiry and every other feature that could make runs differ.
  Settings rich(Settings more = {}) const {
    more.insert(more.begin(),
                {"model.wide=true", "model.dropout=0.2", "model.row_dropout=0.2", "model.admission_count=2",
                 "model.numeric_features=both", "model.buckets=3", "model.min_count=110", "train.expire_after=8",
                 "eval.progressive=true", "data.valid_share=0.05"});
    return small("dlrm", std::move(more));
  }

  std::filesystem::path clicks_;
};

}  // namespace gpups::trainer
