// SPDX-License-Identifier: Apache-2.0
// Reads the bytes of a fuzzer as choices. Past the end every choice is 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

namespace gpups::fuzz {

class Script {
 public:
  Script(std::uint8_t const* data, std::size_t size) : at_(data), end_(data + size) {}

  bool over() const { return at_ == end_; }
  std::uint8_t peek() const { return over() ? std::uint8_t{0} : *at_; }
  std::uint8_t byte() { return over() ? std::uint8_t{0} : *at_++; }
  // Returns true for `in_256` of the 256 values of a byte.
  bool rarely(int in_256) { return byte() >= 256 - in_256; }

  // Returns a small number, an extreme value of a type or limit, or any number.
  std::uint64_t number() {
    constexpr std::uint64_t kEdges[] = {0,
                                        1,
                                        127,
                                        4095,
                                        4096,
                                        4097,
                                        (1U << 20) - 1,
                                        1U << 20,
                                        1U << 24,
                                        (1U << 28) - 1,
                                        1U << 28,
                                        0x7FFFFFFF,
                                        0x80000000,
                                        0xFFFFFFFF,
                                        1ULL << 32,
                                        1ULL << 40,
                                        1ULL << 48,
                                        1ULL << 60,
                                        1ULL << 61,
                                        ~0ULL >> 1,
                                        1ULL << 63,
                                        ~0ULL - 1,
                                        ~0ULL};
    constexpr std::uint8_t kEdgeCount = std::size(kEdges), kFirstEdge = 255 - kEdgeCount;
    std::uint8_t const choice = byte();
    if (choice < kFirstEdge) return choice;
    if (choice < 255) return kEdges[choice - kFirstEdge];
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }

  std::string text(std::size_t size_max) {
    std::size_t const size = std::min<std::size_t>({byte(), size_max, static_cast<std::size_t>(end_ - at_)});
    std::string text(reinterpret_cast<char const*>(at_), size);
    at_ += size;
    return text;
  }

 private:
  std::uint8_t const* at_;
  std::uint8_t const* end_;
};

}  // namespace gpups::fuzz
