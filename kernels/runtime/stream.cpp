// SPDX-License-Identifier: Apache-2.0
#include "gpups/stream.hpp"

#include "gpups/owner.hpp"
#include "kernels/base/check.hpp"
#include "kernels/runtime/cuda_runtime.hpp"
#include "kernels/runtime/memory_scope.hpp"
#include "kernels/runtime/space.hpp"
#include "kernels/runtime/stream_impl.hpp"

namespace gpups {

Stream::Impl::~Impl() {
  library.reset();  // waits for the stream
  uploads.wait();
  if (added) kernels::remove_stream(device, cuda);
  if (owned) cuda::destroy_stream(device.index, cuda);
}
Event::Impl::~Impl() {
  if (cuda != nullptr) cuda::destroy_event(device_index, cuda);
}

Event::Event() = default;
Event::Event(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
bool Event::done() const { return impl_ == nullptr || cuda::event_done(impl_->device_index, impl_->cuda); }
void Event::wait() const {
  if (impl_ != nullptr) cuda::wait_event(impl_->device_index, impl_->cuda);
}

Stream::Stream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

void Stream::Impl::create() {
  if (device.is_host()) return;
  cuda = cuda::create_stream(device.index);
  owned = true;
  add();
}
void Stream::Impl::add() {
  if (device.is_host()) return;
  memory_user = kernels::add_stream(device, cuda);
  added = true;
}

Stream::Stream(Device device, int threads) : impl_(new Impl) {
  kernels::require_threads(threads, "the number of threads of a Stream");
  impl_->device = device;
  impl_->arena = std::make_shared<kernels::Arena>(threads);
  impl_->create();
}

Stream Stream::wrap(Device device, void* native) {
  std::shared_ptr<Impl> impl(new Impl);
  impl->device = device;
  impl->arena = std::make_shared<kernels::Arena>(0);
  impl->cuda = native;
  impl->add();
  return Stream(std::move(impl));
}

Stream Stream::sibling() const {
  std::shared_ptr<Impl> impl(new Impl);
  impl->device = impl_->device;
  impl->arena = impl_->arena;
  impl->counters = impl_->counters;
  impl->create();
  return Stream(std::move(impl));
}

Device Stream::device() const { return impl_->device; }
int Stream::threads() const { return impl_->arena->threads(); }
void* Stream::native() const { return impl_->cuda; }

void Stream::wait() {
  impl_->counters->count_wait();
  if (!impl_->device.is_host()) cuda::wait_stream(impl_->device.index, impl_->cuda);
}

Event Stream::record() {
  if (impl_->device.is_host()) return {};
  std::shared_ptr<Event::Impl> event(new Event::Impl);
  event->device_index = impl_->device.index;
  event->cuda = cuda::record_event(impl_->device.index, impl_->cuda);
  return Event(std::move(event));
}

void Stream::after(Event const& event) {
  if (event.impl() == nullptr) return;
  if (impl_->device.is_host()) {
    event.wait();
  } else {
    cuda::stream_after(impl_->device.index, impl_->cuda, event.impl()->cuda);
  }
}

void throw_moved_from(char const* kind) {
  throw Error(
      fmt::format("{} was used after it had been moved from (it is empty): use the one that it was moved to", kind));
}

namespace kernels {

HostExec host_exec(Stream const& stream) {
  GPUPS_ASSERT(stream.device().is_host());
  auto const& impl = stream.impl();
  impl.counters->count_launch();
  return {impl.arena.get(), impl.counters.get()};
}
DeviceExec device_exec(Stream const& stream) {
  auto& impl = stream.impl();
  return {impl.cuda, &impl.library, impl.counters.get(), &impl.uploads};
}

}  // namespace kernels
}  // namespace gpups
