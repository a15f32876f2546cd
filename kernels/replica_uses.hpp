// SPDX-License-Identifier: Apache-2.0
// The column that distinguishes replicas from owned rows. Its word is 0 for an owned row; for a replica it tells the
// last step that uses it. Moves 8 bytes per row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

inline constexpr std::uint32_t kOwned = 0;

// Returns the word of a replica whose last use is in step `clock`.
constexpr std::uint32_t replica_word(Clock clock) {
  constexpr std::uint32_t kReplica = std::uint32_t{1} << 31;
  return kReplica | (static_cast<std::uint32_t>(number(clock)) & (kReplica - 1));
}

// Makes rows replicas with this word.
struct MarkReplicas {
  Rows<std::uint32_t> uses;       // stride 1
  View<std::uint32_t const> ids;  // (n)
  std::uint32_t word;
};
void mark_replicas(Stream& stream, MarkReplicas const& arguments);

// Lists the rows that have this word, in the order of `ids`, and makes their word that of owned rows, which free row
// numbers have. Returns how many there are. Waits for `stream`.
struct TakeReplicas {
  Rows<std::uint32_t> uses;
  View<std::uint32_t const> ids;  // (n), distinct
  std::uint32_t word;
  View<std::uint32_t> taken;  // (n)
};
std::size_t wait_take_replicas(Stream& stream, TakeReplicas const& arguments);

}  // namespace gpups::kernels
