// SPDX-License-Identifier: Apache-2.0
// Kernels: objects register them when the program starts, and launches find them by the address of their host stub.
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "tests/emulator/machine/launch.hpp"
#include "tests/emulator/ptx/decode.hpp"
#include "tests/emulator/ptx/mutation.hpp"
#include "tests/emulator/ptx/parse_module.hpp"
#include "tests/emulator/runtime/fat_binary.hpp"
#include "tests/emulator/runtime/state.hpp"

namespace gpups::emulator {
namespace {

constexpr int kSharedBytesDefault = 48 << 10, kSharedBytesMax = 227 << 10;
constexpr unsigned kThreadsMax = 1024, kGridYMax = 65535, kGridXMax = 0x7FFFFFFF;

// The module of an object. Its PTX is read when one of its kernels is first used.
struct RegisteredModule {
  void const* fat_binary;
  Module module;
};

struct RegisteredKernel {
  RegisteredModule* module;
  std::string name;
  Function* function = nullptr;  // null until it is first used
  int dynamic_shared_bytes_max = kSharedBytesDefault;
};

std::map<void const*, RegisteredKernel>& kernels() {
  static auto& all = *new std::map<void const*, RegisteredKernel>;
  return all;
}

// Ends the process: a kernel that cannot be read is a fault of the emulator.
[[noreturn]] void give_up(std::string const& what) {
  std::fprintf(stderr, "emulator: %s\n", what.c_str());
  std::abort();
}

Function& function_of(RegisteredKernel& kernel) try {
  if (kernel.function != nullptr) return *kernel.function;
  Module& module = kernel.module->module;
  if (!module.parsed) {
    module.text = mutated(ptx_of(kernel.module->fat_binary));
    parse_module(module);
  }
  auto const found = module.functions.find(kernel.name);
  if (found == module.functions.end()) give_up("there is no PTX of the kernel " + kernel.name);
  decode(*found->second);
  kernel.function = found->second.get();
  return *kernel.function;
} catch (UnsupportedPtx const& error) {
  give_up(error.what());
}

RegisteredKernel* find_kernel(void const* stub) {
  auto const found = kernels().find(stub);
  return found == kernels().end() ? nullptr : &found->second;
}

// Returns what is wrong with a launch; empty if it is possible.
std::string check_launch(RegisteredKernel const& kernel, Function const& function, dim3 grid, dim3 block,
                         std::size_t shared_bytes) {
  std::uint64_t const threads = std::uint64_t{block.x} * block.y * block.z;
  bool const is_empty = grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0;
  auto const most = function.threads_max == 0 ? kThreadsMax : static_cast<unsigned>(function.threads_max);
  if (is_empty || threads > most || grid.x > kGridXMax || grid.y > kGridYMax || grid.z > kGridYMax) {
    return fmt::format("{} has a grid of ({}, {}, {}) blocks of {} threads", function.name, grid.x, grid.y, grid.z,
                       threads);
  }
  auto const total = static_cast<std::size_t>(function.shared_bytes) + shared_bytes;
  auto const allowed =
      static_cast<std::size_t>(std::max(kSharedBytesDefault, function.shared_bytes + kernel.dynamic_shared_bytes_max));
  if (total > allowed) {
    return fmt::format("{} needs {} bytes of shared memory, and may use {}", function.name, total, allowed);
  }
  return {};
}

// The parameters of a launch, which live until the kernel has ended. Aligned for every access.
struct Parameters {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::shared_ptr<std::uint8_t> memory;

  Parameters(Function const& function, void** arguments) {
    constexpr std::size_t kAlign = 64;
    std::size_t const bytes = (static_cast<std::size_t>(function.parameter_bytes) / kAlign + 1) * kAlign;
    memory.reset(static_cast<std::uint8_t*>(std::aligned_alloc(kAlign, bytes)), Free());
    for (std::size_t p = 0; p < function.parameters.size(); ++p) {
      Parameter const& parameter = function.parameters[p];
      std::memcpy(memory.get() + parameter.offset, arguments[p], static_cast<std::size_t>(parameter.bytes));
    }
  }
};

cudaError_t launch_on(RegisteredKernel& kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                      cudaStream_t stream) {
  Function& function = function_of(kernel);
  std::string const wrong = check_launch(kernel, function, grid, block, shared_bytes);
  if (!wrong.empty()) return report(cudaErrorInvalidConfiguration, wrong);
  if (device_of(stream) != current_device()) {
    return report(cudaErrorInvalidResourceHandle,
                  fmt::format("{} is to run on a stream of device {} while device {} is the current one", function.name,
                              device_of(stream), current_device()));
  }
  use_context();
  ++runtime_counts().launches;
  LaunchSize const size{
      {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, static_cast<std::uint32_t>(shared_bytes)};
  enqueue(stream, [&function, size, parameters = Parameters(function, arguments)] {
    launch(function, size, parameters.memory.get(), runtime_counts().kernels[function.name]);
  });
  return cudaSuccess;
}

// The configuration between the brackets of a launch, until its stub takes it.
struct Configuration {
  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

int blocks_per_multiprocessor(int threads) {
  constexpr int kThreadsPerMultiprocessor = 2048;
  return std::max(1, kThreadsPerMultiprocessor / std::max(threads, 1));
}

}  // namespace
}  // namespace gpups::emulator

using namespace gpups::emulator;

// The functions with two underscores are called by code that nvcc generates.
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  return reinterpret_cast<void**>(new RegisteredModule{.fat_binary = wrapper, .module = {}});
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void** module, char const* stub, char*, char const* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  RuntimeLock const lock(runtime_mutex());
  kernels().emplace(stub, RegisteredKernel{.module = reinterpret_cast<RegisteredModule*>(module), .name = name});
}
void __cudaRegisterVar(void**, char*, char*, char const*, int, std::size_t, int, int) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
  if (configurations.empty()) return cudaErrorInvalidConfiguration;
  auto const last = configurations.back();
  configurations.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, void const* stub) {
  RuntimeLock const lock(runtime_mutex());
  RegisteredKernel* const found = find_kernel(stub);
  *kernel = reinterpret_cast<cudaKernel_t>(found);
  return found == nullptr ? fail(cudaErrorInvalidDeviceFunction) : cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                               cudaStream_t stream) {
  RuntimeLock const lock(runtime_mutex());
  return launch_on(*reinterpret_cast<RegisteredKernel*>(kernel), grid, block, arguments, shared_bytes, stream);
}
cudaError_t cudaLaunchKernel(void const* stub, dim3 grid, dim3 block, void** arguments, std::size_t shared_bytes,
                             cudaStream_t stream) {
  RuntimeLock const lock(runtime_mutex());
  RegisteredKernel* const kernel = find_kernel(stub);
  if (kernel == nullptr) return fail(cudaErrorInvalidDeviceFunction);
  return launch_on(*kernel, grid, block, arguments, shared_bytes, stream);
}
cudaError_t cudaLaunchKernelExC(cudaLaunchConfig_t const* config, void const* stub, void** arguments) {
  return cudaLaunchKernel(stub, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void const* stub) {
  RuntimeLock const lock(runtime_mutex());
  RegisteredKernel* const kernel = find_kernel(stub);
  if (kernel == nullptr) return fail(cudaErrorInvalidDeviceFunction);
  Function const& function = function_of(*kernel);
  *attributes = {};
  attributes->sharedSizeBytes = static_cast<std::size_t>(function.shared_bytes);
  attributes->maxThreadsPerBlock = function.threads_max == 0 ? static_cast<int>(kThreadsMax) : function.threads_max;
  attributes->numRegs = 40;  // PTX does not say; a usual number
  attributes->ptxVersion = attributes->binaryVersion = 90;
  attributes->maxDynamicSharedSizeBytes = kernel->dynamic_shared_bytes_max;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(void const* stub, cudaFuncAttribute attribute, int value) {
  RuntimeLock const lock(runtime_mutex());
  RegisteredKernel* const kernel = find_kernel(stub);
  if (kernel == nullptr) return fail(cudaErrorInvalidDeviceFunction);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value > kSharedBytesMax) return fail(cudaErrorInvalidValue);
  kernel->dynamic_shared_bytes_max = value;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void const*, int threads, std::size_t,
                                                                   unsigned) {
  *blocks = blocks_per_multiprocessor(threads);
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void const*, int threads, std::size_t) {
  *blocks = blocks_per_multiprocessor(threads);
  return cudaSuccess;
}

}  // extern "C"
