// SPDX-License-Identifier: Apache-2.0
// The functions of cuda_runtime.hpp in a build without CUDA: there is no device.
#include "gpups/error.hpp"
#include "kernels/runtime/cuda_runtime.hpp"

namespace gpups::cuda {
namespace {

[[noreturn]] void absent() {
  throw Error("a CUDA device was requested (this build has no device code): use device 'host', or build with nvcc");
}

}  // namespace

int device_count() { return 0; }
std::string device_error() { return {}; }
CurrentDevice::CurrentDevice(int) { absent(); }
CurrentDevice::CurrentDevice(int device, std::nothrow_t const&) noexcept : device_(device), before_(device) {}
CurrentDevice::~CurrentDevice() = default;
MemoryInfo memory_info(int) { absent(); }
std::string pci_address(int) { return {}; }
int driver_version() { return 0; }
int toolkit_version() { return 0; }
int capability(int) { absent(); }
bool can_reach(int, int) { absent(); }
void* allocate(int, std::size_t) { absent(); }
void release(int, void*) noexcept {}
void* allocate_pinned(int, std::size_t) { absent(); }
void release_pinned(int, void*) noexcept {}
void enable_peer_access(int, int) { absent(); }
void copy(int, void*, void*, void const*, std::size_t) { absent(); }
void fill_bytes(int, void*, void*, unsigned char, std::size_t) { absent(); }
void* create_stream(int) { absent(); }
void destroy_stream(int, void*) noexcept {}
void wait_stream(int, void*) { absent(); }
void* record_event(int, void*) { absent(); }
void destroy_event(int, void*) noexcept {}
bool event_done(int, void*) { absent(); }
void wait_event(int, void*) { absent(); }
void stream_after(int, void*, void*) { absent(); }

}  // namespace gpups::cuda
