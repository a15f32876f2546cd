// SPDX-License-Identifier: Apache-2.0
#include "tools/hangup.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

namespace gpups::tools {
namespace {

bool ignored_at_start = false;

// The kernel's struct of rt_sigaction(2).
struct KernelAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

// Runs before the initializers of all shared libraries, which include UCX's. No library or sanitizer is ready then, so
// this function only calls the kernel.
__attribute__((no_sanitize("address", "thread", "undefined"))) void look_at_hangup(int, char**, char**) {
  KernelAction action{};
  long const status = ::syscall(SYS_rt_sigaction, SIGHUP, nullptr, &action, sizeof action.mask);
  ignored_at_start = status == 0 && action.handler == SIG_IGN;
}

__attribute__((section(".preinit_array"), used)) void (*const look_first)(int, char**, char**) = look_at_hangup;

}  // namespace

void restore_hangup() { std::signal(SIGHUP, ignored_at_start ? SIG_IGN : SIG_DFL); }

}  // namespace gpups::tools
