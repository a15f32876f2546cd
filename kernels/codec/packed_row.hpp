// SPDX-License-Identifier: Apache-2.0
// One row of packed_rows.hpp: its width, and how a team of lanes writes it and adds it to another row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/codec/packed_row_host.hpp"
#include "kernels/codec/packed_rows.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

GPUPS_FN inline std::uint32_t width_of(std::int64_t const* row, std::size_t dim, [[maybe_unused]] NativeLanes lanes) {
#ifdef GPUPS_PACK_VECTORS
  return width_of_row(row, dim);
#else
  return lanes.max_word(dim, [=](std::size_t j) { return bytes_of_integer(row[j]); });
#endif
}

// Calls f.template as<width>() for a width of 1 to 8.
template <class F>
GPUPS_FN inline void with_width(std::uint32_t width, F f) {
  switch (width) {
    case 1:
      return f.template as<1>();
    case 2:
      return f.template as<2>();
    case 3:
      return f.template as<3>();
    case 4:
      return f.template as<4>();
    case 5:
      return f.template as<5>();
    case 6:
      return f.template as<6>();
    case 7:
      return f.template as<7>();
    default:
      return f.template as<8>();
  }
}

// Stores the low W bytes of a word, in one access if the address is aligned.
template <std::size_t W>
GPUPS_FN inline void store_bytes(std::uint64_t x, std::uint8_t* to) {
#ifdef __CUDACC__
  bool const aligned = reinterpret_cast<std::uintptr_t>(to) % W == 0;
  if (W == 2 && aligned) return void(*reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(x));
  if (W == 4 && aligned) return void(*reinterpret_cast<std::uint32_t*>(to) = static_cast<std::uint32_t>(x));
  if (W == 8 && aligned) return void(*reinterpret_cast<std::uint64_t*>(to) = x);
#pragma unroll
  for (std::size_t b = 0; b < W; ++b) to[b] = static_cast<std::uint8_t>(x >> 8 * b);
#else
  std::memcpy(to, &x, W);
#endif
}
// Loads W bytes. `end`: the end of the row. A GPU loads the aligned words that have the bytes, one or two, and loads
// single bytes only if a word would extend past the end: with a load for each byte, a warp would access each sector W
// times. REQUIRES: the memory of the row begins at an aligned word, as that of every Array.
template <std::size_t W>
GPUPS_FN inline std::int64_t load_bytes(std::uint8_t const* from, [[maybe_unused]] std::uint8_t const* end) {
  std::uint64_t x = 0;
#ifdef __CUDACC__
  std::size_t const at = reinterpret_cast<std::uintptr_t>(from) % sizeof x;
  std::size_t const words = at + W > sizeof x ? 2 : 1;
  auto const* const word = reinterpret_cast<std::uint64_t const*>(from - at);
  if (reinterpret_cast<std::uint8_t const*>(word + words) <= end) {
    x = word[0] >> 8 * at;
    if (words == 2) x |= word[1] << (64 - 8 * at);
  } else {
#pragma unroll
    for (std::size_t b = 0; b < W; ++b) x |= std::uint64_t{from[b]} << 8 * b;
  }
#else
  std::memcpy(&x, from, W);
#endif
  return static_cast<std::int64_t>(x << (64 - 8 * W)) >> (64 - 8 * W);
}

struct WriteRow {
  std::int64_t const* row;
  std::size_t dim;
  std::uint8_t* to;
  NativeLanes lanes;

  template <std::size_t W>
  GPUPS_FN void as() const {
    lanes.each(dim, [*this](std::size_t j) { store_bytes<W>(static_cast<std::uint64_t>(row[j]), to + j * W); });
  }
};

struct AddRow {
  std::uint8_t const* from;
  std::size_t dim;
  std::int64_t* into;
  NativeLanes lanes;
  std::uint64_t* overflows;

  template <std::size_t W>
  GPUPS_FN void as() const {
    std::uint8_t const* const end = from + dim * W;
    // An addition has overflowed if the sign of the sum differs from the signs of both terms.
    *overflows = lanes.sum_words(dim, [*this, end](std::size_t j) {
      auto const a = static_cast<std::uint64_t>(into[j]);
      auto const b = static_cast<std::uint64_t>(load_bytes<W>(from + j * W, end));
      std::uint64_t const sum = a + b;
      into[j] = static_cast<std::int64_t>(sum);
      return ((sum ^ a) & (sum ^ b)) >> 63;
    });
  }
};

// Writes the numbers of a row. REQUIRES: width > 0.
GPUPS_FN inline void write_packed_row(std::int64_t const* row, std::size_t dim, std::uint32_t width, std::uint8_t* to,
                                      [[maybe_unused]] NativeLanes lanes) {
#ifdef GPUPS_PACK_VECTORS
  write_row(row, dim, width, to);
#else
  with_width(width, WriteRow{row, dim, to, lanes});
#endif
}

// Adds the numbers of a row to `into`. Returns whether a sum has left the range of 64 bits. REQUIRES: width > 0.
GPUPS_FN inline bool add_packed_row(std::uint8_t const* from, std::size_t dim, std::uint32_t width, std::int64_t* into,
                                    [[maybe_unused]] NativeLanes lanes) {
#ifdef GPUPS_PACK_VECTORS
  return add_row(from, dim, width, into);
#else
  std::uint64_t overflows = 0;
  with_width(width, AddRow{from, dim, into, lanes, &overflows});
  return overflows > 0;
#endif
}

}  // namespace gpups::kernels
