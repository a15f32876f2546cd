// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/runtime/fat_binary.hpp"

#include <zstd.h>

#include <cstdint>
#include <cstring>

#include "tests/emulator/ptx/program.hpp"

namespace gpups::emulator {
namespace {

// What objects pass to __cudaRegisterFatBinary().
struct Wrapper {
  int magic, version;
  std::uint8_t const* data;
  void* unused;
};

template <class T>
T field(std::uint8_t const* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The fields of an entry that are used here.
struct Entry {
  static constexpr std::uint16_t kPtx = 1;
  std::uint16_t kind;
  std::uint32_t header_bytes;
  std::uint64_t bytes;               // of the contents, padded
  std::uint32_t compressed_bytes;    // without padding; 0: not compressed
  std::uint64_t uncompressed_bytes;  // 0: not compressed

  explicit Entry(std::uint8_t const* at)
      : kind(field<std::uint16_t>(at)),
        header_bytes(field<std::uint32_t>(at + 4)),
        bytes(field<std::uint64_t>(at + 8)),
        compressed_bytes(field<std::uint32_t>(at + 16)),
        uncompressed_bytes(field<std::uint64_t>(at + 56)) {}
};

std::string contents_of(Entry const& entry, std::uint8_t const* at) {
  auto const* const data = reinterpret_cast<char const*>(at + entry.header_bytes);
  if (entry.compressed_bytes == 0 || entry.uncompressed_bytes == 0) return {data, entry.bytes};
  std::string text(entry.uncompressed_bytes, '\0');
  std::size_t const size = ZSTD_decompress(text.data(), text.size(), data, entry.compressed_bytes);
  if (ZSTD_isError(size) != 0) {
    throw UnsupportedPtx(std::string("PTX cannot be decompressed (") + ZSTD_getErrorName(size) +
                         "): compile with -Xfatbin=-compress-mode=default, or --no-compress");
  }
  text.resize(size);
  return text;
}

}  // namespace

std::string ptx_of(void const* wrapper) {
  std::uint8_t const* const data = static_cast<Wrapper const*>(wrapper)->data;
  auto const header_bytes = field<std::uint16_t>(data + 6);
  auto const bytes = field<std::uint64_t>(data + 8);
  std::string ptx;
  for (std::uint64_t at = header_bytes; at < header_bytes + bytes;) {
    Entry const entry(data + at);
    if (entry.kind == Entry::kPtx) ptx = contents_of(entry, data + at);
    at += entry.header_bytes + entry.bytes;
  }
  if (ptx.empty()) throw UnsupportedPtx("an object has no PTX: compile for a virtual architecture, such as 90-virtual");
  return ptx;
}

}  // namespace gpups::emulator
