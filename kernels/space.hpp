// SPDX-License-Identifier: Apache-2.0
// Where a kernel body runs, as a type: handing work for one space to the other does not compile.
#pragma once

#include <memory>

#include "gpups/stream.hpp"
#include "kernels/build_config.hpp"

namespace gpups::kernels {

class Arena;

enum class Space { kHost, kDevice };

// What a body needs to run: the cores on the host, the CUDA stream on a GPU.
template <Space S>
struct Exec;
template <>
struct Exec<Space::kHost> {
  Arena* arena;
};
template <>
struct Exec<Space::kDevice> {
  void* stream;                    // cudaStream_t
  std::shared_ptr<void>* library;  // what a library keeps for the stream; null before its first use
};
using HostExec = Exec<Space::kHost>;
using DeviceExec = Exec<Space::kDevice>;

// The space that the compiler at work makes objects for.
#ifdef __CUDACC__
using NativeExec = DeviceExec;
#else
using NativeExec = HostExec;
#endif

HostExec host_exec(Stream const& stream);
DeviceExec device_exec(Stream const& stream);

}  // namespace gpups::kernels

// Ends kernels/NAME.cu, once for each pair of a function and its arguments. This compiler's object gets the body for
// its own space; the host object also gets the function that callers use, which picks the space of the stream.
#ifdef __CUDACC__
#define GPUPS_KERNEL(name, Arguments) template void run(DeviceExec, Arguments const&);
#elif GPUPS_HAS_CUDA
#define GPUPS_KERNEL(name, Arguments)                                                                    \
  template void run(HostExec, Arguments const&);                                                         \
  extern template void run(DeviceExec, Arguments const&);                                                \
  void name(Stream& stream, Arguments const& arguments) {                                                \
    stream.device().is_host() ? run(host_exec(stream), arguments) : run(device_exec(stream), arguments); \
  }
#else
#define GPUPS_KERNEL(name, Arguments)            \
  template void run(HostExec, Arguments const&); \
  void name(Stream& stream, Arguments const& arguments) { run(host_exec(stream), arguments); }
#endif
