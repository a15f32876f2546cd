// SPDX-License-Identifier: Apache-2.0
// What lies between the ranks of one process: nothing, or a simulated network that decides when things arrive.
#pragma once

#include <cstdint>
#include <functional>

#include "gpups/types.hpp"

namespace gpups::comm {

class LocalNetwork {
 public:
  virtual ~LocalNetwork() = default;

  // Calls `arrive` once, later. What is carried in order between the same two ranks arrives in that order. digest: of
  // what is carried, so that two runs can be compared.
  enum class Order { kFifo, kFree };
  virtual void deliver_later(Order order, Rank from, Rank to, std::uint64_t digest, std::function<void()> arrive) = 0;

  // A rank is looking for what has arrived. Lets time pass if nobody else does.
  virtual void poll() = 0;
};

}  // namespace gpups::comm
