// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense/dense_units.hpp"

#include <limits>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/check.hpp"

namespace gpups::kernels {

DenseUnits::DenseUnits(Stream& stream, std::span<std::size_t const> begins) {
  GPUPS_ASSERT(!begins.empty() && begins.front() == 0);
  GPUPS_REQUIRE(begins.back() <= std::numeric_limits<std::uint32_t>::max(),
                "the dense layers have {} parameters (LAMB supports fewer than 2^32): use another optimizer for them, "
                "or smaller layers",
                begins.back());
  std::vector<std::uint32_t> const places(begins.begin(), begins.end());
  std::vector<std::uint32_t> first_parts{0}, unit_of;
  for (std::size_t unit = 0; unit + 1 < begins.size(); ++unit) {
    GPUPS_ASSERT(begins[unit] < begins[unit + 1] && begins[unit + 1] % kDenseAlignment == 0);
    std::size_t const parts = (begins[unit + 1] - begins[unit] + kDensePart - 1) / kDensePart;
    unit_of.insert(unit_of.end(), parts, static_cast<std::uint32_t>(unit));
    first_parts.push_back(static_cast<std::uint32_t>(unit_of.size()));
  }
  begins_ = to_device(stream, places);
  first_parts_ = to_device(stream, first_parts);
  unit_of_ = to_device(stream, unit_of);
  squares_ = Array<float>(stream.device(), 2 * unit_of.size());
  trust_ = Array<float>(stream.device(), begins.size() - 1);
}

std::size_t DenseUnits::bytes() const {
  return begins_.bytes() + first_parts_.bytes() + unit_of_.bytes() + squares_.bytes() + trust_.bytes();
}

}  // namespace gpups::kernels
