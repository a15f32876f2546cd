// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/runtime/state.hpp"

#include <cstdio>
#include <utility>

namespace gpups::emulator {
namespace {

// Never destroyed: streams are used until the process ends.
struct Errors {
  cudaError_t async = cudaSuccess;  // of work that was executed
  std::string text;
};
Errors& errors() {
  static auto& all = *new Errors;
  return all;
}

thread_local cudaError_t last_of_thread = cudaSuccess;

}  // namespace

std::recursive_mutex& runtime_mutex() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}

cudaError_t report(cudaError_t error, std::string const& what) {
  errors().text = what;
  std::fprintf(stderr, "emulator: %s\n", what.c_str());
  last_of_thread = error;
  return error;
}

void report_async(KernelError const& error) {
  errors().async = report(static_cast<cudaError_t>(error.code), error.what);
}

std::string const& last_report() { return errors().text; }

cudaError_t take_async_error() {
  cudaError_t const error = std::exchange(errors().async, cudaSuccess);
  if (error != cudaSuccess) last_of_thread = error;
  return error;
}

cudaError_t fail(cudaError_t error) { return last_of_thread = error; }

RuntimeCounts& runtime_counts() {
  static auto& counts = *new RuntimeCounts;
  return counts;
}

}  // namespace gpups::emulator

using gpups::emulator::last_of_thread;

extern "C" {
cudaError_t cudaGetLastError() { return std::exchange(last_of_thread, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_of_thread; }
}
