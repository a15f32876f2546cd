// SPDX-License-Identifier: Apache-2.0
// Devices and their attributes, versions, and the names of errors.
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "tests/emulator/options.hpp"
#include "tests/emulator/runtime/state.hpp"

namespace gpups::emulator {
namespace {

constexpr int kVersion = 13000;
thread_local int current = 0;

// The attributes of an H100, but for the number of multiprocessors.
int attribute(cudaDeviceAttr which) {
  static std::map<cudaDeviceAttr, int> const values{
      {cudaDevAttrComputeCapabilityMajor, 9},
      {cudaDevAttrComputeCapabilityMinor, 0},
      {cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, 227 << 10},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 228 << 10},
      {cudaDevAttrReservedSharedMemoryPerBlock, 1 << 10},
      {cudaDevAttrWarpSize, 32},
      {cudaDevAttrMaxThreadsPerBlock, 1024},
      {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
      {cudaDevAttrMaxGridDimX, 0x7FFFFFFF},
      {cudaDevAttrMaxGridDimY, 65535},
  };
  if (which == cudaDevAttrMultiProcessorCount) return options().multiprocessors;
  auto const found = values.find(which);
  if (found != values.end()) return found->second;
  std::fprintf(stderr, "emulator: the device attribute %d is not known, and is 0\n", static_cast<int>(which));
  return 0;
}

// Pairs of a device and another whose memory it may access.
std::set<std::pair<int, int>>& enabled_peers() {
  static auto& all = *new std::set<std::pair<int, int>>;
  return all;
}

// cuDevicePrimaryCtxGetState() of the driver.
int primary_context_state(int device, unsigned* flags, int* active) {
  RuntimeLock const lock(runtime_mutex());
  *flags = 0;
  *active = contexts().contains(device) ? 1 : 0;
  return 0;
}

}  // namespace

int current_device() { return current; }

std::set<int>& contexts() {
  static auto& all = *new std::set<int>;
  return all;
}
void use_context() {
  RuntimeLock const lock(runtime_mutex());
  contexts().insert(current);
}

bool is_peer_enabled(int device, int other) { return enabled_peers().contains({device, other}); }

}  // namespace gpups::emulator

using namespace gpups::emulator;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = options().devices;
  return *count > 0 ? cudaSuccess : fail(cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int* device) {
  *device = current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= options().devices) return fail(cudaErrorInvalidDevice);
  current = device;
  use_context();
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(char const* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  bool const is_known = std::strcmp(symbol, "cuDevicePrimaryCtxGetState") == 0;
  *function = is_known ? reinterpret_cast<void*>(primary_context_state) : nullptr;
  if (result != nullptr) *result = is_known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  *value = attribute(which);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", 0x17 + static_cast<unsigned>(device));
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int other) {
  *can = device != other && options().peers;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned) {
  RuntimeLock const lock(runtime_mutex());
  if (!options().peers || other == current) return fail(cudaErrorPeerAccessUnsupported);
  contexts().insert({current, other});
  return enabled_peers().emplace(current, other).second ? cudaSuccess : fail(cudaErrorPeerAccessAlreadyEnabled);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

char const* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchTimeout:
      return "cudaErrorLaunchTimeout";
    default:
      return "an error";
  }
}
char const* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchTimeout:
      return "no thread of a kernel can continue";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    default:
      return cudaGetErrorName(error);
  }
}

}  // extern "C"
