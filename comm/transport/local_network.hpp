// SPDX-License-Identifier: Apache-2.0
// The network between ranks of one process, in place of direct delivery: a simulated one that decides when messages
// arrive.
#pragma once

#include <functional>

#include "gpups/types.hpp"

namespace gpups::comm {

// Delivers messages and announcements of bulk data later.
class LocalNetwork {
 public:
  virtual ~LocalNetwork() = default;

  // Calls `arrive` once, later. Deliveries with kFifo between the same two ranks keep their order.
  enum class Order { kFifo, kFree };
  virtual void deliver_later(Order order, Rank from, Rank to, std::function<void()> arrive) = 0;

  // A rank checks for arrivals. If no thread advances the simulated time, this call does.
  virtual void poll() = 0;
};

}  // namespace gpups::comm
