// SPDX-License-Identifier: Apache-2.0
// A column of times that is read as another number.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

// Whether a number looks like a Unix time: it is whole, and at least 1e8 (March 1973).
inline bool is_unix_time(double number) { return number >= 1e8 && number == std::floor(number); }

// Whether a number looks like a date: it is whole, and has the digits YYYYMMDD of one from 1900 to 2100.
inline bool is_date(double number) {
  if (number < 19000101 || number > 21001231 || number != std::floor(number)) return false;
  auto const digits = static_cast<long>(number);
  long const month = digits / 100 % 100, day = digits % 100;
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

inline bool is_time(double number) { return is_unix_time(number) || is_date(number); }

// Whether a text begins with a date such as 2010-10-19.
inline bool begins_with_date(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00";
  if (text.size() < kShape.size()) return false;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    bool const digit = text[i] >= '0' && text[i] <= '9', sign = text[i] == '-' || text[i] == '/';
    if (kShape[i] == '0' ? !digit : !sign) return false;
  }
  return true;
}

// Finds out whether all numbers of a column look like Unix times, or all like dates.
class LikeTimes {
 public:
  void add(double number) {
    any_ = true;
    all_times_ = all_times_ && is_unix_time(number);
    all_dates_ = all_dates_ && is_date(number);
  }
  // Adds a notice if they do. counts_as: "weights of edges", for example. columns: of data.columns without them.
  void say(std::string_view counts_as, std::string_view columns, std::vector<std::string>& notices) const {
    if (!any_ || (!all_times_ && !all_dates_)) return;
    notices.push_back(
        fmt::format("the numbers that count as {} look like times (all are {}): name other columns with data.columns, "
                    "for example {}",
                    counts_as, all_dates_ ? "dates, as YYYYMMDD" : "whole and at least 100000000", columns));
  }

 private:
  bool any_ = false, all_times_ = true, all_dates_ = true;
};

}  // namespace gpups::trainer
