// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda_runtime.hpp"

#include <cctype>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "gpups/error.hpp"

namespace gpups {

void check_cuda(cudaError_t result, char const* doing) {
  if (result == cudaSuccess) return;
  throw Error(std::string("CUDA reports '") + cudaGetErrorString(result) + "' (while " + doing +
              "): run compute-sanitizer if it is an access error, else check the device with nvidia-smi");
}

namespace cuda {

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  (void)cudaGetLastError();  // otherwise the next launch would report it
  return 0;
}

std::string device_error() {
  int count = 0;
  auto const result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess) return {};
  (void)cudaGetLastError();
  return cudaGetErrorString(result);
}

namespace {

// Returns a function of the driver, or null. The library does not link the driver, which machines without a GPU lack.
void* driver_function(char const* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
  auto const result = cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
#else
  auto const result = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  return result == cudaSuccess && found == cudaDriverEntryPointSuccess ? function : nullptr;
}

// Returns whether this process has a context on the device, without creating one.
bool has_context(int device) {
  using GetState = int (*)(int device, unsigned* flags, int* active);
  static auto const get_state = reinterpret_cast<GetState>(driver_function("cuDevicePrimaryCtxGetState"));
  unsigned flags = 0;
  int active = 0;
  return get_state == nullptr || (get_state(device, &flags, &active) == 0 && active != 0);
}

}  // namespace

CurrentDevice::CurrentDevice(int device) : device_(device), before_(device) {
  check_cuda(cudaGetDevice(&before_), "reading the current device");
  if (before_ != device_) check_cuda(cudaSetDevice(device_), "selecting a device");
}
CurrentDevice::CurrentDevice(int device, std::nothrow_t const&) noexcept : device_(device), before_(device) {
  if (cudaGetDevice(&before_) == cudaSuccess && before_ != device_) (void)cudaSetDevice(device_);
}
CurrentDevice::~CurrentDevice() {
  if (before_ != device_ && has_context(before_)) (void)cudaSetDevice(before_);
}

MemoryInfo memory_info(int device) {
  CurrentDevice const current(device);
  MemoryInfo info{};
  check_cuda(cudaMemGetInfo(&info.free, &info.total), "reading the size of the memory");
  return info;
}

std::string pci_address(int device) {
  char text[32] = {};
  check_cuda(cudaDeviceGetPCIBusId(text, sizeof text, device), "reading the PCI address of a device");
  std::string address = text;
  for (char& c : address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));  // as Linux writes it
  return address;
}

int driver_version() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;
}

int toolkit_version() { return CUDART_VERSION; }

int capability(int device) {
  int major = 0, minor = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "reading the compute capability of a device");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
             "reading the compute capability of a device");
  return 10 * major + minor;
}

bool can_reach(int device, int other) {
  int can = 0;
  check_cuda(cudaDeviceCanAccessPeer(&can, device, other), "checking whether devices can access each other's memory");
  return can != 0;
}

void* allocate(int device, std::size_t bytes) {
  CurrentDevice const current(device);
  void* block = nullptr;
  auto result = cudaMalloc(&block, bytes);
  if (result == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    cudaMemPool_t scratch{};  // keeps what StreamScratch has freed
    check_cuda(cudaDeviceGetDefaultMemPool(&scratch, device), "reading the memory pool of a device");
    check_cuda(cudaDeviceSynchronize(), "waiting for a device");
    check_cuda(cudaMemPoolTrimTo(scratch, 0), "emptying the memory pool of a device");
    result = cudaMalloc(&block, bytes);
  }
  if (result == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
  check_cuda(result, "allocating memory");
  return block;
}

void release(int device, void* block) noexcept {
  CurrentDevice const current(device, std::nothrow);
  (void)cudaFree(block);
}

void* allocate_pinned(int device, std::size_t bytes) {
  CurrentDevice const current(device);
  void* block = nullptr;
  auto const result = cudaHostAlloc(&block, bytes, cudaHostAllocPortable);
  if (result == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
  check_cuda(result, "allocating pinned memory");
  return block;
}

void release_pinned(int device, void* block) noexcept {
  CurrentDevice const current(device, std::nothrow);
  (void)cudaFreeHost(block);
}

void enable_peer_access(int device, int other) {
  static std::mutex mutex;
  static std::set<std::pair<int, int>> known;
  if (device == other) return;
  std::lock_guard const lock(mutex);
  if (!known.emplace(device, other).second || !can_reach(device, other)) return;
  CurrentDevice const current(device);
  auto const result = cudaDeviceEnablePeerAccess(other, 0);
  // NCCL or the application may have enabled it. Without it, copies pass through the host.
  if (result != cudaSuccess) (void)cudaGetLastError();
}

void copy(int device, void* stream, void* to, void const* from, std::size_t bytes) {
  CurrentDevice const current(device);
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, static_cast<cudaStream_t>(stream)), "copying");
}

void fill_bytes(int device, void* stream, void* to, unsigned char byte, std::size_t bytes) {
  CurrentDevice const current(device);
  check_cuda(cudaMemsetAsync(to, byte, bytes, static_cast<cudaStream_t>(stream)), "filling memory");
}

void* create_stream(int device) {
  CurrentDevice const current(device);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  return stream;
}

void destroy_stream(int device, void* stream) noexcept {
  CurrentDevice const current(device, std::nothrow);
  (void)cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}

void wait_stream(int device, void* stream) {
  CurrentDevice const current(device);
  check_cuda(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)), "waiting for a stream");
}

void* record_event(int device, void* stream) {
  CurrentDevice const current(device);
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
  auto const result = cudaEventRecord(event, static_cast<cudaStream_t>(stream));
  if (result != cudaSuccess) (void)cudaEventDestroy(event);
  check_cuda(result, "recording an event");
  return event;
}

void destroy_event(int device, void* event) noexcept {
  CurrentDevice const current(device, std::nothrow);
  (void)cudaEventDestroy(static_cast<cudaEvent_t>(event));
}

bool event_done(int device, void* event) {
  CurrentDevice const current(device);
  auto const result = cudaEventQuery(static_cast<cudaEvent_t>(event));
  if (result == cudaErrorNotReady) {
    (void)cudaGetLastError();  // clears the error; otherwise the next launch would report it
    return false;
  }
  check_cuda(result, "querying an event");
  return true;
}

void wait_event(int device, void* event) {
  CurrentDevice const current(device);
  check_cuda(cudaEventSynchronize(static_cast<cudaEvent_t>(event)), "waiting for an event");
}

void stream_after(int device, void* stream, void* event) {
  CurrentDevice const current(device);
  check_cuda(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), static_cast<cudaEvent_t>(event)),
             "ordering a stream after an event");
}

}  // namespace cuda
}  // namespace gpups
