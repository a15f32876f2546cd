// SPDX-License-Identifier: Apache-2.0
// A stable partition of items into many lists at once.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// The list of an item that is in none.
inline constexpr std::uint32_t kNoList = 0xFFFFFFFF;

// items: those of list 0, then those of list 1, and so on, in ascending order within a list. first: where each list
// begins; the last element: the number of items in lists. Queued on `stream`. Cost on the host: 4 bytes for each list
// and 65,536 items, or 16 if there are few lists.
struct PartitionItems {
  View<std::uint32_t const> list_of;  // (n), below `lists`, or kNoList
  std::uint32_t lists = 0;
  View<std::uint32_t> items;  // (n); those after the last list are undefined
  View<std::uint32_t> first;  // (lists + 1)
};
void partition_items(Stream& stream, PartitionItems const& arguments);

}  // namespace gpups::kernels
