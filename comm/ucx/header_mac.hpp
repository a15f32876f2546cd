// SPDX-License-Identifier: Apache-2.0
// What lies before everything that a rank sends over UCX, and how its receiver knows who made it and that nothing was
// changed on the way.
//
// A header is sealed with a key that only the two ranks of its pair have, so that nobody else can make one. The body
// has a checksum, which the mac covers: it finds what a network or memory changes, and not what somebody changes who
// wants to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/bootstrap/keyed_hash.hpp"
#include "comm/ucx/active_messages.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

// Of headers, of the messages behind them, and of who sends what when. The join compares it.
inline constexpr std::uint16_t kUcxProtocol = 5;

// As it lies in memory. Magic, protocol and session lie where every protocol has them.
struct AmWireHeader {
  std::uint32_t magic;
  std::uint16_t protocol;
  std::uint16_t has_check;  // 1: `checksum` is that of the body; 0: the body has none
  std::uint64_t session;    // of the job
  Rank from;
  AmKind kind;
  std::uint64_t number;
  std::uint64_t bytes;
  std::uint64_t body_bytes;
  std::uint64_t checksum;
  std::uint64_t mac;  // of all before it, and of the receiver's rank
};

class HeaderMac {
 public:
  // keys: by rank, that of the pair.
  HeaderMac(Rank me, std::uint64_t session, std::vector<HashKey> keys)
      : me_(me), session_(session), keys_(std::move(keys)) {}

  AmWireHeader sign(Rank to, AmHeader const& header, std::size_t body_bytes,
                    std::optional<std::uint64_t> checksum) const;

  // What a header is that has arrived, with a body of so many bytes.
  struct Verified {
    enum class Verdict { kValid, kForeign, kWrong };
    Verdict verdict = Verdict::kForeign;
    AmHeader header{};  // kWrong: only `from` can be believed
    std::optional<std::uint64_t> checksum{};
    std::string wrong{};  // in words that do not name the rank
  };
  Verified open(void const* data, std::size_t bytes, std::size_t body_bytes) const;

 private:
  std::uint64_t mac_of(Rank other, Rank to, AmWireHeader const& header) const;
  void diagnose(AmWireHeader const& header, Verified& verified) const;

  Rank me_;
  std::uint64_t session_;
  std::vector<HashKey> keys_;
};

// What a body is called in messages: "bulk data of 12 bytes".
std::string name_of(AmKind kind, std::size_t body_bytes);

}  // namespace gpups::comm
