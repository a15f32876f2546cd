// SPDX-License-Identifier: Apache-2.0
// What carries the messages of collectives: headers, and bulk data; and adds up where it can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/bulk/bulk_transport.hpp"
#include "gpups/array.hpp"

namespace gpups::comm {

class CollectiveTransport {
 public:
  virtual ~CollectiveTransport() = default;

  // Which message of which run: `index` counts those from one rank to another.
  struct MessageId {
    std::uint64_t sequence, index;
  };

  // The other rank's Collectives::heard() is called with it. `inline_bytes`: bytes of it that are a message.
  virtual void send_header(Rank to, std::uint64_t sequence, std::string header, std::size_t inline_bytes) = 0;
  // `keep` stays alive, and the data must stay as it is, until `then` is called; at once where there is none.
  virtual void send(Stream& stream, Rank to, MessageId id, View<std::uint8_t const> data,
                    std::shared_ptr<void const> keep, std::function<void()> then) = 0;
  // `allocate` gives memory for `bytes`, when just as many are at hand; `then` is called when they are there; at once
  // for none.
  virtual void receive_bulk(Stream& stream, Rank from, MessageId id, std::size_t bytes,
                            BulkTransport::Allocate allocate, std::function<void()> then) = 0;
  // Whether sum() may be called for memory of the device; the same on all ranks.
  virtual bool can_allreduce(Device device) const = 0;
  // Adds up `terms` (n) of all ranks into `sums` (n), the same bits on all ranks, in the run, once. `keep` owns both,
  // and stays alive until `then` is called: they are there; at once for none.
  virtual void sum(Stream& stream, std::uint64_t sequence, View<float const> terms, View<float> sums,
                   std::shared_ptr<void const> keep, std::function<void()> then) = 0;
  // What was sent in so many bytes is `uncompressed_bytes` bytes where nothing is coded.
  virtual void count_compression(std::uint64_t uncompressed_bytes, std::uint64_t sent) = 0;
};

}  // namespace gpups::comm
