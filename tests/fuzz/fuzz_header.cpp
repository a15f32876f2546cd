// SPDX-License-Identifier: Apache-2.0
// Any bytes as a header of a UCX message, alone and copied over a valid header. Of the latter only an unchanged header
// is accepted. (Bytes alone may be valid: the fuzzer sees the MACs that they are compared with.)
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "comm/ucx/header_mac.hpp"

namespace gpups::fuzz {
namespace {

using comm::HeaderMac;
using Verdict = HeaderMac::Verified::Verdict;

constexpr std::uint64_t kSession = 0x0123456789abcdef;

bool opens(void const* data, std::size_t bytes) {
  static HeaderMac const zero(Rank{0}, kSession, std::vector<comm::HashKey>{{1, 2}, {3, 4}, {5, 6}});
  auto const opened = zero.open(data, bytes, 5);
  if ((opened.verdict == Verdict::kWrong) == opened.wrong.empty()) std::abort();
  if (number(opened.header.from) >= 3) std::abort();
  return opened.verdict == Verdict::kValid;
}

void change_valid_header(std::uint8_t const* data, std::size_t size) {
  static HeaderMac const one(Rank{1}, kSession, std::vector<comm::HashKey>{{3, 4}, {7, 8}, {9, 10}});
  auto const made = one.sign(Rank{0}, {Rank{1}, comm::AmKind::kData, 7, 8}, 5, 9);
  auto altered = made;
  std::size_t const at = size == 0 ? 0 : data[0] % (sizeof made - sizeof made.mac);
  std::size_t const bytes = size == 0 ? 0 : std::min(size - 1, sizeof made - sizeof made.mac - at);
  if (bytes > 0) std::memcpy(reinterpret_cast<char*>(&altered) + at, data + 1, bytes);
  bool const is_same = std::memcmp(&altered, &made, sizeof made) == 0;
  if (opens(&altered, sizeof altered) != is_same) std::abort();
}

}  // namespace
}  // namespace gpups::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  gpups::fuzz::opens(data, size);
  gpups::fuzz::change_valid_header(data, size);
  return 0;
}
