// SPDX-License-Identifier: Apache-2.0
// Synthetic click data with known click probabilities, so that the best possible quality is known too.
//
// The columns are Criteo's: 13 skewed integers, and 26 categories of 10 to 100,000 values, drawn by Zipf's law; some
// are missing. The logit of the teacher is the sum of a weight for each value, of dot products of two-dimensional
// vectors between some categories, and of smooth functions of the numbers. Rare values have small effects, so that two
// million samples suffice to learn nearly all effects.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace gpups::tools {

constexpr std::size_t kClickNumbers = 13, kClickCategories = 26;
constexpr std::int64_t kMissingNumber = INT64_MIN;
constexpr std::uint32_t kMissingValue = UINT32_MAX;

// A sample, and the logit from which its label was drawn.
struct ClickSample {
  std::array<std::int64_t, kClickNumbers> numbers;     // or kMissingNumber
  std::array<std::uint32_t, kClickCategories> values;  // below the category's size, or kMissingValue
  double logit = 0;                                    // of a click
  bool click = false;
};

// Draws samples. There is one teacher; seeds select different samples of it.
class ClickTeacher {
 public:
  ClickTeacher();
  // Returns sample `index` of those of `seed`: a function of both.
  ClickSample sample(std::uint64_t seed, std::uint64_t index) const;

 private:
  static constexpr std::size_t kRank = 2;

  struct Value {
    double weight = 0;
    std::array<double, kRank> vector{};
  };
  // Draws a value in constant time (Walker's alias method).
  struct Alias {
    double keep;  // probability of the value; else the other one is taken
    std::uint32_t other;
  };
  struct Category {
    std::vector<Value> values;  // the last is for a missing value
    std::vector<Alias> draw;
    double missing = 0;  // probability
    bool interacts = false;
  };

  Category make_category(std::size_t field) const;
  void calibrate();
  // Returns the three parts of a sample's logit, before scaling.
  std::array<double, 3> parts(ClickSample const& sample) const;

  std::vector<Category> categories_;
  std::array<double, 3> scale_{1, 1, 1};
  double intercept_ = 0;
};

}  // namespace gpups::tools
