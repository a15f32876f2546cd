// SPDX-License-Identifier: Apache-2.0
// Sparse streams between ranks: sent in one message or several to a message, and checked when they come.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"
#include "comm/collectives/slices.hpp"
#include "kernels/wire/sum_streams.hpp"

namespace gpups::comm {

// Streams, the memory that they lie in, and whom they have come from.
class Streams {
 public:
  std::size_t size() const { return views_.size(); }
  kernels::StreamView const& operator[](std::size_t i) const { return views_[i]; }
  std::span<kernels::StreamView const> views() const { return views_; }
  View<std::uint8_t const> bytes(std::size_t i) const { return {views_[i].data(), views_[i].bytes()}; }
  // What owns stream i's bytes, and maybe more.
  std::shared_ptr<Bytes const> const& memory(std::size_t i) const { return entries_[i].memory; }
  Rank from(std::size_t i) const { return entries_[i].from; }

  // REQUIRES: a stream without a fault, whose bytes are within `memory`.
  void add(Rank from, std::shared_ptr<Bytes const> memory, kernels::StreamView view) {
    entries_.push_back({from, std::move(memory)});
    views_.push_back(std::move(view));
  }
  // One that this rank has made.
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

// Bytes of the largest stream of a range.
std::size_t stream_bytes_max(std::uint64_t size);

// Bytes of what a stream says where nothing is coded: an index and a float for each element, or a float for each place
// of a block where that is less.
std::uint64_t uncompressed_bytes(kernels::StreamView const& stream);

inline SendRequest send(Communicator& comm, Rank to, Streams const& streams, std::size_t i) {
  comm.count_compression(uncompressed_bytes(streams[i]), streams[i].bytes());
  return comm.send(to, streams.bytes(i), streams.memory(i));
}
// All of them in one message.
SendRequest send_concatenated(Communicator& comm, Rank to, Streams const& streams);

// The next message of another rank, of just the streams of these ranges, in order and in this form. Anything else is a
// PeerError.
CoTask<Streams> receive_streams(Communicator& comm, Rank from, std::vector<Slice> ranges, kernels::ValueForm form);

// Throws PeerError where one of the streams of a sum turned out to be wrong.
void check(Communicator const& comm, Streams const& streams, kernels::BadStream bad);

// Throws Error unless the indices are ascending, each once, and below the size. REQUIRES: they are on the host.
void check_indices(std::uint64_t size, View<std::uint32_t const> indices);
// The same for a list that is made streams of, all its parts before any is sent: that finds what is not ascending, and
// is told here where the last of the parts ends.
void check_last_index(std::uint64_t size, View<std::uint32_t const> indices);

}  // namespace gpups::comm
