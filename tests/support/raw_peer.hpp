// SPDX-License-Identifier: Apache-2.0
// A group of two ranks in one thread. Rank 0 is used by a store. Rank 1 has only a transport, through which a test
// sends any message.
//
// No call blocks. When rank 0 would wait, `on_idle` is called, in which the test can act as rank 1. If it returns
// false, the wait ends, and rank 0 throws PeerError as after a timeout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cache/wire/message.hpp"
#include "comm/collectives/collective_header.hpp"
#include "comm/group/group_impl.hpp"
#include "comm/progress/channel.hpp"
#include "gpups/stream.hpp"

namespace gpups::test {

using comm::ChannelId;

class RawPeer {
 public:
  RawPeer();
  ~RawPeer();

  // Returns the group of rank 0, for the store. It must be destroyed before the RawPeer.
  Group group() { return std::exchange(group_, Group(nullptr)); }

  // Sends a message of the store's channel.
  void send(cache::Message const& message) { send_on(ChannelId::kStore, cache::encode(message)); }
  // Sends a header of a collective; `sequence_number` is the collective's sequence number.
  void send(std::uint64_t sequence_number, comm::CollectiveHeader const& header) {
    send_header(sequence_number, encode(header));
  }
  void send_header(std::uint64_t sequence_number, std::string const& header);
  // Sends any body in a channel. An empty body closes the channel.
  void send_on(ChannelId channel, std::string const& body);
  void send_bytes(std::string const& message);
  // Send bulk data, by default in the store's channel.
  void send_words(std::uint64_t tag, std::vector<std::uint64_t> const& words, ChannelId channel = ChannelId::kStore) {
    offer(tag_of(channel, tag), words, words.size() * 8);
  }
  void send_data(std::uint64_t tag, std::size_t bytes, unsigned char fill = 0, ChannelId channel = ChannelId::kStore);
  void send_data(std::uint64_t tag, std::vector<std::uint8_t> const& bytes);
  // Receives bulk data with this tag from rank 0 and ignores it. Does nothing if the receive is already posted.
  void receive_data(std::uint64_t tag, std::size_t bytes, ChannelId channel = ChannelId::kStore);
  // Returns the next message of rank 0.
  struct Received {
    ChannelId channel{};
    std::string body{};                                     // without the channel's number
    std::optional<cache::Message> of_store{};               // the decoded body, in the store's channel
    std::optional<comm::CollectiveHeader> of_collective{};  // the decoded header, in the channel of collectives
  };
  std::optional<Received> receive_any();
  // The same for a message of the store's channel.
  std::optional<cache::Message> receive();
  bool progress() { return bulk_->progress(); }
  void leave(std::string const& error) { error.empty() ? transport_->leave() : transport_->fail(Rank{1}, error); }

  // Makes progress of rank 0 until nothing happens.
  void progress_rank_0() { progress_all_(); }

  std::function<bool()> on_idle = [] { return false; };
  std::size_t bytes_sent() const { return bytes_sent_; }

 private:
  void offer(std::uint64_t tag, std::vector<std::uint64_t> words, std::size_t bytes);

  Group group_{nullptr};
  Stream stream_;
  std::deque<std::vector<std::uint64_t>> data_;  // memory of transfers in flight
  std::unique_ptr<comm::Transport> transport_;
  std::unique_ptr<comm::BulkTransport> bulk_;
  std::set<std::uint64_t> posted_receives_;
  std::size_t bytes_sent_ = 0;
  std::function<void()> progress_all_;
};

}  // namespace gpups::test
