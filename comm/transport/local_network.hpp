// SPDX-License-Identifier: Apache-2.0
// The network between ranks of one process, in place of direct delivery: a simulated one that decides when messages
// arrive.
#pragma once

#include <cstdint>
#include <functional>

#include "gpups/types.hpp"

namespace gpups::comm {

// Delivers messages and announcements of bulk data later.
class LocalNetwork {
 public:
  virtual ~LocalNetwork() = default;

  // Calls `arrive` once, later. Deliveries with kFifo between the same two ranks keep their order. digest: a digest of
  // the content, with which two runs can be compared.
  enum class Order { kFifo, kFree };
  virtual void deliver_later(Order order, Rank from, Rank to, std::uint64_t digest, std::function<void()> arrive) = 0;

  // A rank checks for arrivals. If no thread advances the simulated time, this call does.
  virtual void poll() = 0;
};

}  // namespace gpups::comm
