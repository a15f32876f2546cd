// SPDX-License-Identifier: Apache-2.0
// The header of every active message on the wire, and its authentication.
//
// The header MAC needs a key that only the two ranks of a pair have, so that no other process can make a header. The
// body has a checksum, which the MAC covers: it detects corruption by a network or memory, but not deliberate changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/bootstrap/authentication.hpp"
#include "comm/ucx/active_messages.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

// The version of headers, of messages, and of the protocol between ranks. The join compares it.
inline constexpr std::uint16_t kUcxProtocol = 5;

// The layout on the wire. Magic, protocol and session have the same offsets in every protocol version.
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
  std::uint64_t mac;  // of all fields before it and of the rank of the receiver
};

// Signs headers of this rank, and verifies those that arrive.
class HeaderMac {
 public:
  // keys[r]: the pair key with rank r.
  HeaderMac(Rank me, std::uint64_t session, std::vector<HashKey> keys)
      : me_(me), session_(session), keys_(std::move(keys)) {}

  // Returns the signed header of a message to `to`.
  AmWireHeader sign(Rank to, AmHeader const& header, std::size_t body_bytes,
                    std::optional<std::uint64_t> checksum) const;

  // The result of the verification. kValid: the header is authentic. kForeign: it is from another job or no gpups
  // header at all, to be ignored. kWrong: it is corrupted, forged or of another version.
  struct Verified {
    enum class Verdict { kValid, kForeign, kWrong };
    Verdict verdict = Verdict::kForeign;
    AmHeader header{};  // kWrong: use only `from`
    std::optional<std::uint64_t> checksum{};
    std::string wrong{};  // what is wrong, without the number of the rank
  };
  // Verifies a header that has arrived with a body of `body_bytes` bytes.
  Verified open(void const* data, std::size_t bytes, std::size_t body_bytes) const;

 private:
  std::uint64_t mac_of(Rank other, Rank to, AmWireHeader const& header) const;
  void diagnose(AmWireHeader const& header, Verified& verified) const;

  Rank me_;
  std::uint64_t session_;
  std::vector<HashKey> keys_;
};

// Returns a name for a message in error texts, such as "bulk data of 12 bytes".
std::string name_of(AmKind kind, std::size_t body_bytes);

}  // namespace gpups::comm
