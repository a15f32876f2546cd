// SPDX-License-Identifier: Apache-2.0
// Metrics of predicted probabilities, compared with counts of all pairs, values computed by hand, and other numbers of
// ranks.
#include "trainer/tasks/click/click_metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <optional>
#include <random>

#include "gpups/gpups.hpp"

namespace gpups::trainer::click_metrics_test {
namespace {

// Returns the fraction of pairs of a click and a sample without click in which the click has the higher probability. A
// label between 0 and 1 counts as both, in proportion.
double auc_oracle(std::vector<Prediction> const& all) {
  auto const rank = [](Prediction const& p) { return std::isnan(p.probability) ? -1.0 : p.probability; };
  double above = 0, pairs = 0;
  for (Prediction const& click : all) {
    for (Prediction const& other : all) {
      double const weight = static_cast<double>(click.label) * (1 - static_cast<double>(other.label));
      pairs += weight;
      above += weight * (rank(click) > rank(other) ? 1 : rank(click) == rank(other) ? 0.5 : 0);
    }
  }
  return pairs > 0 ? above / pairs : 0.5;
}

// The predictions have few different probabilities, so there are many ties.
std::vector<Prediction> random_predictions(std::size_t count, unsigned seed, bool fractions, bool bad) {
  std::mt19937 random(seed);
  std::vector<Prediction> all;
  for (std::size_t i = 0; i < count; ++i) {
    float probability = static_cast<float>(random() % 20) / 19;
    if (bad && random() % 7 == 0) probability = NAN;
    float const label = fractions ? static_cast<float>(random() % 5) / 4 : static_cast<float>(random() % 2);
    all.push_back({probability, label});
  }
  return all;
}

std::optional<double> auc(std::vector<Prediction> all) { return area_under_curve(all); }

TEST(AreaUnderCurve, IsFractionOfPairsInOrder) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    for (bool fractions : {false, true}) {
      for (bool bad : {false, true}) {
        auto const all = random_predictions(seed * 5, seed, fractions, bad);
        EXPECT_NEAR(auc(all).value_or(0.5), auc_oracle(all), 1e-12) << seed;
      }
    }
  }
}

TEST(AreaUnderCurve, MatchesHandComputedValues) {
  EXPECT_EQ(auc({{0.9F, 1}, {0.1F, 0}}), 1);
  EXPECT_EQ(auc({{0.1F, 1}, {0.9F, 0}}), 0);
  EXPECT_EQ(auc({{0.5F, 1}, {0.5F, 0}}), 0.5);
  EXPECT_EQ(auc({{0.1F, 0}, {0.4F, 0}, {0.35F, 1}, {0.8F, 1}}), 0.75);
  EXPECT_EQ(auc({{NAN, 1}, {0.0F, 0}}), 0);  // NaN ranks below all numbers
  EXPECT_EQ(auc({{NAN, 0}, {0.0F, 1}}), 1);
  EXPECT_EQ(auc({{NAN, 0}, {NAN, 1}}), 0.5);
}

TEST(AreaUnderCurve, IsOneHalfWithoutPairs) {
  EXPECT_EQ(auc({}), std::nullopt);
  EXPECT_EQ(auc({{0.1F, 1}, {0.9F, 1}}), std::nullopt);
  EXPECT_EQ(auc({{0.1F, 0}, {0.9F, 0}}), std::nullopt);
  EXPECT_EQ(auc({{0.1F, 0.5F}, {0.9F, 0.5F}}), std::nullopt);  // equal labels are no classes
}

std::int64_t units(double loss) { return std::llround(loss * 0x1p30); }

std::vector<Group> ranks_of(int ranks) { return ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks); }

TEST(ClickMetrics, MatchHandComputedValues) {
  Store store(Group::alone(), {.threads = 1});
  PredictionCollector counts;
  EXPECT_TRUE(counts.empty());
  std::vector<float> const probabilities{0.5F, 0.25F, 0.75F, 0.25F}, labels{1, 0, 1, 0};
  double const loss = std::log(2.0) + std::log(4 / 3.0) * 3;
  counts.add(
      probabilities, labels,
      std::vector{units(std::log(2.0)), units(std::log(4 / 3.0)), units(std::log(4 / 3.0)), units(std::log(4 / 3.0))});
  EXPECT_FALSE(counts.empty());
  ClickMetrics const m = counts.wait_metrics(store);
  EXPECT_TRUE(counts.empty());
  EXPECT_EQ(m.samples, 4);
  EXPECT_EQ(m.clicks, 2);
  EXPECT_EQ(m.auc, 1);
  EXPECT_NEAR(m.log_loss, loss / 4, 1e-9);
  EXPECT_NEAR(*m.calibration, 1.75 / 2, 1e-12);
  EXPECT_NEAR(*m.normalized_entropy, loss / 4 / std::log(2.0), 1e-9);

  // wait_metrics() has removed the predictions.
  EXPECT_EQ(counts.wait_metrics(store).samples, 0);
  EXPECT_EQ(counts.wait_metrics(store).auc, std::nullopt);

  counts.add(std::vector{0.25F, 0.25F, 0.25F}, std::vector{1.0F, 0.0F, 0.0F},
             std::vector{units(1), units(2), units(3)});
  ClickMetrics const third = counts.wait_metrics(store);
  EXPECT_NEAR(third.log_loss, 2, 1e-12);
  EXPECT_NEAR(*third.calibration, 0.75, 1e-12);
  EXPECT_NEAR(*third.normalized_entropy, 2 / (std::log(3.0) / 3 + std::log(1.5) * 2 / 3), 1e-9);
}

TEST(ClickMetrics, AreWrittenAsTextAndJson) {
  Metrics const m = to_metrics(
      {.samples = 9, .clicks = 2.5, .log_loss = 0.5, .auc = 0.75, .calibration = 1.25, .normalized_entropy = 0.875});
  EXPECT_EQ(m.text, "auc 0.7500  log-loss 0.5000  calibration 1.250  normalized entropy 0.8750");
  EXPECT_EQ(m.quality, 0.75);
  EXPECT_EQ(m.json, nlohmann::json::parse(R"({"samples": 9, "clicks": 2.5, "auc": 0.75, "log_loss": 0.5,
                                              "calibration": 1.25, "normalized_entropy": 0.875})"));
}

TEST(ClickMetrics, AreUndefinedIfAllLabelsAreEqual) {
  Store store(Group::alone(), {.threads = 1});
  PredictionCollector counts;
  for (float label : {0.0F, 1.0F}) {
    counts.add(std::vector{0.5F, 0.25F}, std::vector{label, label}, std::vector{units(0.5), units(0.25)});
    ClickMetrics const m = counts.wait_metrics(store);
    EXPECT_EQ(m.auc, std::nullopt);
    EXPECT_EQ(m.normalized_entropy, std::nullopt);
    EXPECT_EQ(m.calibration, label == 1 ? std::optional(0.375) : std::nullopt);
    EXPECT_EQ(m.log_loss, 0.375);
    Metrics const reported = to_metrics(m);
    EXPECT_TRUE(reported.json.at("auc").is_null());
    EXPECT_TRUE(reported.json.at("normalized_entropy").is_null());
    EXPECT_NE(reported.text.find("auc undefined (all 2 labels are equal)"), std::string::npos) << reported.text;
    EXPECT_EQ(reported.quality, 1 / 1.375);  // so that patience and keep_best choose by the loss
  }
}

// Ranks have all, many, few or no predictions, and send them in pieces of different sizes. The bits are the same.
TEST(ClickMetrics, AreIndependentOfRanksAndPieces) {
  auto const all = random_predictions(240, 3, true, false);
  std::optional<nlohmann::json> alone;
  std::vector<std::vector<std::size_t>> const shares{{240}, {120, 120}, {0, 240}, {200, 0, 40}, {1, 100, 39, 100}};
  for (std::size_t piece : {7U, 40U, 240U, 1U << 20}) {
    for (auto const& share : shares) {
      run_ranks(ranks_of(static_cast<int>(share.size())), [&](Group group) {
        Store store(group, {.threads = 1});
        std::size_t const rank = number(group.rank());
        std::size_t first = 0;
        for (std::size_t r = 0; r < rank; ++r) first += share[r];
        PredictionCollector counts(piece);
        for (std::size_t i = first + share[rank]; i > first; --i) {  // also in another order
          Prediction const& p = all[i - 1];
          counts.add(std::span(&p.probability, 1), std::span(&p.label, 1),
                     std::vector{units(0.001) * static_cast<std::int64_t>(i)});
        }
        nlohmann::json const got = to_metrics(counts.wait_metrics(store)).json;
        static std::mutex mutex;
        std::lock_guard const lock(mutex);
        if (!alone) alone = got;
        EXPECT_EQ(got, *alone) << share.size() << " ranks in pieces of " << piece;
        EXPECT_TRUE(counts.empty());
      });
    }
  }
  EXPECT_NEAR(alone->at("auc").get<double>(), auc_oracle(all), 1e-12);
  EXPECT_EQ(alone->at("samples"), 240);
}

}  // namespace
}  // namespace gpups::trainer::click_metrics_test
