// SPDX-License-Identifier: Apache-2.0
#include "trainer/click/value_id.hpp"

// Values are short: a call would cost as much as the hash, and wide vectors are of no use.
#define XXH_INLINE_ALL
#define XXH_VECTOR 0
#include <xxhash.h>

namespace gpups::trainer {

std::uint64_t value_id(std::string_view text) {
  if (text.size() == 8) {
    if (auto const number = hexadecimal_number(text.data())) return *number;
  }
  return XXH3_64bits(text.data(), text.size()) | std::uint64_t{1} << 63;
}

}  // namespace gpups::trainer
