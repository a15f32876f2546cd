// SPDX-License-Identifier: Apache-2.0
// Ratings, word vectors and recommenders train on GPUs, with the same bits on one rank and on several.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gpups/device.hpp"
#include "tests/trainer/run/train_fixture.hpp"
#include "trainer/base/random.hpp"

namespace gpups::trainer::device_training_test {
namespace {

class TrainingOnCuda : public RunTest {
 protected:
  TrainingOnCuda() : RunTest({"model.dim=20", "run.device=cuda:0"}) {}
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device";
  }

  // Trains on one rank and on two. Returns the first loss, and the last.
  std::pair<double, double> losses(Settings settings) {
    settings.emplace_back("run.report_every=1");
    auto const alone = run("alone", settings);
    auto const reports = lines("alone", "loss");
    settings.emplace_back("run.ranks=2");
    EXPECT_EQ(result(run("two", settings)), result(alone));
    return {reports.front().at("loss"), reports.back().at("loss")};
  }
};

TEST_F(TrainingOnCuda, RatingsWithBiases) {
  std::string text;
  for (std::uint64_t i = 0; i < 600; ++i) {
    text += fmt::format("{} {} {}\n", i % 30, i / 30, 1 + (i % 30 + i / 30) % 5);
  }
  folder_.write("ratings.txt", text);
  auto const [first, last] = losses({"data.reader=ratings", "data.train=ratings.txt", "data.test_share=0.1"});
  EXPECT_LT(last, first);
}

TEST_F(TrainingOnCuda, WordVectors) {
  std::string text;
  for (std::uint64_t i = 0; i < 100; ++i) {
    for (std::uint64_t k = 0; k < 20; ++k) text += fmt::format("t{}w{} ", i % 3, random_bits(1, i, k) % 7);
    text += "\n";
  }
  folder_.write("text.txt", text);
  folder_.write("questions.txt", "t0w0 t0w1 t1w0 t1w1\n");
  auto const [first, last] = losses({"data.reader=text", "data.train=text.txt", "data.test=questions.txt",
                                     "model.subsample=0", "train.batch_size=16"});
  EXPECT_LT(last, first);
}

// Users choose items of their own kind.
std::string choices() {
  std::string text;
  for (std::uint64_t u = 0; u < 40; ++u) {
    text += fmt::format("u{}", u);
    for (std::uint64_t k = 0; k < 5; ++k) text += fmt::format(" i{}", random_bits(1, u, k) % 8 * 3 + u % 3);
    text += "\n";
  }
  return text;
}

TEST_F(TrainingOnCuda, PairwiseRanking) {
  folder_.write("choices.txt", choices());
  auto const [first, last] = losses({"data.reader=interactions", "data.train=choices.txt", "model.name=bpr"});
  EXPECT_LT(last, first);
}

TEST_F(TrainingOnCuda, LeastSquares) {
  folder_.write("choices.txt", choices());
  auto const [first, last] = losses({"data.reader=interactions", "data.train=choices.txt", "model.name=ials"});
  EXPECT_LT(last, first);
}

}  // namespace
}  // namespace gpups::trainer::device_training_test
