// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/ways.hpp"

#include <fmt/format.h>

#include <vector>

#include "comm/collective/sparse_streamed.hpp"
#include "kernels/wire/format.hpp"

namespace gpups::comm {

Work Way::work(SumShape shape, double summed) const {
  shape.format = format;
  return algorithm->work(shape, summed);
}

bool Way::serves(SumShape const& shape) const {
  bool const is_exact = format == NumberFormat::kFloat;
  return algorithm->is_between(shape.adds) &&
         (is_exact || (is_as_exact(format, shape.format) && algorithm->has(shape.format)));
}

std::string name_of(Way const& way) {
  std::string const name = way.algorithm->about.name;
  return way.format == NumberFormat::kFloat ? name : fmt::format("{} as {}", name, name_of(way.format));
}

std::span<Way const> ways() {
  static std::vector<Way> const all = [] {
    std::vector<Way> found;
    for (Algorithm const& algorithm : algorithms()) {
      for (NumberFormat const format : kNumberFormats) {
        if (algorithm.has(format)) found.push_back({&algorithm, format});
      }
    }
    return found;
  }();
  return all;
}

// By the largest errors in kernels/wire/format.hpp. A bfloat loses less of each number than what has a scale loses of
// the largest one beside it. A half cuts off what is large, and has few digits of what is small, as no other does; and
// scales are of blocks that differ between algorithms.
bool is_as_exact(NumberFormat format, NumberFormat other) {
  if (format == other || format == NumberFormat::kFloat) return true;
  return format == NumberFormat::kBFloat && kernels::has_scale(wire_format(other));
}

}  // namespace gpups::comm
