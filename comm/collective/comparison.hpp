// SPDX-License-Identifier: Apache-2.0
// How long one way of summing takes for what another takes, by sums of one way, of the other, and of the first again. A
// machine or a link may be slower for seconds; so is then the one as well as the other.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace gpups::comm {

struct Algorithm;

double median(std::vector<double> values);  // of two in the middle, their mean; there is one at least

class Comparison {
 public:
  struct Result {
    Algorithm const* one;
    Algorithm const* other;  // which ran before the one, and after it
    double times;            // that `one` took for each time of `other`
    std::size_t sums;        // of `one`
  };

  // A sum has ended. counts: whether its time does. right_after: the sum of which the last call told.
  std::optional<Result> learn(Algorithm const* algorithm, double seconds, bool counts, bool right_after);

 private:
  static constexpr std::size_t kMost = 8;  // sums of a leg: the last ones, of the first leg
  struct Leg {
    Algorithm const* algorithm = nullptr;
    std::vector<double> seconds;  // of those that count
  };
  Leg before_, between_, now_;
};

}  // namespace gpups::comm
