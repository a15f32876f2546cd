// SPDX-License-Identifier: Apache-2.0
// What is said where two ranks do not mean the same transfer.
#pragma once

#include <fmt/core.h>

#include <cstddef>
#include <string>

#include "gpups/types.hpp"

namespace gpups::comm {

inline std::string size_mismatch(Rank from, std::size_t sent, Rank to, std::size_t expected) {
  return fmt::format(
      "rank {} sends {} bytes to rank {}, which expects {} (ranks that do not agree on sizes cannot go "
      "on): run the same build and configuration on all ranks",
      number(from), sent, number(to), expected);
}

}  // namespace gpups::comm
