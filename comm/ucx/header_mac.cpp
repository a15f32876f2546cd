// SPDX-License-Identifier: Apache-2.0
#include "comm/ucx/header_mac.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace gpups::comm {
namespace {

constexpr std::uint32_t kMagic = 0x73707567;  // "gups"
// The session of another job differs in about half of the 64 bits; the chance that it differs in so few is 3e-10. A
// session of this job that was corrupted differs in few.
constexpr int kChangedBitsMax = 8;
constexpr std::size_t kCommonBytes = offsetof(AmWireHeader, from);  // equal in every protocol version

static_assert(std::is_trivially_copyable_v<AmWireHeader> && sizeof(AmWireHeader) == 64);

}  // namespace

// Returns the MAC with the pair key of `other`, for the receiver `to`.
std::uint64_t HeaderMac::mac_of(Rank other, Rank to, AmWireHeader const& header) const {
  std::array<std::uint64_t, sizeof(AmWireHeader) / 8> words;
  std::memcpy(words.data(), &header, sizeof header);
  words.back() = number(to);
  return keyed_hash(keys_[number(other)], words);
}

AmWireHeader HeaderMac::sign(Rank to, AmHeader const& header, std::size_t body_bytes,
                             std::optional<std::uint64_t> checksum) const {
  AmWireHeader made{.magic = kMagic,
                    .protocol = kUcxProtocol,
                    .has_check = checksum.has_value(),
                    .session = session_,
                    .from = me_,
                    .kind = header.kind,
                    .number = header.number,
                    .bytes = header.bytes,
                    .body_bytes = body_bytes,
                    .checksum = checksum.value_or(0),
                    .mac = 0};
  made.mac = mac_of(to, to, made);
  return made;
}

// Finds the sender of a header with a wrong MAC, and what is wrong with it, as far as possible.
void HeaderMac::diagnose(AmWireHeader const& header, Verified& verified) const {
  auto const wrong = [&](Rank from, std::string what) {
    verified.verdict = Verified::Verdict::kWrong;
    verified.header.from = from;
    verified.wrong = std::move(what);
  };
  bool const names_rank = number(header.from) < keys_.size();
  if (header.magic == kMagic && header.protocol != kUcxProtocol && names_rank) {
    return wrong(header.from, fmt::format("it uses version {} of the data protocol, and this rank version {}",
                                          header.protocol, kUcxProtocol));
  }
  constexpr char const* kChanged = "a header from it was corrupted on the way, or another process claims to be it";
  for (std::uint32_t rank = 0; rank < keys_.size(); ++rank) {
    AmWireHeader other = header;
    other.from = Rank{rank};
    if (mac_of(Rank{rank}, me_, other) == header.mac) return wrong(Rank{rank}, kChanged);
    if (mac_of(Rank{rank}, me_, header) == header.mac) {
      return wrong(Rank{rank}, fmt::format("it claims to be rank {}", number(header.from)));
    }
  }
  if (names_rank) wrong(header.from, kChanged);
}

HeaderMac::Verified HeaderMac::open(void const* data, std::size_t bytes, std::size_t body_bytes) const {
  Verified verified;
  AmWireHeader header{};
  if (bytes < kCommonBytes) return verified;
  std::memcpy(&header, data, std::min(bytes, sizeof header));
  if (std::popcount(header.session ^ session_) > kChangedBitsMax) return verified;
  bool const is_complete = bytes == sizeof header && number(header.from) < keys_.size();
  bool const is_ours = header.magic == kMagic && header.protocol == kUcxProtocol && header.session == session_;
  if (is_complete && is_ours && header.mac == mac_of(header.from, me_, header)) {
    verified.header = {header.from, header.kind, header.number, header.bytes};
    verified.verdict = Verified::Verdict::kValid;
    if (header.has_check != 0) verified.checksum = header.checksum;
    if (header.body_bytes == body_bytes && static_cast<std::size_t>(header.kind) < kAmKinds) return verified;
    verified.verdict = Verified::Verdict::kWrong;
    verified.wrong = fmt::format("it sent {} bytes, but its header gives {}", body_bytes, header.body_bytes);
    return verified;
  }
  diagnose(header, verified);
  return verified;
}

std::string name_of(AmKind kind, std::size_t body_bytes) {
  char const* const name = kind == AmKind::kMessage                              ? "a message"
                           : kind == AmKind::kData || kind == AmKind::kBulkPiece ? "bulk data"
                                                                                 : "a control message";
  return fmt::format("{} of {} bytes", name, body_bytes);
}

}  // namespace gpups::comm
