// SPDX-License-Identifier: Apache-2.0
// Streams and events. Every operation on a device takes a Stream as its first argument; there is no default stream.
//
//   Stream stream(Device::cuda(0));
//   Array<float> x(stream.device(), 1000);
//   copy<float>(stream, x, View<float const>(values));  // queued
//   Event const copied = stream.record();
//   other.after(copied);                                // later work on `other` starts after the copy
//   stream.wait();                                      // blocks
//
// A host stream runs an operation at once, in the calling thread and in worker threads, and returns when it is done. A
// CUDA stream queues the operation. A function that blocks until a device is done has `wait` in its name, or its
// comment says so. A stream may be used by one thread at a time.
#pragma once

#include <memory>

#include "gpups/device.hpp"

namespace gpups {

// A point in the work of a stream, as cudaEvent_t. Copyable. An event of a host stream is always done.
class Event {
 public:
  Event();
  bool done() const;  // whether the stream has passed the event; does not block
  void wait() const;  // blocks until then

  struct Impl;
  explicit Event(std::shared_ptr<Impl> impl);
  Impl* impl() const { return impl_.get(); }

 private:
  std::shared_ptr<Impl> impl_;
};

class Stream {
 public:
  // threads: number of threads of a host stream, including the caller's; 0: one for each core of the machine. Throws
  // Error if the device does not exist.
  explicit Stream(Device device, int threads = 0);

  // A copy refers to the same stream. A move copies too, so every Stream object has a device.
  Stream(Stream const&) = default;
  Stream& operator=(Stream const&) = default;

  // Wraps an application's cudaStream_t without owning it. It must outlive this object.
  static Stream wrap(Device device, void* native);

  // Returns a new stream on the same device. Streams of the host made this way share one pool of threads.
  Stream sibling() const;

  Device device() const;
  int threads() const;

  // Returns the cudaStream_t, or null for a host stream.
  void* native() const;

  // Blocks until all work queued so far is done.
  void wait();

  // Returns an event that is done when all work queued so far is done.
  Event record();
  // Work queued on this stream from now on starts after `event`, which may be of another stream. Does not block.
  void after(Event const& event);

  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  explicit Stream(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpups
