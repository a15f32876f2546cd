// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA runtime that the library uses, without the header of the runtime. In a build without CUDA,
// device_count() returns 0, and functions that need a device throw Error.
#pragma once

#include <cstddef>
#include <new>
#include <string>

#ifdef __CUDACC__
#include <cuda_runtime.h>

namespace gpups {
// Throws Error with CUDA's error message if `result` is not success. doing: the action that failed, such as "copying".
void check_cuda(cudaError_t result, char const* doing);
namespace kernels {
using gpups::check_cuda;
}
}  // namespace gpups
#endif

namespace gpups::cuda {

int device_count();
std::string device_error();  // why device_count() cannot count them; empty if it can

// Makes a device the current one of the calling thread, which belongs to the application; the destructor restores the
// one before. If this process has no context on that one, the thread has not chosen it, and keeps the new device: to
// set it would create a context, which takes hundreds of megabytes of a GPU that other processes use.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  CurrentDevice(int device, std::nothrow_t const&) noexcept;  // ignores errors, for what frees something
  ~CurrentDevice();
  CurrentDevice(CurrentDevice const&) = delete;
  CurrentDevice& operator=(CurrentDevice const&) = delete;

 private:
  int device_, before_;
};

// Free and total bytes of the device.
struct MemoryInfo {
  std::size_t free, total;
};
MemoryInfo memory_info(int device);
// Returns the PCI address of the device as Linux writes it: "0000:17:00.0". Empty in a build without CUDA.
std::string pci_address(int device);

// Return versions of CUDA, such as 12040 for 12.4: the newest one that the driver supports, and that of the toolkit of
// this build. 0: there is no driver, or no toolkit.
int driver_version();
int toolkit_version();
int capability(int device);             // compute capability, such as 90 for 9.0
bool can_reach(int device, int other);  // whether `device` can access the memory of `other`

// Returns null if the device does not have enough memory.
void* allocate(int device, std::size_t bytes);
void release(int device, void* block) noexcept;
// Allocates pinned host memory for all devices, in the context of this one. Returns null if there is not enough.
void* allocate_pinned(int device, std::size_t bytes);
void release_pinned(int device, void* block) noexcept;
// Lets `device` access the memory of `other`, if it can, so that copies between them do not pass through the host. The
// first call for two devices takes milliseconds.
void enable_peer_access(int device, int other);
// copy() and fill_bytes() are queued on the stream.
void copy(int device, void* stream, void* to, void const* from, std::size_t bytes);
void fill_bytes(int device, void* stream, void* to, unsigned char byte, std::size_t bytes);

void* create_stream(int device);
void destroy_stream(int device, void* stream) noexcept;
void wait_stream(int device, void* stream);

void* record_event(int device, void* stream);
void destroy_event(int device, void* event) noexcept;
bool event_done(int device, void* event);
void wait_event(int device, void* event);
// Makes work that is queued on the stream later wait for the event.
void stream_after(int device, void* stream, void* event);

}  // namespace gpups::cuda
