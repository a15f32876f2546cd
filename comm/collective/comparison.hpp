// SPDX-License-Identifier: Apache-2.0
// How long one way of summing takes for what another takes, by sums of one way, of the other, and of the first again. A
// machine or a link may be slower for seconds; so is then the one as well as the other.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace gpups::comm {

struct Way;

class Comparison {
 public:
  struct Sum {
    Way const* way;
    double seconds;
    bool counts = true;       // its time does
    bool right_after = true;  // the sum of which the last call told
  };
  struct Result {
    Way const* one;
    Way const* other;  // which ran before the one, and after it
    double ratio;      // what `one` took of the time of `other`
  };

  // A sum has ended.
  std::optional<Result> learn(Sum const& sum);

 private:
  static constexpr std::size_t kMost = 8;  // sums of a leg, the last ones
  struct Leg {
    Way const* way = nullptr;
    std::vector<double> seconds;  // of those that count
  };
  Leg before_, between_, now_;
};

}  // namespace gpups::comm
