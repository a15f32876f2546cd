// SPDX-License-Identifier: Apache-2.0
// Synthetic click data whose click probabilities are known, so that the best possible quality is known too.
//
// The columns are Criteo's: 13 skewed integers and 26 categories of 10 to 100,000 values, drawn by Zipf's law, some of
// them missing. The teacher's logit is a sum of a weight for each category's value, of products of vectors of two
// dimensions between some categories, and of smooth functions of the numbers. What rare values have to say is small, so
// that two million samples suffice to learn nearly all of it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace gpups::tools {

constexpr std::size_t kClickNumbers = 13, kClickCategories = 26;
constexpr std::int64_t kMissingNumber = INT64_MIN;
constexpr std::uint32_t kMissingValue = UINT32_MAX;

struct ClickSample {
  std::array<std::int64_t, kClickNumbers> numbers;     // or kMissingNumber
  std::array<std::uint32_t, kClickCategories> values;  // below the category's size, or kMissingValue
  double logit = 0;                                    // of a click
  bool click = false;
};

class ClickTeacher {
 public:
  // There is one teacher; a seed has other samples of it.
  ClickTeacher();
  // Sample `index` of those of `seed`: a function of both.
  ClickSample sample(std::uint64_t seed, std::uint64_t index) const;

 private:
  static constexpr std::size_t kRank = 2;

  struct Value {
    double weight = 0;
    std::array<double, kRank> vector{};
  };
  // RoundingKey a value with one random number (Walker's alias method).
  struct Alias {
    double keep;  // probability to keep the value, else take the other
    std::uint32_t other;
  };
  struct Category {
    std::vector<Value> values;  // the last is that of "missing"
    std::vector<Alias> draw;
    double missing = 0;  // probability
    bool interacts = false;
  };

  Category make_category(std::size_t field) const;
  void calibrate();
  // Three parts of a logit, before they are scaled.
  std::array<double, 3> parts(ClickSample const& sample) const;

  std::vector<Category> categories_;
  std::array<double, 3> scale_{1, 1, 1};
  double intercept_ = 0;
};

}  // namespace gpups::tools
