// SPDX-License-Identifier: Apache-2.0
// The ways in which floats are summed: an algorithm, and one of the formats that it has. What a choice is made among.
#pragma once

#include <span>
#include <string>

#include "comm/collective/algorithms.hpp"

namespace gpups::comm {

struct Way {
  Algorithm const* algorithm;
  NumberFormat format;

  // What a rank does in a sum of this shape, in which `summed` elements will not be zero.
  Work work(SumShape shape, double summed) const;
  // Whether it can do a sum of this shape: ranks can use it, and it errs by no more than the algorithm does in the
  // shape's format, which it must have unless it sends floats: where terms are rounded and where sums are differs
  // between algorithms.
  bool serves(SumShape const& shape) const;
};

// "sparse_gather as half", or "sparse_gather" where numbers go as floats.
std::string name_of(Way const& way);

// At most kWaysMax: a choice is told in few bits. They stay where they are, so that an address tells which it is.
inline constexpr unsigned kWayBits = 5, kWaysMax = 1U << kWayBits;
std::span<Way const> ways();

// Whether the largest error of numbers that go as `format` is nowhere larger than that of numbers that go as `other`.
bool is_as_exact(NumberFormat format, NumberFormat other);

}  // namespace gpups::comm
