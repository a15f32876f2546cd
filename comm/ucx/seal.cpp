// SPDX-License-Identifier: Apache-2.0
#include "comm/ucx/seal.hpp"

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
// A stranger's session differs in about half of the 64 bits, and in so few by a chance of 3e-10; what was this job's
// and has changed on the way differs in few.
constexpr int kChangedBitsMax = 8;
constexpr std::size_t kCommonBytes = offsetof(UcxWireHeader, from);  // that every protocol has

static_assert(std::is_trivially_copyable_v<UcxWireHeader> && sizeof(UcxWireHeader) == 64);

}  // namespace

// other: whose key it is, together with this rank.
std::uint64_t UcxSeals::seal_of(Rank other, Rank to, UcxWireHeader const& header) const {
  std::array<std::uint64_t, sizeof(UcxWireHeader) / 8> words;
  std::memcpy(words.data(), &header, sizeof header);
  words.back() = number(to);
  return keyed_hash(keys_[number(other)], words);
}

UcxWireHeader UcxSeals::seal(Rank to, UcxHeader const& header, std::size_t body_bytes,
                             std::optional<std::uint64_t> check) const {
  UcxWireHeader made{.magic = kMagic,
                     .protocol = kUcxProtocol,
                     .has_check = check.has_value(),
                     .session = session_,
                     .from = me_,
                     .kind = header.kind,
                     .number = header.number,
                     .bytes = header.bytes,
                     .body_bytes = body_bytes,
                     .check = check.value_or(0),
                     .seal = 0};
  made.seal = seal_of(to, to, made);
  return made;
}

// Says who made a header whose seal is wrong, and what is wrong with it, as far as that can be told.
void UcxSeals::accuse(UcxWireHeader const& header, Opened& opened) const {
  auto const wrong = [&](Rank from, std::string what) {
    opened.verdict = Opened::Verdict::kWrong;
    opened.header.from = from;
    opened.wrong = std::move(what);
  };
  bool const names_rank = number(header.from) < keys_.size();
  if (header.magic == kMagic && header.protocol != kUcxProtocol && names_rank) {
    return wrong(header.from, fmt::format("it speaks version {} of the data protocol and this rank version {}",
                                          header.protocol, kUcxProtocol));
  }
  constexpr char const* kChanged = "the header of something from it was changed on the way, or somebody poses as it";
  for (std::uint32_t rank = 0; rank < keys_.size(); ++rank) {
    UcxWireHeader other = header;
    other.from = Rank{rank};
    if (seal_of(Rank{rank}, me_, other) == header.seal) return wrong(Rank{rank}, kChanged);
    if (seal_of(Rank{rank}, me_, header) == header.seal) {
      return wrong(Rank{rank}, fmt::format("it poses as rank {}", number(header.from)));
    }
  }
  if (names_rank) wrong(header.from, kChanged);
}

UcxSeals::Opened UcxSeals::open(void const* data, std::size_t bytes, std::size_t body_bytes) const {
  Opened opened;
  UcxWireHeader header{};
  if (bytes < kCommonBytes) return opened;
  std::memcpy(&header, data, std::min(bytes, sizeof header));
  if (std::popcount(header.session ^ session_) > kChangedBitsMax) return opened;
  bool const is_whole = bytes == sizeof header && number(header.from) < keys_.size();
  bool const is_ours = header.magic == kMagic && header.protocol == kUcxProtocol && header.session == session_;
  if (is_whole && is_ours && header.seal == seal_of(header.from, me_, header)) {
    opened.header = {header.from, header.kind, header.number, header.bytes};
    opened.verdict = Opened::Verdict::kGood;
    if (header.has_check != 0) opened.check = header.check;
    if (header.body_bytes == body_bytes && static_cast<std::size_t>(header.kind) < kUcxKinds) return opened;
    opened.verdict = Opened::Verdict::kWrong;
    opened.wrong = fmt::format("it sent {} bytes where its header says {}", body_bytes, header.body_bytes);
    return opened;
  }
  accuse(header, opened);
  return opened;
}

std::string name_of(UcxKind kind, std::size_t body_bytes) {
  char const* const name = kind == UcxKind::kMessage                               ? "a message"
                           : kind == UcxKind::kData || kind == UcxKind::kDataPiece ? "bulk data"
                                                                                   : "a notice";
  return fmt::format("{} of {} bytes", name, body_bytes);
}

}  // namespace gpups::comm
