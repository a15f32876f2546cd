// SPDX-License-Identifier: Apache-2.0
// Streams and events.
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "tests/emulator/options.hpp"
#include "tests/emulator/runtime/state.hpp"

namespace gpups::emulator {
namespace {

struct StreamState {
  int device = 0;
  std::deque<std::function<void()>> queue;
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
  StreamState of_default;  // the stream 0 of all devices
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

void execute(std::function<void()> const& work) {
  try {
    work();
  } catch (KernelError const& error) {
    report_async(error);
  }
}

void execute_first(StreamState& stream) {
  auto const work = std::move(stream.queue.front());
  stream.queue.pop_front();
  execute(work);
}

void drain(StreamState& stream) {
  while (!stream.queue.empty()) execute_first(stream);
}

// Executes work of the event's stream until the event is done.
void complete(EventState const& event) {
  while (event.recorded && !event.done && !event.stream->queue.empty()) execute_first(*event.stream);
}

}  // namespace

void enqueue(cudaStream_t stream, std::function<void()> work) {
  StreamState& state = state_of(stream);
  if (options().lazy) {
    state.queue.push_back(std::move(work));
  } else {
    execute(work);
  }
}

void drain(cudaStream_t stream) { drain(state_of(stream)); }

void drain_all() {
  drain(streams().of_default);
  for (StreamState* const stream : std::set(streams().all)) drain(*stream);
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
  auto* const state = new StreamState{.device = current_device(), .queue = {}};
  streams().all.insert(state);
  *stream = reinterpret_cast<cudaStream_t>(state);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  RuntimeLock const lock(runtime_mutex());
  auto* const state = reinterpret_cast<StreamState*>(stream);
  if (!streams().all.contains(state)) {
    return report(cudaErrorInvalidResourceHandle, "a stream is destroyed that does not exist");
  }
  drain(*state);
  streams().all.erase(state);
  delete state;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  RuntimeLock const lock(runtime_mutex());
  ++runtime_counts().stream_waits;
  drain(stream);
  return take_async_error();
}

cudaError_t cudaDeviceSynchronize() {
  RuntimeLock const lock(runtime_mutex());
  ++runtime_counts().stream_waits;
  drain_all();
  return take_async_error();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  RuntimeLock const lock(runtime_mutex());
  enqueue(stream, [state = state_of(event)] { complete(*state); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new EventPtr(std::make_shared<EventState>()));
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &state_of(event);
  return cudaSuccess;
}

// Records a new state: work that waits for the event before does not wait for this record.
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  RuntimeLock const lock(runtime_mutex());
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
  if (state.recorded && !state.done && ++state.queries > kQueriesBeforeDone) complete(state);
  return state.recorded && !state.done ? fail(cudaErrorNotReady) : take_async_error();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  RuntimeLock const lock(runtime_mutex());
  ++runtime_counts().event_waits;
  complete(*state_of(event));
  return take_async_error();
}

}  // extern "C"
