// SPDX-License-Identifier: Apache-2.0
// The owners of a row of a batch: before the batch's step, and in it.
#pragma once

#include <cstdint>

#include "gpups/types.hpp"
#include "kernels/base/function.hpp"

namespace gpups::kernels {

// The most ranks whose rows may move.
inline constexpr std::uint32_t kMovingRanksMax = 1U << 15;

// What a rank does with rows of a reader's batch. Rows that do not move in the batch's step have kReadAndUpdate.
enum class RowRole : std::uint8_t {
  kReadAndUpdate,  // it sends their values to the reader, and the reader sends it gradients
  kRead,           // it sends their values: another rank owns them from the step on
  kUpdate,         // it gets their gradients: it owns them from the step on
  kMove,           // it passes them to the reader, which owns them from the step on
};
inline constexpr std::uint32_t kRowRoles = 4;

// In a word. repeated: an earlier part of the same batch uses the row, too.
struct RowOwners {
  std::uint32_t before, in_step;
  bool repeated;

  GPUPS_FN static std::uint32_t word(std::uint32_t before, std::uint32_t in_step, bool repeated) {
    return before | in_step << 15 | (repeated ? 1U << 30 : 0);
  }
  GPUPS_FN static RowOwners of(std::uint32_t word) {
    std::uint32_t const mask = kMovingRanksMax - 1;
    return {word & mask, word >> 15 & mask, (word >> 30 & 1) != 0};
  }
  GPUPS_FN bool moves() const { return before != in_step; }
};

// Returns one of two numbers without a branch: which of two ranks owns a row is as good as random.
GPUPS_FN inline std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  return no ^ ((yes ^ no) & (0 - std::uint32_t{condition}));
}

// A rank's number in one byte, or two if there are more than 256 ranks.
GPUPS_FN inline void write_rank(std::uint8_t* to, std::size_t i, std::uint32_t rank, std::uint32_t bytes) {
  to[i * bytes] = static_cast<std::uint8_t>(rank);
  if (bytes == 2) to[i * 2 + 1] = static_cast<std::uint8_t>(rank >> 8);
}
GPUPS_FN inline std::uint32_t read_rank(std::uint8_t const* from, std::size_t i, std::uint32_t bytes) {
  return bytes == 1 ? from[i] : from[i * 2] | std::uint32_t{from[i * 2 + 1]} << 8;
}

}  // namespace gpups::kernels
