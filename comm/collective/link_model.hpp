// SPDX-License-Identifier: Apache-2.0
// What the parts of a collective cost a rank while all ranks do the same: how the selector compares algorithms.
//
// All ranks exchange and compute at once, and so they did when these were measured: a link or a core that ranks share
// is slower for each of them by just as much as it will be.
#pragma once

#include <array>
#include <string>

namespace gpups::comm {

// What a rank does in a collective.
struct Work {
  double rounds = 0;    // of messages that are awaited before the next
  double bytes = 0;     // sent to others
  double fresh = 0;     // bytes of memory that has to be got, and written for the first time
  double added = 0;     // elements of arrays that are added to others
  double entries = 0;   // of sparse streams, written or added
  double elements = 0;  // of the ranges that those streams tell of, there or not
  double halves = 0;    // numbers that are made 16 bits, or floats again
  double codes = 0;     // the same of fewer bits, with scales

  Work& operator+=(Work const& more);
};

// Seconds for one of each. All are positive.
struct LinkModel {
  double round_s = 0;
  double byte_s = 0;
  double fresh_s = 0;
  double add_s = 0;
  double entry_s = 0;
  double element_s = 0;
  double half_s = 0;
  double code_s = 0;

  bool operator==(LinkModel const&) const = default;
};

// The members of a model, for who goes through them.
inline constexpr std::array kLinkCosts{&LinkModel::round_s, &LinkModel::byte_s,  &LinkModel::fresh_s,
                                       &LinkModel::add_s,   &LinkModel::entry_s, &LinkModel::element_s,
                                       &LinkModel::half_s,  &LinkModel::code_s};

// What the work takes.
double seconds(LinkModel const& model, Work const& work);

// "12 us a round, 1.8 GB/s, .1 ns per byte of new memory, .3 ns per added element, 4 ns per entry, .5 ns per element of
// a range, .2 ns per number of 16 bits, 1 ns per number of fewer"
std::string describe(LinkModel const& model);

}  // namespace gpups::comm
