// SPDX-License-Identifier: Apache-2.0
// A column of times that is read as another number.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

// Finds out whether the numbers of a column look like Unix times: all are whole, and at least 1e8 (March 1973).
class LikeTimes {
 public:
  void add(double number) {
    any_ = true;
    all_ = all_ && number >= 1e8 && number == std::floor(number);
  }
  // Adds a notice if they do. counts_as: "weights of edges", for example. columns: of data.columns without them.
  void say(std::string_view counts_as, std::string_view columns, std::vector<std::string>& notices) const {
    if (!any_ || !all_) return;
    notices.push_back(
        fmt::format("the numbers that count as {} look like times (all are whole and at least "
                    "100000000): name other columns with data.columns, for example {}",
                    counts_as, columns));
  }

 private:
  bool any_ = false, all_ = true;
};

}  // namespace gpups::trainer
