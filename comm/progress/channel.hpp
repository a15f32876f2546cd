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

// A tag that a channel chooses has this many bits; the bits above them hold the number of the channel.
inline constexpr unsigned kTagBits = 60;
constexpr std::uint64_t tag_of(ChannelId channel, std::uint64_t tag) {
  return static_cast<std::uint64_t>(channel) << kTagBits | tag;
}

// The ranks that a rank waits for, for error texts.
struct PendingPeers {
  std::vector<Rank> ranks{};  // that have not sent it yet; empty: it waits for no rank
  std::string what{};         // "the gradients of step 7"; if it waits for no rank, its state: "was at step 7"
};

// One user of the messenger. All functions are called by the thread that makes progress, one at a time. An exception
// that they throw ends the progress engine.
class Channel {
 public:
  virtual ~Channel() = default;

  // Called at the beginning of each progress, before messages and ends of transfers.
  virtual void progress_begins() {}
  // Handles a message of this channel; the body is not empty. Throws PeerError if the message is invalid.
  virtual void received(Rank from, std::string_view body) = 0;
  // Handles that the rank has closed the channel: all its messages were received, and none follows. Throws PeerLost if
  // this rank waits for more.
  virtual void closed_by(Rank peer) = 0;
  // Does what can be done now, and returns whether it did anything. moved: something has happened since this progress
  // began.
  virtual bool progress(bool moved) = 0;
  // Returns whether this rank has nothing to send to other ranks, and waits for nothing from them.
  virtual bool idle() const = 0;
  // Returns what the rank waits for.
  virtual PendingPeers pending_peers() const = 0;
  // Returns the collective call that `peer` has made and this rank has not, for error texts; empty if there is none.
  virtual std::string unmatched_call(Rank peer) const = 0;
};

}  // namespace gpups::comm
