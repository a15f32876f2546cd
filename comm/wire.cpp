// SPDX-License-Identifier: Apache-2.0
#include "comm/wire.hpp"

#include <fmt/core.h>

namespace gpups::comm {

std::string_view Reader::take(std::uint64_t count, std::size_t size) {
  // Compared by division, because the product may overflow.
  if (count > rest_.size() / size) {
    throw WireError(
        fmt::format("a message from another rank is too short ({} bytes are left, but {} elements of {} bytes should "
                    "follow): run the same "
                    "build on all ranks",
                    rest_.size(), count, size));
  }
  std::string_view const taken = rest_.substr(0, count * size);
  rest_.remove_prefix(taken.size());
  return taken;
}

void Reader::end() const {
  if (rest_.empty()) return;
  throw WireError(fmt::format("a message from another rank is too long by {} bytes: run the same build on all ranks",
                              rest_.size()));
}

}  // namespace gpups::comm
