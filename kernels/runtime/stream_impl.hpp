// SPDX-License-Identifier: Apache-2.0
// The members of Stream and Event.
#pragma once

#include <memory>

#include "gpups/stream.hpp"
#include "kernels/runtime/arena.hpp"
#include "kernels/runtime/memory_scope.hpp"
#include "kernels/runtime/space.hpp"
#include "kernels/runtime/upload.hpp"

namespace gpups {

struct GPUPS_HIDDEN Stream::Impl {
  Device device;
  std::shared_ptr<kernels::Arena> arena;  // host
  void* cuda = nullptr;                   // cudaStream_t
  bool owned = false;                     // whether ~Impl() destroys `cuda`
  bool added = false;                     // see add()
  kernels::MemoryUser memory_user = 0;    // of a CUDA stream, see memory_scope.hpp
  kernels::UploadBuffer uploads;          // of a CUDA stream
  std::shared_ptr<void> library;          // data that a library keeps for this stream
  std::shared_ptr<kernels::StreamCounters> counters = std::make_shared<kernels::StreamCounters>();  // of all siblings

  // Creates a cudaStream_t if the device is a GPU, and adds it.
  void create();
  // Lets QueuedWork know `cuda`, until the destructor.
  void add();
  ~Impl();
};

struct GPUPS_HIDDEN Event::Impl {
  int device_index = 0;
  void* cuda = nullptr;  // cudaEvent_t

  ~Impl();
};

}  // namespace gpups
