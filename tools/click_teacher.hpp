// SPDX-License-Identifier: Apache-2.0
// Synthetic click data with known click probabilities, so that the best possible quality is known too.
//
// The columns are Criteo's: 13 skewed integers and 26 categories of 10 to 100,000 values. Values follow Zipf's law, and
// some are missing. The teacher's logit is the sum of a weight for each category's value, of products of
// two-dimensional vectors between some categories, and of smooth functions of the numbers. Rare values have a small
// effect, so two million samples suffice to learn nearly all of the teacher.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace gpups::tools {

constexpr std::size_t kClickNumbers = 13, kClickCategories = 26;
constexpr std::int64_t kMissingNumber = INT64_MIN;
constexpr std::uint32_t kMissingValue = UINT32_MAX;

// One line of the data, with the true logit of its click.
struct ClickSample {
  std::array<std::int64_t, kClickNumbers> numbers;     // or kMissingNumber
  std::array<std::uint32_t, kClickCategories> values;  // below the category's size, or kMissingValue
  double logit = 0;                                    // of a click
  bool click = false;
};

// Draws click samples. All objects are the same teacher; a seed selects a sequence of samples. Any thread.
class ClickTeacher {
 public:
  // Draws 50,000 samples for calibration, which takes a moment.
  ClickTeacher();
  // Returns sample `index` of the sequence of `seed`, a function of both.
  ClickSample sample(std::uint64_t seed, std::uint64_t index) const;

 private:
  static constexpr std::size_t kRank = 2;

  struct Value {
    double weight = 0;
    std::array<double, kRank> vector{};
  };
  // Draws a value with one random number (Walker's alias method).
  struct Alias {
    double keep;  // probability to keep the value; otherwise `other` is taken
    std::uint32_t other;
  };
  struct Category {
    std::vector<Value> values;  // the last one stands for a missing value
    std::vector<Alias> draw;
    double missing = 0;  // probability that the value is missing
    bool interacts = false;
  };

  Category make_category(std::size_t field) const;
  void calibrate();
  // Returns the three parts of a logit (weights, interactions, numbers), not yet scaled.
  std::array<double, 3> parts(ClickSample const& sample) const;

  std::vector<Category> categories_;
  std::array<double, 3> scale_{1, 1, 1};
  double intercept_ = 0;
};

}  // namespace gpups::tools
