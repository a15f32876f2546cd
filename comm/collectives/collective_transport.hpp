// SPDX-License-Identifier: Apache-2.0
// The transport of collectives: headers, bulk data, and the sums of a device fabric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/bulk/bulk_transport.hpp"
#include "gpups/array.hpp"

namespace gpups::comm {

// Sends and receives for the collectives of a rank. Only the thread that makes progress calls it.
class CollectiveTransport {
 public:
  virtual ~CollectiveTransport() = default;

  // Identifies a bulk message: the collective, and the number of the message among those from one rank to another in
  // it.
  struct MessageId {
    std::uint64_t sequence, index;
  };

  // Sends a header, with which the other rank calls Collectives::on_header(). inline_bytes: the bytes of the header
  // that are data of a message, for statistics.
  virtual void send_header(Rank to, std::uint64_t sequence, std::string header, std::size_t inline_bytes) = 0;
  // Sends bulk data. `keep` stays alive, and the data must not change, until `then` is called; at once if there is no
  // data.
  virtual void send(Stream& stream, Rank to, MessageId id, View<std::uint8_t const> data,
                    std::shared_ptr<void const> keep, std::function<void()> then) = 0;
  // Receives bulk data. `allocate` returns the memory for it and is called when the sender has offered exactly `bytes`.
  // `then` is called when the data is there; at once if `bytes` is 0.
  virtual void receive_bulk(Stream& stream, Rank from, MessageId id, std::size_t bytes,
                            BulkTransport::Allocate allocate, std::function<void()> then) = 0;
  // Returns whether sum() may be called for memory of the device; equal on all ranks.
  virtual bool can_allreduce(Device device) const = 0;
  // Sums `terms`, (n), of all ranks into `sums`, (n), with equal bits on all ranks; at most once in a collective.
  // `keep` owns both and stays alive until `then` is called, when the sums are there; at once if n is 0.
  virtual void sum(Stream& stream, std::uint64_t sequence, View<float const> terms, View<float> sums,
                   std::shared_ptr<void const> keep, std::function<void()> then) = 0;
  // For statistics: `sent` bytes were sent, which are `uncompressed_bytes` without compression.
  virtual void count_compression(std::uint64_t uncompressed_bytes, std::uint64_t sent) = 0;
};

}  // namespace gpups::comm
