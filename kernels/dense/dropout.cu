// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense/dropout.hpp"

#include <cmath>

#include "kernels/base/assert.hpp"
#include "kernels/base/philox.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

GPUPS_FN inline std::uint32_t number_of(Dropout const& g, std::size_t i) {
  return g.sample_numbers.empty() ? g.first_number + static_cast<std::uint32_t>(i) : g.sample_numbers[i];
}

// Returns a key that no other random numbers of this seed use; it differs by layer.
inline std::uint64_t dropout_key(Dropout const& g) {
  return (g.seed ^ 0x64726f706f757421U) + g.layer * 0x9E3779B97F4A7C15U;
}

// The values that are the same for all elements of a call.
struct Mask {
  PhiloxKey key;
  std::uint32_t clock[2];
  std::uint32_t least;  // a value is kept if its 16 random bits are at least this
  float kept;           // the factor of a kept value

  GPUPS_FN Philox4 random(std::uint32_t sample, std::size_t call) const {
    return philox(key, {{static_cast<std::uint32_t>(call), sample, clock[0], clock[1]}});
  }
};

inline Mask mask_of(Dropout const& g) {
  auto const clock = static_cast<std::uint64_t>(number(g.clock));
  auto const least = static_cast<std::uint32_t>(std::lround(g.rate * 0x1p16F));
  return {.key = philox_key(dropout_key(g)),
          .clock = {static_cast<std::uint32_t>(clock), static_cast<std::uint32_t>(clock >> 32)},
          .least = least,
          .kept = 1.0F / (1.0F - static_cast<float>(least) * 0x1p-16F)};
}

// The columns for which one call of the generator suffices: call c is for columns 8 * c .. 8 * c + 7. The low half of a
// word is for the column before that of the high half.
inline constexpr std::size_t kCallColumns = 8;

GPUPS_FN inline void drop_columns(Mask const& mask, std::uint32_t sample, std::size_t call, std::size_t columns,
                                  float* row) {
  Philox4 const random = mask.random(sample, call);
  std::size_t const first = kCallColumns * call;
#pragma unroll  // keeps the words in registers
  for (std::size_t k = 0; k < kCallColumns; ++k) {
    if (first + k >= columns) return;
    std::uint32_t const bits = random.word[k / 2] >> k % 2 * 16 & 0xFFFFU;
    row[first + k] = bits < mask.least ? 0.0F : row[first + k] * mask.kept;
  }
}

#ifdef __CUDACC__
// The same for rows of whole words of 16 bytes: lanes 2 k and 2 k + 1 load and store the columns of their two calls
// together. REQUIRES: both call it, with `call` even in lane 2 k and one more in lane 2 k + 1.
__device__ inline void drop_columns_together(DeviceLanes lanes, Mask const& mask, std::uint32_t sample,
                                             std::size_t call, std::size_t columns, float* row) {
  Philox4 random = mask.random(sample, call);
  lanes.transpose(random.word[0], random.word[2]);
  lanes.transpose(random.word[1], random.word[3]);
#pragma unroll
  for (std::size_t half = 0; half < 2; ++half) {
    std::size_t const first = (call - call % 2 + half) * kCallColumns + call % 2 * 4;
    if (first >= columns) return;
    float4 four = *reinterpret_cast<float4 const*>(row + first);
    float* const value[] = {&four.x, &four.y, &four.z, &four.w};
#pragma unroll
    for (std::size_t k = 0; k < 4; ++k) {
      std::uint32_t const bits = random.word[2 * half + k / 2] >> k % 2 * 16 & 0xFFFFU;
      if (first + k < columns) *value[k] = bits < mask.least ? 0.0F : *value[k] * mask.kept;
    }
    *reinterpret_cast<float4*>(row + first) = four;
  }
}

__device__ inline void drop_row(NativeLanes lanes, Dropout const& g, Mask const& mask, std::size_t i) {
  float* const row = g.values.row(i);
  std::size_t const columns = g.values.columns(), calls = (columns + kCallColumns - 1) / kCallColumns;
  std::uint32_t const sample = number_of(g, i);
  if (g.values.stride() % 4 == 0 && reinterpret_cast<std::uintptr_t>(g.values.data()) % sizeof(float4) == 0) {
    lanes.each((calls + 1) / 2 * 2,
               [=](std::size_t call) { drop_columns_together(lanes, mask, sample, call, columns, row); });
  } else {
    lanes.each(calls, [=](std::size_t call) { drop_columns(mask, sample, call, columns, row); });
  }
}
#else
// Handles the calls that fill whole vectors, and returns their number.
inline std::size_t drop_vectors(Mask mask, std::uint32_t sample, std::size_t columns, float* row) {
  std::size_t call = 0;
  for (; kCallColumns * (call + kLanes) <= columns; call += kLanes) {
    std::uint32_t words[4 * kLanes];
#pragma GCC ivdep
    for (std::size_t l = 0; l < kLanes; ++l) {
      Philox4 const random = mask.random(sample, call + l);
      words[4 * l] = random.word[0];
      words[4 * l + 1] = random.word[1];
      words[4 * l + 2] = random.word[2];
      words[4 * l + 3] = random.word[3];
    }
    float* const to = row + kCallColumns * call;
#pragma GCC ivdep
    for (std::size_t k = 0; k < 4 * kLanes; ++k) {
      float const low = to[2 * k] * mask.kept, high = to[2 * k + 1] * mask.kept;
      to[2 * k] = (words[k] & 0xFFFFU) < mask.least ? 0.0F : low;
      to[2 * k + 1] = words[k] >> 16 < mask.least ? 0.0F : high;
    }
  }
  return call;
}

inline void drop_row(HostLanes lanes, Dropout const& g, Mask const& mask, std::size_t i) {
  float* const row = g.values.row(i);
  std::size_t const columns = g.values.columns();
  std::uint32_t const sample = number_of(g, i);
  std::size_t const done = drop_vectors(mask, sample, columns, row);
  lanes.each((columns + kCallColumns - 1) / kCallColumns - done,
             [=](std::size_t call) { drop_columns(mask, sample, done + call, columns, row); });
}
#endif

template <Space S>
void run(Exec<S> ex, Dropout const& g) {
  GPUPS_ASSERT(g.rate >= 0.0F && g.rate < 1.0F);
  GPUPS_ASSERT(g.sample_numbers.empty() || g.sample_numbers.size() == g.values.rows());
  if (g.rate == 0.0F) return;
  each_row(ex, g.values.rows(),
           [g, mask = mask_of(g)] GPUPS_FN(std::size_t i, NativeLanes lanes) { drop_row(lanes, g, mask, i); });
}

GPUPS_KERNEL(dropout, Dropout)

}  // namespace gpups::kernels
