// SPDX-License-Identifier: Apache-2.0
// Sums that a Reckoning chooses for and is told of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "comm/collective/reckoning.hpp"

namespace gpups::comm {

// Sums of one shape, one after the other.
class Sums {
 public:
  // It is known how long a sum took once so many others were chosen for.
  Sums(Reckoning& reckoning, SumShape const& shape, std::size_t late = 0)
      : reckoning_(reckoning), shape_(shape), late_(late) {}

  void learn(Way const& way, double seconds, std::uint64_t stands_for = 1) {
    number_ += stands_for;
    ended_.push_back({.number = number_,
                      .shape = shape_,
                      .way = &way,
                      .seconds = seconds,
                      .entries = entries,
                      .stands_for = stands_for});
    if (ended_.size() <= late_) return;
    reckoning_.learn(ended_.front());
    ended_.pop_front();
  }
  // As the reckoning wants them, each of which takes what `seconds` says of its algorithm. Of the last ones, how many
  // took each.
  template <class Seconds>
  std::map<Way const*, int> take(int sums, Seconds seconds, int last = 1) {
    std::map<Way const*, int> taken;
    for (int i = 0; i < sums; ++i) {
      Way const& way = *reckoning_.next(shape_).way;
      learn(way, seconds(way));
      if (i >= sums - last) ++taken[&way];
    }
    return taken;
  }
  // Some whose times are not known.
  void skip(std::uint64_t sums) { number_ += sums; }

  std::optional<std::uint64_t> entries;  // of each

 private:
  Reckoning& reckoning_;
  SumShape const shape_;
  std::size_t const late_;
  std::uint64_t number_ = 0;
  std::deque<EndedSum> ended_;
};

}  // namespace gpups::comm
