// SPDX-License-Identifier: Apache-2.0
// A rating: what a row thinks of a column.
#pragma once

#include <cstdint>

namespace gpups::trainer {

struct Rating {
  std::uint32_t row, column;  // their numbers, see IdMap
  float value;
  bool operator==(Rating const&) const = default;
};

}  // namespace gpups::trainer
