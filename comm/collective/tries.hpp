// SPDX-License-Identifier: Apache-2.0
// When sums of one kind go in a way that is not the usual one, to know more of it: as long as what that costs
// stays a small share of all time. A try is of a few sums on end, after as many of the usual way and before as
// many, which it is compared with.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collective/ways.hpp"

namespace gpups::comm {

// What a way should take.
struct Estimate {
  Way const* way = nullptr;
  double modelled_s = 0;
  double measured_s = 0;     // what it took of the usual one's time, of what that takes nowadays; 0: not known
  std::uint64_t idle = 0;    // sums of the kind since it was taken, or all
  bool settled = false;      // it was tried so often that more would not change much
  double expected_s = 0;     // by which they are compared
  double hoped_s = 0;        // what it may turn out to take
  bool is_compared = false;  // it is taken in a try, or to be compared with one
};

class Tries {
 public:
  struct Told {
    Way const* way;
    double seconds;
    std::uint64_t stands_for = 1;  // it, and others that are not told of
    bool right_after = true;       // the sum that was told of before
  };

  // What the next sum takes, of all that can do it, the usual one first. No try comes before it was told of all sums
  // that the last is made of, or of as many.
  Estimate next(std::vector<Estimate> const& all);
  // A sum has ended.
  void learn(Told const& sum, Estimate const& usual);

 private:
  static constexpr std::uint64_t kEvery = 8, kEveryMost = 64;  // sums
  enum class Leg { kNone, kBefore, kTry, kAfter };

  Estimate const* worth_a_try(std::vector<Estimate> const& all) const;
  bool begin(std::vector<Estimate> const& all);
  void turn(std::vector<Estimate> const& all);

  std::uint64_t told_ = 0;        // sums that were told of
  std::uint64_t sums_ = 0;        // the same; one that stands for others counts as up to kEvery
  std::uint64_t next_ = kEvery;   // the sum from which on what seems slower gets another chance
  std::uint64_t apart_ = kEvery;  // sums between such chances
  std::uint64_t learned_ = 0;     // the last try tells something once more sums than this were told of
  Way const* last_ = nullptr;     // by which the last sum was that was told of,
  std::uint64_t on_end_ = 0;      // and so many before it, one after the other, with it
  Way const* tried_ = nullptr;
  std::uint64_t each_ = 0;  // sums of each leg of this try
  Leg leg_ = Leg::kNone;
  std::uint64_t left_ = 0;      // sums of this leg
  bool was_disturbed_ = false;  // some sum of this try
  double total_s_ = 0;          // of all sums
  double spent_s_ = 0;          // what tries took more than the usual one would have
};

}  // namespace gpups::comm
