// SPDX-License-Identifier: Apache-2.0
// Corrects the checksums of a changed binary file of samples, as an attacker would.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "kernels/base/checksum.hpp"
#include "trainer/tasks/click/binary_format.hpp"

namespace gpups::test {

inline trainer::FileHeader header_of(std::string const& bytes) {
  trainer::FileHeader header;
  std::memcpy(&header, bytes.data(), std::min(sizeof header, bytes.size()));
  return header;
}

// Corrects the checksums of blocks, index and header, as far as they are within the file.
inline void correct_checksums(std::string& bytes) {
  using namespace trainer;
  FileHeader header = header_of(bytes);
  auto const digest = [&](std::size_t begin, std::size_t size, std::uint64_t seed = 0) {
    return kernels::checksum(std::as_bytes(std::span(bytes)).subspan(begin, size), seed);
  };
  if (bytes.size() < sizeof header) return;
  for (std::size_t at = header.index_begin; at < bytes.size() && bytes.size() - at >= sizeof(BlockEntry);
       at += sizeof(BlockEntry)) {
    BlockEntry entry;
    std::memcpy(&entry, bytes.data() + at, sizeof entry);
    if (entry.begin > bytes.size() || entry.bytes > bytes.size() - entry.begin) continue;
    entry.xxh3 = digest(entry.begin, entry.bytes);
    std::memcpy(bytes.data() + at, &entry, sizeof entry);
  }
  if (header.index_begin <= bytes.size()) {
    header.index_xxh3 = digest(header.index_begin, bytes.size() - header.index_begin);
  }
  std::memcpy(bytes.data(), &header, sizeof header);
  if (header.layout_bytes <= bytes.size() - sizeof header) {
    header.xxh3 = digest(sizeof header, header.layout_bytes, digest(0, offsetof(FileHeader, xxh3)));
    std::uint64_t const of_names = aligned(header.names_bytes);
    if (of_names > 0 && of_names <= header.index_begin && header.index_begin <= bytes.size()) {
      header.xxh3 = digest(header.index_begin - of_names, header.names_bytes, header.xxh3);
    }
  }
  std::memcpy(bytes.data(), &header, sizeof header);
}

}  // namespace gpups::test
