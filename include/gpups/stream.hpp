// SPDX-License-Identifier: Apache-2.0
// Streams and events: the order of work on a device. Every operation on a device takes a Stream as its first argument;
// there is no default stream.
//
//   Stream stream(Device::cuda(0));
//   Array<float> x(stream.device(), 1000);
//   copy<float>(stream, x, View<float const>(values));  // queued
//   Event const copied = stream.record();
//   other.after(copied);                                // later work on `other` starts after the copy
//   stream.wait();                                      // blocks
//
// A host stream runs an operation immediately, in the calling thread and in worker threads, and returns when it is
// done. A CUDA stream queues the operation. A function that blocks until a device is done has `wait` in its name, or
// its comment says so. "Queued on `stream`" means: on a CUDA stream, arguments must stay valid until the queued work is
// done.
#pragma once

#include <memory>

#include "gpups/compiler.hpp"
#include "gpups/device.hpp"

namespace gpups {

// A point in the work of a stream, like cudaEvent_t. Copies refer to the same point. A default-constructed event and an
// event of a host stream are always done. Any thread.
class GPUPS_EXPORT Event {
 public:
  Event();
  // Returns true if the work queued before the event is done. Does not block.
  bool done() const;
  // Blocks until the work queued before the event is done.
  void wait() const;

  struct Impl;
  explicit Event(std::shared_ptr<Impl> impl);
  Impl* impl() const { return impl_.get(); }

 private:
  std::shared_ptr<Impl> impl_;
};

// A queue of work on one device. Copies refer to the same stream. A stream may be used by one thread at a time; use
// sibling() or Store::make_stream() for another thread.
class GPUPS_EXPORT Stream {
 public:
  // Creates a stream. threads: number of threads of a host stream, including the caller's, at most 4096; 0: one for
  // each core of the machine. Throws Error if the device does not exist.
  explicit Stream(Device device, int threads = 0);

  // There is no move: it copies, so every Stream object has a device.
  Stream(Stream const&) = default;
  Stream& operator=(Stream const&) = default;

  // Returns a Stream for a cudaStream_t of the application, without owning it. native: the cudaStream_t of `device`; it
  // must outlive the Stream and its copies. Until they are destroyed, the library may record events on it, from any
  // thread, so no CUDA graph may be captured from it meanwhile.
  static Stream wrap(Device device, void* native);

  // Returns a new, independent stream on the same device. Host streams that are made this way share one pool of
  // threads.
  Stream sibling() const;

  Device device() const;
  // Returns the number of host threads.
  int threads() const;

  // Returns the cudaStream_t, or null for a host stream.
  void* native() const;

  // Blocks until all work queued so far is done. Returns immediately for a host stream.
  void wait();

  // Returns an event that is done when all work queued so far is done.
  Event record();
  // Makes work that is queued on this stream from now on start after `event`, which may be of another stream or device.
  // Does not block, except on a host stream, which blocks until the event is done.
  void after(Event const& event);

  struct Impl;
  Impl& impl() const { return *impl_; }

 private:
  explicit Stream(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpups
