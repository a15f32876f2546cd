// SPDX-License-Identifier: Apache-2.0
// The members of Stream and Event.
#pragma once

#include <memory>

#include "gpups/stream.hpp"
#include "kernels/arena.hpp"

namespace gpups {

struct Stream::Impl {
  Device device;
  std::shared_ptr<kernels::Arena> arena;  // host
  void* cuda = nullptr;                   // cudaStream_t
  bool owned = false;                     // whether ~Impl() destroys `cuda`
  std::shared_ptr<void> library;          // data that a library keeps for this stream

  ~Impl();
};

struct Event::Impl {
  int device_index = 0;
  void* cuda = nullptr;  // cudaEvent_t

  ~Impl();
};

}  // namespace gpups
