// SPDX-License-Identifier: Apache-2.0
// The order of work on a device. Every operation takes a Stream first; there is no default one.
//
// A host stream runs its work at once, in the calling thread and its share of the cores, and returns when it is done.
// A CUDA stream queues its work. A call that blocks until a device is done has `wait` in its name, or says so in its
// comment.
#pragma once

#include <memory>

#include "gpups/device.hpp"

namespace gpups {

// A point in a stream's work. Copyable; on the host it has always happened.
class Event {
 public:
  Event();
  bool done() const;
  void wait() const;

  struct Impl;
  explicit Event(std::shared_ptr<Impl> impl);
  Impl* impl() const { return impl_.get(); }

 private:
  std::shared_ptr<Impl> impl_;
};

class Stream {
 public:
  // threads: cores that a host stream may use, its caller's included; 0 for all of the machine.
  explicit Stream(Device device, int threads = 0);

  // Moving copies: no stream is without a device. A copy is the same order of work.
  Stream(Stream const&) = default;
  Stream& operator=(Stream const&) = default;

  // Uses an application's cudaStream_t, which must outlive this object.
  static Stream wrap(Device device, void* native);

  // Another order of work on the same device. Host siblings share one limit on cores.
  Stream sibling() const;

  Device device() const;
  int threads() const;

  // The cudaStream_t; null on the host.
  void* native() const;

  // Blocks until all work queued so far is done.
  void wait();

  Event record();
  // Work queued from now on starts after `event`.
  void after(Event const& event);

  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  explicit Stream(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpups
