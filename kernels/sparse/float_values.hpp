// SPDX-License-Identifier: Apache-2.0
// Conversion of the floats of a stream's block to bytes and back, on the host. Readers accept any bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/codec/packet_codes.hpp"
#include "kernels/sparse/stream_format.hpp"

namespace gpups::kernels {

// Write and read the codes of one wire format.
template <Format F>
void write_codes(float const* x, std::size_t n, float inverse, std::uint8_t* to, std::size_t bytes) {
  for (std::size_t i = 0; i < n; i += kPacketSize) {
    float part[kPacketSize];
    std::uint32_t code[kPacketSize];
    load_packet(x, i, n, part);
    for (float& one : part) one *= inverse;
    encode_packet<F>(part, code);
    PackedCodes<bits_of(F)>::of(code).store(to, i, bytes);
  }
}

template <Format F>
void read_codes(std::uint8_t const* from, std::size_t bytes, std::size_t n, float scale, float* to) {
  for (std::size_t i = 0; i < n; i += kPacketSize) {
    PackedCodes<bits_of(F)> packed;
    packed.load(from, i, bytes);
    std::uint32_t code[kPacketSize];
    packed.codes(code);
    float part[kPacketSize];
    decode_packet<F>(code, part);
    for (float& one : part) one *= scale;
    store_packet(part, to, i, n);
  }
}

// Reads 16-bit floats; Short is Half or BFloat16.
template <class Short>
void read_shorts(std::uint8_t const* from, std::size_t n, float* to) {
  for (std::size_t i = 0; i < n; i += kPacketSize) {
    std::size_t const count = std::min(kPacketSize, n - i);
    Short part[kPacketSize];
    float wide[kPacketSize];
    masked_load<sizeof part>(from + 2 * i, part, 2 * count);
    kernels::read_floats(part, wide);
    masked_store<sizeof wide>(wide, to + i, 4 * count);
  }
}

// Write and read n floats in the form `values`.
inline void write_floats(StreamValues values, float const* x, std::size_t n, std::uint8_t* to) {
  switch (values) {
    case StreamValues::kFloat:
      std::memcpy(to, x, 4 * n);
      return;
    case StreamValues::kHalf:
      write_codes<Format::kHalf>(x, n, 1, to, 2 * n);
      return;
    case StreamValues::kBFloat16:
      write_codes<Format::kBFloat16>(x, n, 1, to, 2 * n);
      return;
    default:
      break;
  }
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < n; ++i) most = std::max(most, magnitude_bits(x[i]));
  RowScale const scale = scale_of<Format::kInt8>(most);
  std::memcpy(to, &scale.scale, 4);
  write_codes<Format::kInt8>(x, n, scale.inverse, to + 4, (n + 3) / 4 * 4);
}

inline void read_floats(StreamValues values, std::uint8_t const* from, std::size_t n, float* to) {
  switch (values) {
    case StreamValues::kFloat:
      std::memcpy(to, from, 4 * n);
      return;
    case StreamValues::kHalf:
      read_shorts<Half>(from, n, to);
      return;
    case StreamValues::kBFloat16:
      read_shorts<BFloat16>(from, n, to);
      return;
    default:
      break;
  }
  float scale;
  std::memcpy(&scale, from, 4);
  read_codes<Format::kInt8>(from + 4, (n + 3) / 4 * 4, n, scale, to);
}

}  // namespace gpups::kernels
