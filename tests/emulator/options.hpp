// SPDX-License-Identifier: Apache-2.0
// The options of the emulator, from the environment variable GPUPS_EMULATOR: "lazy=1,seed=7,resident=4".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace gpups::emulator {

struct Options {
  // A stream executes its work only when something waits for it, so that missing waits show. Otherwise work is executed
  // when it is queued.
  bool lazy = false;
  // Threads and blocks are interleaved at random; otherwise in order.
  std::optional<std::uint64_t> seed;
  int resident = 1;  // blocks that are interleaved
  // Counts memory accesses, which takes time; see machine/counters.hpp.
  bool counts = false;
  // An operation of NCCL is queued, and its data arrive, only after so many polls.
  int nccl_polls = 0;
  int devices = 1;
  // Devices can access each other's memory, once a program has enabled that.
  bool peers = true;
  int multiprocessors = 8;
  std::size_t memory_mib = 8192;  // of each device
  // Names unknown instructions when a kernel is first used, not when it reaches them.
  bool lists_unknown = false;
  // Ends the process with status 1 if it exits while memory is allocated.
  bool leaks = false;
};

// Returns the options. The first call reads them; it ends the process if they are invalid. Tests may change them while
// nothing is queued.
Options& options();

}  // namespace gpups::emulator
