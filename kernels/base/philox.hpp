// SPDX-License-Identifier: Apache-2.0
// Random numbers as a pure function of a key and a counter: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). The same bits on host and device.
#pragma once

#include <cstdint>

namespace gpups::kernels {

struct PhiloxKey {
  std::uint32_t word[2];
};
struct PhiloxCounter {
  std::uint32_t word[4];
};
struct Philox4 {
  std::uint32_t word[4];
};

constexpr PhiloxKey philox_key(std::uint64_t seed) {
  return {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
}

// Returns four random words for one counter.
constexpr Philox4 philox(PhiloxKey key, PhiloxCounter counter) {
  std::uint32_t a = counter.word[0], b = counter.word[1], c = counter.word[2], d = counter.word[3];
  std::uint32_t k0 = key.word[0], k1 = key.word[1];
  for (int round = 0; round < 10; ++round) {
    std::uint64_t const left = std::uint64_t{0xD2511F53U} * a;
    std::uint64_t const right = std::uint64_t{0xCD9E8D57U} * c;
    a = static_cast<std::uint32_t>(right >> 32) ^ b ^ k0;
    b = static_cast<std::uint32_t>(right);
    c = static_cast<std::uint32_t>(left >> 32) ^ d ^ k1;
    d = static_cast<std::uint32_t>(left);
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return {{a, b, c, d}};
}

// Returns a multiple of 2^-24 in [0, 1).
constexpr float uniform01(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

}  // namespace gpups::kernels
