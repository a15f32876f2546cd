// SPDX-License-Identifier: Apache-2.0
// A channel: one user of a rank's messages and bulk data. The store's protocol is one, the group's collectives are
// another. Each message starts with the number of its channel, and so does the tag of each bulk transfer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::comm {

// All channels, by their numbers in messages and tags.
enum class ChannelId : std::uint8_t { kStore, kCollectives };
inline constexpr std::size_t kChannels = 2;

// Tags of bulk transfers that a channel chooses have so many bits; those above hold the channel's number.
inline constexpr unsigned kTagBits = 60;
constexpr std::uint64_t tag_of(ChannelId channel, std::uint64_t tag) {
  return static_cast<std::uint64_t>(channel) << kTagBits | tag;
}

// What a rank waits for.
struct PendingPeers {
  std::vector<Rank> ranks{};  // that have not sent it yet; empty: it waits for nobody
  std::string what{};         // "the gradients of step 7"; where it waits for nobody, what it does: "was at step 7"
};

// All calls come from the thread that makes progress, one at a time. What they throw ends the rank's protocol.
class Channel {
 public:
  virtual ~Channel() = default;

  // Progress begins: messages, and the ends of transfers, follow.
  virtual void progress_begins() {}
  // A message of this channel has come; the body is not empty. Throws PeerError where it cannot be right.
  virtual void received(Rank from, std::string_view body) = 0;
  // The rank has closed the channel: all that it has sent has been received, and nothing follows. Throws PeerLost where
  // this rank waits for more.
  virtual void closed_by(Rank peer) = 0;
  // Does what can be done now; true if it did anything. moved: something has happened since progress began.
  virtual bool progress(bool moved) = 0;
  // Whether this rank owes nothing to the others, and waits for nothing from them.
  virtual bool idle() const = 0;
  virtual PendingPeers pending_peers() const = 0;
};

}  // namespace gpups::comm
