// SPDX-License-Identifier: Apache-2.0
// A column of whole numbers whose points separate thousands, which are read as decimal points.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

// Finds out whether all numbers of a column with a point have three digits after it and one to three before it, of
// which the first is no 0, and others have no point: "1.250" beside "38".
class LikeThousands {
 public:
  void add(std::string_view number) {
    if (!may_be_) return;
    std::size_t const point = number.find('.');
    if (point == number.npos) {
      any_whole_ = true;
      may_be_ = are_digits(number);
      return;
    }
    std::string_view const before = number.substr(0, point), after = number.substr(point + 1);
    may_be_ = after.size() == 3 && are_digits(after) && !before.empty() && before.size() <= 3 &&
              before.front() != '0' && are_digits(before);
    if (with_point_++ == 0) shown_ = number;
    all_thirds_ = all_thirds_ && (after == "333" || after == "667");  // as means of three numbers have
  }
  // Adds a notice if they do. names: what the numbers are, such as "ratings".
  void say(std::string_view names, std::vector<std::string>& notices) const {
    constexpr std::uint64_t kLeast = 3;
    if (!may_be_ || !any_whole_ || all_thirds_ || with_point_ < kLeast) return;
    std::string whole = shown_;
    std::erase(whole, '.');
    notices.push_back(fmt::format(
        "{} {}, such as {}, have three digits after a point, and the others are whole: if {} is {}, write it without "
        "the point, which is read as a decimal point",
        with_point_, names, shown_, shown_, whole));
  }

 private:
  static bool are_digits(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  }

  bool may_be_ = true, any_whole_ = false, all_thirds_ = true;
  std::uint64_t with_point_ = 0;
  std::string shown_{};
};

}  // namespace gpups::trainer
