// SPDX-License-Identifier: Apache-2.0
// Conversion of samples to entries: keys, positions in the block, coefficients, and row dropout.
#include "trainer/tasks/click/features.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <xxhash.h>

#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "kernels/base/hash.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/trainer/tasks/click/click_model_fixture.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::click_features_test {
namespace {

using test::expect_error;
using test::OracleSample;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Config model(std::vector<SettingOverride> settings) {
  settings.insert(settings.begin(), {"data.reader=clicks", "data.train=x", "model.name=dcnv2", "model.dim=5"});
  return parse_config("", "test", "/", settings);
}

// Returns the keys of a sample with these values in C1, C2, ...
std::vector<std::uint64_t> keys_of(Features const& features, std::vector<std::uint64_t> const& values) {
  Stream stream(Device::host(), 1);
  SampleBatch const batch{.samples = 1, .labels = {1}, .numbers = {}, .offsets = {}, .values = values, .weights = {}};
  std::vector<std::uint64_t> keys;
  for (auto const& part : features.make(stream, batch).parts) {
    for (Key key : part.keys.view()) keys.push_back(number(key));
  }
  return keys;
}

TEST(ClickKeys, MixValueAndCategory) {
  Layout const layout = make_layout(0, 3);
  std::uint64_t const salt = XXH3_64bits("C2", 2);
  EXPECT_EQ(number(click_key("C2", 77)), kernels::mix(77 ^ salt));
  Features const features(layout, model({}), {});
  EXPECT_EQ(keys_of(features, {5, 77, 77}),
            (std::vector{number(click_key("C1", 5)), number(click_key("C2", 77)), number(click_key("C3", 77))}));
  EXPECT_NE(click_key("C2", 77), click_key("C3", 77));
}

// Saved tables and exported rows contain the keys, so they must not change.
TEST(ClickKeys, NeverChangeBetweenVersions) {
  EXPECT_EQ(number(click_key("C1", value_id("68fd1e64"))), kernels::mix(0x68fd1e64U ^ XXH3_64bits("C1", 2)));
  EXPECT_EQ(number(click_key("C26", value_id(""))), kernels::mix(kMissingId ^ XXH3_64bits("C26", 3)));
}

TEST(ClickKeys, AreEqualInCategoriesThatShareRows) {
  Layout const layout = make_layout(0, 4);
  Features const features(layout, model({"model.shared=[\"C2,C4\"]"}), {});
  auto const keys = keys_of(features, {9, 9, 9, 9});
  EXPECT_EQ(keys[1], keys[3]);
  EXPECT_EQ(keys[1], number(click_key("C2", 9)));
  EXPECT_EQ(std::set(keys.begin(), keys.end()).size(), 3U);
}

// Values occur in all samples, however many there are; half of the samples have about half of the occurrences.
TEST(ClickFeatures, FrequentValuesAreCountedInAllSamples) {
  constexpr std::uint64_t kValues = 100, kOccurrences = 30, kSamples = 1'200'000;
  std::string text;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    bool const counted = i % (kSamples / (kValues * kOccurrences)) == 0;
    text += counted ? fmt::format("0\tv{}\n", i / (kSamples / (kValues * kOccurrences)) % kValues) : "0\tx\n";
  }
  test::TemporaryFolder const folder;
  Layout const layout = make_layout(0, 1);
  std::vector<std::string> notices;
  Samples const samples = read_samples_text(folder.write("clicks.txt", text), layout, {}, notices);
  Features const features(layout, model({}), {});
  FrequentValues const frequent = features.measure(samples, 0, samples.size(), kOccurrences);
  EXPECT_EQ(frequent.size(), kValues + 1);
  EXPECT_EQ(features.measure(samples, 0, samples.size(), kOccurrences + 1).size(), 1U);  // "x"
}

TEST(ClickFeatures, RejectSettingsThatDoNotFitTheLayout) {
  Layout const layout = make_layout(2, 3);
  auto const make = [&](std::vector<SettingOverride> const& settings) { Features(layout, model(settings), {}); };
  expect_error([&] { make({"model.shared=[\"C1,C7\"]"}); },
               {"model.shared has 'C7' (the data has no category of this name): use one of C1 to C3"});
  expect_error([&] { make({"model.shared=[\"C1,I1\"]"}); }, {"model.shared has 'I1'"});
  expect_error([&] { make({"model.shared=[\"C1,\"]"}); }, {"model.shared has ''"});
  expect_error([&] { make({"model.shared=[\"C1,C2\", \"C2,C3\"]"}); }, {"model.shared has 'C2' twice"});
  expect_error([&] { make({"model.shared=[\"C1,C1\"]"}); }, {"model.shared has 'C1' twice"});
  expect_error([&] { make({"model.shared=[\"C2\"]"}); }, {"model.shared has 'C2'", "list two or more"});
  expect_error([&] { make({"model.dims=[\"C9:4\"]"}); }, {"model.dims has 'C9'"});
  expect_error([&] { make({"model.dims=[\"C1:4\", \"C1:8\"]"}); }, {"model.dims has 'C1' twice"});
  for (char const* bad :
       {"C1", "C1:", "C1:0", "C1:x", "C1:4x", "C1:65537", "C1:-4", "C1: 4", "C1:99999999999999999999"}) {
    expect_error([&] { make({std::string("model.dims=[\"") + bad + "\"]"}); },
                 {("model.dims has '" + std::string(bad) + "'").c_str(), "write it as in \"C3:32\""});
  }
  expect_error(
      [&] {
        make({"model.shared=[\"C1,C2\"]", "model.dims=[\"C1:4\"]"});
      },
      {"C1 and C2 share rows and have the dims 4 and 5", "give them one dim"});
  Layout const none = make_layout(0, 1);
  expect_error([&] { Features(make_layout(2, 0), model({"model.numeric_features=none"}), {}); },
               {"the model has no input"});
  EXPECT_NO_THROW(Features(none, model({"model.numeric_features=none"}), {}));
}

// The bags of an input by the position of their row in the block.
std::map<std::size_t, std::pair<std::size_t, std::size_t>> places_of(Features const& features,
                                                                     ClickInput const& input) {
  std::map<std::size_t, std::pair<std::size_t, std::size_t>> places;  // begin: (end, part)
  for (std::size_t p = 0; p < input.parts.size(); ++p) {
    if (input.parts[p].weights) continue;
    std::size_t const dim = features.tables()[p].dim;
    for (std::uint32_t target : input.parts[p].targets.view()) {
      std::size_t const begin = target * row_stride(dim);
      EXPECT_TRUE(places.emplace(begin, std::pair(begin + dim, p)).second) << "two rows at one position";
    }
  }
  return places;
}

TEST(ClickFeatures, RowsDoNotOverlapInTheBlock) {
  Stream stream(Device::host(), 1);
  for (auto const& dims : {"[]", "[\"C1:3\"]", "[\"C2:17\", \"C3:100\"]", "[\"C1:1\", \"C3:64\", \"C5:48\"]"}) {
    for (std::size_t numbers : {0U, 1U, 13U, 17U}) {
      for (char const* what : {"log", "both", "none"}) {
        for (bool head_of_rows : {false, true}) {
          Layout const layout = make_layout(numbers, 5);
          Features const features(
              layout, model({std::string("model.dims=") + dims, std::string("model.numeric_features=") + what}),
              {.head_of_rows = head_of_rows});
          auto const samples = test::random_samples(layout, 3, 1);
          ClickInput const input = features.make(stream, test::to_batch(layout, samples));
          std::size_t const width = features.width();
          std::size_t const head = head_of_rows ? 5 : features.head_has_numbers() ? numbers : 0;
          auto const places = places_of(features, input);
          EXPECT_EQ(places.size(), 3 * features.categories());
          for (auto at = places.begin(); at != places.end(); ++at) {
            auto const [end, part] = at->second;
            EXPECT_EQ(width % row_stride(features.tables()[part].dim), 0U);
            EXPECT_GE(at->first % width, head);
            EXPECT_LE(end, (at->first / width + 1) * width) << "beyond the end of its block";
            auto const next = std::next(at);
            EXPECT_LE(end, next == places.end() ? end : next->first);
          }
          EXPECT_EQ(width % 16, 0U);
        }
      }
    }
  }
}

// Compares each entry with the lists of the oracle.
TEST(ClickFeatures, EntriesMatchTheOracle) {
  Stream stream(Device::host(), 1);
  for (char const* pooling : {"model.pooling=sum", "model.pooling=mean"}) {
    test::ClickCase const c{
        "dcnv2",
        {"data.numeric_columns=2", "data.categorical_columns=4", "data.multi_hot=[\"C2\"]", "data.weighted=[\"C4\"]",
         "model.dims=[\"C3:9\"]", "model.numeric_features=buckets", "model.wide=true", pooling}};
    test::ClickStepFixture f(c, 20);
    ClickInput const input = f.model_.features().make(stream, f.batch_);
    for (std::size_t p = 0; p < input.parts.size(); ++p) {
      auto const& table = f.model_.features().tables()[p];
      std::vector<std::tuple<std::uint64_t, std::size_t, float>> want, got;  // key, source, coefficient
      for (std::size_t i = 0; i < 20; ++i) {
        for (test::OracleField const& field : f.oracle_.fields) {
          if (!table.weights && field.dim != table.dim) continue;
          std::size_t const source = table.weights ? i : (i * f.oracle_.width + field.place) / row_stride(field.dim);
          for (auto const& [key, count] : f.oracle_.entries(field, f.samples_[i])) {
            want.emplace_back(key, source, static_cast<float>(count));
          }
        }
      }
      for (std::size_t e = 0; e < input.parts[p].keys.size(); ++e) {
        got.emplace_back(number(input.parts[p].keys[e]), input.parts[p].sources[e], input.parts[p].coefficients[e]);
      }
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t e = 0; e < got.size(); ++e) {
        EXPECT_EQ(std::get<0>(got[e]), std::get<0>(want[e])) << table.name << " entry " << e;
        EXPECT_EQ(std::get<1>(got[e]), std::get<1>(want[e])) << table.name << " entry " << e;
        EXPECT_FLOAT_EQ(std::get<2>(got[e]), std::get<2>(want[e])) << table.name << " entry " << e;
      }
    }
  }
}

class RowDropoutTest : public testing::Test {
 protected:
  static constexpr std::size_t kSamples = 4000, kCategories = 5;

  RowDropoutTest()
      : layout_(make_layout(0, kCategories)), features_(layout_, model({"model.wide=true"}), {.weights = true}) {
    batch_ = test::to_batch(layout_, test::random_samples(layout_, kSamples, 1));
    numbers_.resize(kSamples);
    std::iota(numbers_.begin(), numbers_.end(), 0U);
  }
  std::vector<float> coefficients(RowDropout const& dropout, std::size_t part = 0) const {
    Stream stream(Device::host(), 1);
    auto const input = features_.make(stream, batch_, dropout);
    auto const view = input.parts[part].coefficients.view();
    return {view.begin(), view.end()};
  }

  Layout layout_;
  Features features_;
  SampleBatch batch_;
  std::vector<std::uint32_t> numbers_;
};

TEST_F(RowDropoutTest, DropsRequestedFractionAndKeepsExpectation) {
  for (double rate : {0.1, 0.5, 0.9}) {
    auto const all = coefficients({rate, 1, Clock{3}, numbers_});
    ASSERT_EQ(all.size(), kSamples * kCategories);
    double dropped = 0, sum = 0;
    for (float x : all) {
      EXPECT_TRUE(x == 0 || x == static_cast<float>(1 / (1 - rate))) << x;
      dropped += x == 0, sum += static_cast<double>(x);
    }
    double const n = kSamples * kCategories, deviation = std::sqrt(rate * (1 - rate) / n);
    EXPECT_NEAR(dropped / n, rate, 4 * deviation);
    EXPECT_NEAR(sum / n, 1, 4 * deviation / (1 - rate));
  }
}

TEST_F(RowDropoutTest, DependsOnlyOnSeedStepSampleAndCategory) {
  auto const base = coefficients({0.5, 1, Clock{3}, numbers_});
  EXPECT_EQ(coefficients({0.5, 1, Clock{3}, numbers_}), base);
  EXPECT_NE(coefficients({0.5, 2, Clock{3}, numbers_}), base);
  EXPECT_NE(coefficients({0.5, 1, Clock{4}, numbers_}), base);
  // The same rows are dropped if the samples are in another order.
  auto reversed = numbers_;
  std::reverse(reversed.begin(), reversed.end());
  auto const other = coefficients({0.5, 1, Clock{3}, reversed});
  std::size_t differing = 0;
  for (std::size_t i = 0; i < kSamples; ++i) {
    for (std::size_t c = 0; c < kCategories; ++c) {
      EXPECT_EQ(other[i * kCategories + c], base[(kSamples - 1 - i) * kCategories + c]);
      differing += base[i * kCategories + c] != base[i * kCategories];
    }
  }
  EXPECT_NEAR(static_cast<double>(differing), kSamples * (kCategories - 1) / 2.0, 300);
}

TEST_F(RowDropoutTest, SkipsPredictionsAndLinearWeights) {
  EXPECT_TRUE(coefficients({}).empty());  // all 1
  EXPECT_TRUE(coefficients({0.5, 1, Clock{3}, numbers_}, 1).empty());
}

TEST(NumberFeatures, LogarithmIsSymmetricAroundZero) {
  EXPECT_EQ(log_of_number(NAN), 0);
  EXPECT_EQ(log_of_number(0), 0);
  EXPECT_FLOAT_EQ(log_of_number(1), std::log(2.0F));
  EXPECT_FLOAT_EQ(log_of_number(-1), -std::log(2.0F));
  EXPECT_FLOAT_EQ(log_of_number(1e30F), static_cast<float>(std::log(1e30)));
  EXPECT_FLOAT_EQ(log_of_number(-1e30F), static_cast<float>(-std::log(1e30)));
  EXPECT_EQ(log_of_number(kInfinity), kInfinity);  // readers reject infinities
  EXPECT_EQ(log_of_number(-kInfinity), -kInfinity);
}

TEST(NumberFeatures, BucketsAreFloorsOrPowersOfTwo) {
  auto const bucket = [](float x) { return bucket_of_number(x, 1); };
  // Each line is one bucket.
  std::vector<std::vector<float>> const buckets{{NAN, -NAN},       {0.0F, -0.0F, 0.5F, 0.999F, 1e-30F},
                                                {1, 1.5F, 1.999F}, {2, 3, 3.999F},
                                                {4, 7.9F},         {1024, 2047},
                                                {1e30F},           {3e38F},
                                                {kInfinity},       {-1e-30F, -0.5F, -1},
                                                {-1.001F, -2},     {-3},
                                                {-1000},           {-3e9F, -1e30F, -kInfinity}};
  std::set<std::uint64_t> ids;
  for (auto const& numbers : buckets) {
    for (float x : numbers) EXPECT_EQ(bucket(x), bucket(numbers[0])) << x;
    EXPECT_TRUE(ids.insert(bucket(numbers[0])).second) << numbers[0];
  }
}

}  // namespace
}  // namespace gpups::trainer::click_features_test
