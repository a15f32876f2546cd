// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/memory_scope.hpp"

#include <atomic>
#include <exception>
#include <map>
#include <mutex>

#include "kernels/runtime/cuda_runtime.hpp"
#include "kernels/runtime/stream_impl.hpp"

namespace gpups::kernels {

namespace {

MemoryUser& user_of_thread() {
  thread_local MemoryUser user = new_memory_user();
  return user;
}

}  // namespace

MemoryUser new_memory_user() {
  static std::atomic<MemoryUser> next = 1;
  return next++;
}

MemoryUser memory_user() { return user_of_thread(); }

MemoryScope::MemoryScope(Stream const& stream) : before_(user_of_thread()) {
  if (!stream.device().is_host()) user_of_thread() = stream.impl().memory_user;
}
MemoryScope::~MemoryScope() { user_of_thread() = before_; }

namespace {

struct DeviceStreams {
  struct Added {
    int uses = 0;  // an application may wrap its own several times
    MemoryUser user = new_memory_user();
  };
  std::map<void*, Added> added;  // by cudaStream_t
  std::vector<Event> removed;    // the last work of streams that were removed
};

// Never destroyed, because streams of any lifetime are removed from it.
struct Registry {
  std::mutex mutex;
  std::map<int, DeviceStreams> devices;
};
Registry& registry() {
  static auto& all = *new Registry;
  return all;
}

Event record(Device device, void* native) {
  std::shared_ptr<Event::Impl> event(new Event::Impl);
  event->device_index = device.index;
  event->cuda = cuda::record_event(device.index, native);
  return Event(std::move(event));
}

void erase_done(std::vector<Event>& events) {
  std::erase_if(events, [](Event const& event) { return event.done(); });
}

}  // namespace

MemoryUser add_stream(Device device, void* native) {
  std::lock_guard const lock(registry().mutex);
  auto& added = registry().devices[device.index].added[native];
  ++added.uses;
  return added.user;
}

void remove_stream(Device device, void* native) noexcept {
  std::lock_guard const lock(registry().mutex);
  DeviceStreams& streams = registry().devices[device.index];
  auto const found = streams.added.find(native);
  if (--found->second.uses > 0) return;
  streams.added.erase(found);
  try {
    erase_done(streams.removed);
    streams.removed.push_back(record(device, native));
  } catch (std::exception const&) {  // NOLINT: the device has failed, and runs no more work
  }
}

QueuedWork::QueuedWork(Device device) {
  std::lock_guard const lock(registry().mutex);
  DeviceStreams& streams = registry().devices[device.index];
  erase_done(streams.removed);
  last_ = streams.removed;
  for (auto const& [native, added] : streams.added) last_.push_back(record(device, native));
}

bool QueuedWork::done() {
  erase_done(last_);
  return last_.empty();
}

}  // namespace gpups::kernels
