// SPDX-License-Identifier: Apache-2.0
// Packets: the columns that a lane handles at a time. On the host a packet has enough columns for vector code, on a GPU
// 16 bytes of floats. Loads and stores do not cross the end of a row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/base/philox.hpp"
#include "kernels/base/store_wide.hpp"
#include "kernels/codec/format.hpp"
#include "kernels/codec/masked_copy.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

#ifdef __CUDACC__
inline constexpr std::size_t kPacketSize = 4;
#else
inline constexpr std::size_t kPacketSize = 64;
#endif

// Returns the columns of a row's codes, including those that pad its last word.
GPUPS_ANY_FN inline std::size_t coded_columns(std::size_t row_bytes, std::size_t bits) { return row_bytes * 8 / bits; }
GPUPS_ANY_FN inline std::size_t packets_of(std::size_t columns) { return (columns + kPacketSize - 1) / kPacketSize; }

// Loads the columns of a row of `dim` from `first` on; columns beyond the row become zero.
template <class T>
GPUPS_FN inline void load_packet(T const* row, std::size_t first, std::size_t dim, T (&to)[kPacketSize]) {
  T const* const from = row + first;
  if (first + kPacketSize <= dim) {
#ifdef __CUDACC__
    if (sizeof(T) == 4 && reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
      float4 const quad = *reinterpret_cast<float4 const*>(from);
      memcpy(to, &quad, sizeof quad);
      return;
    }
#endif
    for (std::size_t k = 0; k < kPacketSize; ++k) to[k] = from[k];
  } else {
#ifdef __CUDACC__
    for (std::size_t k = 0; k < kPacketSize; ++k) to[k] = first + k < dim ? from[k] : T{};
#else
    masked_load<sizeof to>(from, to, first < dim ? (dim - first) * sizeof(T) : 0);
#endif
  }
}

// Stores the columns of a packet that are in the row.
template <class T>
GPUPS_FN inline void store_packet(T const (&from)[kPacketSize], T* row, std::size_t first, std::size_t dim) {
  T* const to = row + first;
  if (first + kPacketSize <= dim) {
#ifdef __CUDACC__
    if (sizeof(T) == 4 && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
      float4 quad;
      memcpy(&quad, from, sizeof quad);
      *reinterpret_cast<float4*>(to) = quad;
      return;
    }
#endif
    for (std::size_t k = 0; k < kPacketSize; ++k) to[k] = from[k];
  } else {
#ifdef __CUDACC__
    for (std::size_t k = 0; k < kPacketSize; ++k) {
      if (first + k < dim) to[k] = from[k];
    }
#else
    masked_store<sizeof from>(from, to, first < dim ? (dim - first) * sizeof(T) : 0);
#endif
  }
}

// Load and store 64-bit words as load_packet() and store_packet() do. On a GPU, lanes 2 k and 2 k + 1 access their two
// packets together, in words of 16 bytes, so that each access is to whole sectors. REQUIRES: both lanes call it, with
// neighbouring packets; the loops over packets of paired_packets() do. `row` begins at a multiple of 16 bytes, and
// `dim` may be any number.
#ifdef __CUDACC__
// The columns of the two packets that a lane accesses: two from `low` on, and two from low + 4 on.
__device__ inline std::size_t low_column(std::size_t first) { return first / 8 * 8 + first % 8 / 2; }
__device__ inline longlong2 load_two(std::int64_t const* row, std::size_t at, std::size_t dim) {
  if (at + 2 <= dim) return *reinterpret_cast<longlong2 const*>(row + at);
  return {at < dim ? row[at] : 0, 0};
}
__device__ inline void store_two(longlong2 two, std::int64_t* row, std::size_t at, std::size_t dim) {
  if (at + 2 <= dim) {
    store_wide(row + at, two);
  } else if (at < dim) {
    row[at] = two.x;
  }
}
__device__ inline void load_words(NativeLanes lanes, std::int64_t const* row, std::size_t first, std::size_t dim,
                                  std::int64_t (&to)[kPacketSize]) {
  longlong2 low = load_two(row, low_column(first), dim), high = load_two(row, low_column(first) + 4, dim);
  lanes.transpose(low.x, high.x);
  lanes.transpose(low.y, high.y);
  to[0] = low.x, to[1] = low.y, to[2] = high.x, to[3] = high.y;
}
__device__ inline void store_words(NativeLanes lanes, std::int64_t const (&from)[kPacketSize], std::int64_t* row,
                                   std::size_t first, std::size_t dim) {
  longlong2 low{from[0], from[1]}, high{from[2], from[3]};
  lanes.transpose(low.x, high.x);
  lanes.transpose(low.y, high.y);
  store_two(low, row, low_column(first), dim);
  store_two(high, row, low_column(first) + 4, dim);
}
#else
inline void load_words(NativeLanes, std::int64_t const* row, std::size_t first, std::size_t dim,
                       std::int64_t (&to)[kPacketSize]) {
  load_packet(row, first, dim, to);
}
inline void store_words(NativeLanes, std::int64_t const (&from)[kPacketSize], std::int64_t* row, std::size_t first,
                        std::size_t dim) {
  store_packet(from, row, first, dim);
}
#endif
// Returns packets_of(columns), on a GPU rounded up to whole pairs.
GPUPS_FN inline std::size_t paired_packets(std::size_t columns) {
#ifdef __CUDACC__
  return (packets_of(columns) + 1) / 2 * 2;
#else
  return packets_of(columns);
#endif
}

// The first packet of each lane of a GPU, in registers, for a kernel that needs it twice. Zeros until put(), as beyond
// the end of a row. Does nothing on the host.
#ifdef __CUDACC__
template <class T>
struct HeldPacket {
  T value[kPacketSize] = {};

  __device__ void put(std::size_t pack, T const (&from)[kPacketSize]) {
    for (std::size_t k = 0; k < kPacketSize; ++k) value[k] = pack < kLanes ? from[k] : value[k];
  }
  // Returns false if this is not the packet.
  __device__ bool get(std::size_t pack, T (&to)[kPacketSize]) const {
    if (pack >= kLanes) return false;
    for (std::size_t k = 0; k < kPacketSize; ++k) to[k] = value[k];
    return true;
  }
};
#else
template <class T>
struct HeldPacket {
  void put(std::size_t, T const (&)[kPacketSize]) {}
  bool get(std::size_t, T (&)[kPacketSize]) const { return false; }
};
#endif

// Draws a number in [0, 1) for each column of a packet. `first` is a multiple of 4: column j of row i uses word j % 4
// of Philox block j / 4.
GPUPS_FN inline void draw_uniforms(RoundingKey const& rounding_key, std::size_t row, std::size_t first,
                                   float (&uniform)[kPacketSize]) {
  std::uint64_t const number = rounding_key.first_row + row;
  PhiloxBlocks<kPacketSize / 4> blocks;
  for (std::size_t b = 0; b < kPacketSize / 4; ++b) {
    blocks.word[0][b] = static_cast<std::uint32_t>(first / 4 + b);
    blocks.word[1][b] = static_cast<std::uint32_t>(number);
    blocks.word[2][b] = static_cast<std::uint32_t>(number >> 32);
    blocks.word[3][b] = rounding_key.use;
  }
  blocks.run(philox_key(rounding_key.seed));
  std::uint32_t word[kPacketSize];
  for (std::size_t b = 0; b < kPacketSize / 4; ++b) {
    for (std::size_t j = 0; j < 4; ++j) word[4 * b + j] = blocks.word[j][b];
  }
  for (std::size_t k = 0; k < kPacketSize; ++k) uniform[k] = uniform01(word[k]);
}

// The codes of a packet as bytes, kBits each.
template <std::size_t kBits>
struct PackedCodes {
  static constexpr std::size_t kBytes = kPacketSize * kBits / 8;
  // Unit holds one code; PackedGroup holds the codes that share a byte, one in each of its bytes.
  using Unit =
      std::conditional_t<kBits == 32, std::uint32_t, std::conditional_t<kBits == 16, std::uint16_t, std::uint8_t>>;
  using PackedGroup = std::conditional_t<kBits == 2, std::uint32_t, std::uint16_t>;
  alignas(16) std::uint8_t byte[kBytes];

  // Packs one code for each column.
  GPUPS_FN static PackedCodes of(std::uint32_t const (&code)[kPacketSize]) {
    PackedCodes p;
    Unit unit[kPacketSize];
    for (std::size_t k = 0; k < kPacketSize; ++k) unit[k] = static_cast<Unit>(code[k]);
    if constexpr (kBits >= 8) {
      memcpy(p.byte, unit, kBytes);
    } else {
      PackedGroup group[kBytes];
      memcpy(group, unit, sizeof unit);
      for (std::size_t b = 0; b < kBytes; ++b) p.byte[b] = static_cast<std::uint8_t>(gathered(group[b]));
    }
    return p;
  }
  // Unpacks the codes.
  GPUPS_FN void codes(std::uint32_t (&code)[kPacketSize]) const {
    Unit unit[kPacketSize];
    if constexpr (kBits >= 8) {
      memcpy(unit, byte, kBytes);
    } else {
      PackedGroup group[kBytes];
      for (std::size_t b = 0; b < kBytes; ++b) group[b] = static_cast<PackedGroup>(spread(byte[b]));
      memcpy(unit, group, sizeof unit);
    }
    for (std::size_t k = 0; k < kPacketSize; ++k) code[k] = unit[k];
  }

  // Load or store the codes of the columns from `first` on, in a row of row_bytes bytes. load() sets codes beyond the
  // end of the row to 0, and store() does not write them.
  GPUPS_FN void load(std::uint8_t const* row, std::size_t first, std::size_t row_bytes) {
    std::size_t const at = first * kBits / 8;
#ifdef __CUDACC__
    std::size_t const left = at < row_bytes ? row_bytes - at : 0;
    if (left < kBytes) *this = {};
    move(row + at, byte, left);
#else
    masked_load<kBytes>(row + at, byte, std::min(row_bytes - at, kBytes));
#endif
  }
  GPUPS_FN void store(std::uint8_t* row, std::size_t first, std::size_t row_bytes) const {
    std::size_t const at = first * kBits / 8;
#ifdef __CUDACC__
    move(byte, row + at, at < row_bytes ? row_bytes - at : 0);
#else
    masked_store<kBytes>(byte, row + at, std::min(row_bytes - at, kBytes));
#endif
  }

 private:
  // gathered() moves the low kBits of each byte of a group together into its lowest byte; spread() does the inverse.
  GPUPS_FN static std::uint32_t gathered(std::uint32_t group) {
    return kBits == 4 ? group | group >> 4 : group | group >> 6 | group >> 12 | group >> 18;
  }
  GPUPS_FN static std::uint32_t spread(std::uint32_t byte) {
    return kBits == 4 ? (byte | byte << 4) & 0x0F0FU : (byte | byte << 6 | byte << 12 | byte << 18) & 0x03030303U;
  }

#ifdef __CUDACC__
  // Rows begin and end at multiples of 4 bytes.
  GPUPS_FN static void move(std::uint8_t const* from, std::uint8_t* to, std::size_t bytes_left) {
    using Word =
        std::conditional_t<kBytes == 1, std::uint8_t, std::conditional_t<kBytes == 2, std::uint16_t, std::uint32_t>>;
    if constexpr (kBytes >= 8) {
      using Long = std::conditional_t<kBytes == 16, uint4, uint2>;
      if (bytes_left >= kBytes &&
          (reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to)) % kBytes == 0) {
        *reinterpret_cast<Long*>(to) = *reinterpret_cast<Long const*>(from);
        return;
      }
    }
    for (std::size_t b = 0; b < kBytes; b += sizeof(Word)) {
      if (b < bytes_left) *reinterpret_cast<Word*>(to + b) = *reinterpret_cast<Word const*>(from + b);
    }
  }
#endif
};

}  // namespace gpups::kernels
