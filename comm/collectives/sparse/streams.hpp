// SPDX-License-Identifier: Apache-2.0
// Sends and receives sparse streams, one or several in a message. Checks received streams, and the indices from which
// streams are made.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"
#include "comm/collectives/slices.hpp"
#include "kernels/sparse/sum_streams.hpp"

namespace gpups::comm {

// A list of sparse streams, with the memory that holds each and the rank that sent it.
class Streams {
 public:
  std::size_t size() const { return views_.size(); }
  kernels::StreamView const& operator[](std::size_t i) const { return views_[i]; }
  std::span<kernels::StreamView const> views() const { return views_; }
  View<std::uint8_t const> bytes(std::size_t i) const { return {views_[i].data(), views_[i].bytes()}; }
  // Returns the owner of the bytes of stream i; it may own more bytes.
  std::shared_ptr<Bytes const> const& memory(std::size_t i) const { return entries_[i].memory; }
  // Returns the rank that sent stream i.
  Rank from(std::size_t i) const { return entries_[i].from; }

  // REQUIRES: a valid stream, whose bytes are within `memory`.
  void add(Rank from, std::shared_ptr<Bytes const> memory, kernels::StreamView view) {
    entries_.push_back({from, std::move(memory)});
    views_.push_back(std::move(view));
  }
  // Adds a stream that this rank has encoded.
  void add(Communicator const& comm, Bytes bytes) {
    auto memory = std::make_shared<Bytes const>(std::move(bytes));
    kernels::StreamView view(*memory);
    add(comm.me(), std::move(memory), std::move(view));
  }
  void add(Streams const& other, std::size_t i) { add(other.from(i), other.memory(i), other[i]); }
  void add(Streams const& others) {
    for (std::size_t i = 0; i < others.size(); ++i) add(others, i);
  }

 private:
  struct Entry {
    Rank from;
    std::shared_ptr<Bytes const> memory;
  };
  std::vector<Entry> entries_;
  std::vector<kernels::StreamView> views_;
};

// Returns the largest number of bytes of a stream of `size` elements.
std::size_t stream_bytes_max(std::uint64_t size);

// Returns the bytes of the same elements without compression: an index and a float for each element, or a float for
// each position of a block if that is less.
std::uint64_t uncompressed_bytes(kernels::StreamView const& stream);

// Sends stream i as one message.
inline SendRequest send(Communicator& comm, Rank to, Streams const& streams, std::size_t i) {
  comm.count_compression(uncompressed_bytes(streams[i]), streams[i].bytes());
  return comm.send(to, streams.bytes(i), streams.memory(i));
}
// Sends all streams in one message.
SendRequest send_concatenated(Communicator& comm, Rank to, Streams const& streams);

// Receives the next message of another rank: streams of exactly these ranges, in this order and form. Throws PeerError
// for anything else.
CoTask<Streams> receive_streams(Communicator& comm, Rank from, std::vector<Slice> ranges, kernels::ValueForm form);

// Throws PeerError if `bad` is a stream that turned out to be invalid when it was summed.
void check(Communicator const& comm, Streams const& streams, kernels::BadStream bad);

// Checks the indices that a caller gives: throws Error unless they ascend strictly and are below the size. REQUIRES:
// they are on the host.
void check_indices(std::uint64_t size, View<std::uint32_t const> indices);
// The same for a list of which all parts are encoded as streams before any is sent. Encoding finds indices that do not
// ascend, so this only searches for one beyond the size.
void check_last_index(std::uint64_t size, View<std::uint32_t const> indices);

}  // namespace gpups::comm
