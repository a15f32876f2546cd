// SPDX-License-Identifier: Apache-2.0
// What is inside a Stream and an Event.
#pragma once

#include <memory>

#include "gpups/stream.hpp"
#include "kernels/arena.hpp"

namespace gpups {

struct Stream::Impl {
  Device device;
  std::shared_ptr<kernels::Arena> arena;  // host
  void* cuda = nullptr;                   // cudaStream_t
  bool owned = false;
  std::shared_ptr<void> library;  // what a library of a device object keeps for this stream

  ~Impl();
};

struct Event::Impl {
  int device_index = 0;
  void* cuda = nullptr;  // cudaEvent_t

  ~Impl();
};

}  // namespace gpups
