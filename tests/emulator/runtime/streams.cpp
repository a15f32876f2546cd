// SPDX-License-Identifier: Apache-2.0
// Streams and events.
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "tests/emulator/options.hpp"
#include "tests/emulator/ptx/mutation.hpp"
#include "tests/emulator/runtime/state.hpp"

namespace gpups::emulator {
namespace {

struct StreamState {
  int device = 0;
  std::deque<PolledWork> queue;
};

// An event outlives cudaEventDestroy() while work refers to it.
struct EventState {
  bool recorded = false, done = false;
  StreamState* stream = nullptr;
  int queries = 0;  // since it was recorded
};
using EventPtr = std::shared_ptr<EventState>;

// In lazy mode, an event is not done at its first queries, so that programs see both results.
constexpr int kQueriesBeforeDone = 3;

struct Streams {
  std::set<StreamState*> all;
  std::deque<std::unique_ptr<StreamState>> destroyed;  // kept, since another thread may still wait for one
  StreamState of_default;                              // the stream 0 of all devices
};
Streams& streams() {
  static auto& all = *new Streams;
  return all;
}

EventPtr& state_of(cudaEvent_t event) { return *reinterpret_cast<EventPtr*>(event); }

// Returns the state of a stream. A destroyed one is reported, and the default stream used in its place.
StreamState& state_of(cudaStream_t stream) {
  constexpr std::uintptr_t kSpecialStreams = 2;  // the default streams have small numbers
  if (reinterpret_cast<std::uintptr_t>(stream) <= kSpecialStreams) return streams().of_default;
  auto* const state = reinterpret_cast<StreamState*>(stream);
  if (streams().all.contains(state)) return *state;
  report_async({cudaErrorInvalidResourceHandle, "a stream is used that does not exist, or was destroyed"});
  return streams().of_default;
}

// Returns whether the work has ended.
bool execute(PolledWork const& work) {
  try {
    return work();
  } catch (KernelError const& error) {
    report_async(error);
    return true;
  }
}

// Executes work of a stream until is_enough() holds, the stream is empty, or its first work waits for another rank.
// Returns whether the last is not so.
template <class IsEnough>
bool advance(StreamState& stream, IsEnough is_enough) {
  while (!stream.queue.empty() && !is_enough()) {
    auto work = std::move(stream.queue.front());
    stream.queue.pop_front();  // before its execution, in which other streams may wait for this one
    if (!execute(work)) {
      stream.queue.push_front(std::move(work));
      return false;
    }
  }
  return true;
}

bool advance(StreamState& stream) {
  return advance(stream, [] { return false; });
}

// Executes work of the event's stream until the event is done. Returns false if that work waits for another rank.
bool advance(EventState const& event) {
  return !event.recorded || event.done || advance(*event.stream, [&] { return event.done; });
}

// Waits until advance() of a stream or an event returns true. The calling thread holds the lock once; other threads get
// it between the calls. The other rank may be one of this process, whose streams nobody waits for.
template <class Waited>
void complete(Waited& waited) {
  constexpr std::chrono::microseconds kPause(50);
  while (!advance(waited)) {
    for (StreamState* const stream : std::set(streams().all)) advance(*stream);
    runtime_mutex().unlock();
    std::this_thread::sleep_for(kPause);
    runtime_mutex().lock();
  }
}

}  // namespace

void enqueue_polled(cudaStream_t stream, PolledWork work) {
  StreamState& state = state_of(stream);
  state.queue.push_back(std::move(work));
  if (!options().lazy) advance(state);
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  enqueue_polled(stream, [work = std::move(work)] {
    work();
    return true;
  });
}

void drain(cudaStream_t stream) { complete(state_of(stream)); }

void drain_device(int device) {
  complete(streams().of_default);
  for (StreamState* const stream : std::set(streams().all)) {
    if (streams().all.contains(stream) && stream->device == device) complete(*stream);
  }
}

int device_of(cudaStream_t stream) {
  StreamState const& state = state_of(stream);
  return &state == &streams().of_default ? current_device() : state.device;
}

}  // namespace gpups::emulator

using namespace gpups::emulator;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  RuntimeLock const lock(runtime_mutex());
  use_context();
  auto* const state = new StreamState{.device = current_device(), .queue = {}};
  streams().all.insert(state);
  *stream = reinterpret_cast<cudaStream_t>(state);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  RuntimeLock const lock(runtime_mutex());
  use_context();
  auto* const state = reinterpret_cast<StreamState*>(stream);
  if (!streams().all.contains(state)) {
    return report(cudaErrorInvalidResourceHandle, "a stream is destroyed that does not exist");
  }
  complete(*state);
  streams().all.erase(state);
  streams().destroyed.emplace_back(state);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  RuntimeLock const lock(runtime_mutex());
  use_context();
  ++runtime_counts().stream_waits;
  drain(stream);
  return take_async_error();
}

cudaError_t cudaDeviceSynchronize() {
  RuntimeLock const lock(runtime_mutex());
  use_context();
  ++runtime_counts().stream_waits;
  drain_device(current_device());
  return take_async_error();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  RuntimeLock const lock(runtime_mutex());
  if (mutation() == Mutation::kEvent) return cudaSuccess;
  enqueue_polled(stream, [state = state_of(event)] { return advance(*state); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  RuntimeLock const lock(runtime_mutex());
  use_context();
  ++runtime_counts().events;
  *event = reinterpret_cast<cudaEvent_t>(new EventPtr(std::make_shared<EventState>()));
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  use_context();
  delete &state_of(event);
  return cudaSuccess;
}

// Records a new state: work that waits for the event before does not wait for this record.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  RuntimeLock const lock(runtime_mutex());
  use_context();
  auto const state = std::make_shared<EventState>();
  state->recorded = true;
  state->stream = &state_of(stream);
  state_of(event) = state;
  enqueue(stream, [state] { state->done = true; });
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  RuntimeLock const lock(runtime_mutex());
  ++runtime_counts().event_queries;
  EventState& state = *state_of(event);
  if (!options().lazy || ++state.queries > kQueriesBeforeDone) advance(state);
  return state.recorded && !state.done ? fail(cudaErrorNotReady) : take_async_error();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  RuntimeLock const lock(runtime_mutex());
  ++runtime_counts().event_waits;
  EventPtr const state = state_of(event);  // another thread may record it again
  complete(*state);
  return take_async_error();
}

}  // extern "C"
