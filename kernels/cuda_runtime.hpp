// SPDX-License-Identifier: Apache-2.0
// The calls of the CUDA runtime that the library needs, without its header. In a build without CUDA there is no
// device, so none of them is reached; they throw.
#pragma once

#include <cstddef>
#include <string>

#ifdef __CUDACC__
#include <cuda_runtime.h>

namespace gpups {
// Throws Error with CUDA's own words where `result` is not success.
void check_cuda(cudaError_t result, char const* doing);
namespace kernels {
using gpups::check_cuda;
}
}  // namespace gpups
#endif

namespace gpups::cuda {

int device_count();
void use_device(int device);
// Free and total bytes of the device.
struct MemoryInfo {
  std::size_t free, total;
};
MemoryInfo memory_info(int device);
// Where the device is on the machine's bus, in the kernel's spelling: "0000:17:00.0". Empty in a build without CUDA.
std::string pci_address(int device);

// Versions of CUDA, as in 12040: what the driver is for, and what this build was made with. 0: there is none.
int driver_version();
int toolkit_version();
int capability(int device);             // 90 for 9.0
bool can_reach(int device, int other);  // whether a device can read and write the other's memory

// Null where there is no memory.
void* allocate(int device, std::size_t bytes);
void release(int device, void* block) noexcept;
// Memory of the host, for all devices. Null where there is none.
void* allocate_pinned(std::size_t bytes);
void release_pinned(void* block) noexcept;
void copy(int device, void* stream, void* to, void const* from, std::size_t bytes);
void fill_bytes(int device, void* stream, void* to, unsigned char byte, std::size_t bytes);

void* create_stream(int device);
void destroy_stream(int device, void* stream) noexcept;
void wait_stream(int device, void* stream);

void* record_event(int device, void* stream);
void destroy_event(int device, void* event) noexcept;
bool event_done(int device, void* event);
void wait_event(int device, void* event);
void stream_after(int device, void* stream, void* event);

}  // namespace gpups::cuda
