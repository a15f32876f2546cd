// SPDX-License-Identifier: Apache-2.0
// Counts what kernels do: launches, instructions, and the memory traffic of warps. The lanes of a warp execute one by
// one here, so the k-th access of each lane at an instruction belongs to the k-th access of the warp, as if the warp
// had reconverged.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/emulator/ptx/program.hpp"

namespace gpups::emulator {

inline constexpr std::uint64_t kSectorBytes = 32;

// Accesses of warps to global memory, of one kind.
struct SectorCounts {
  std::uint64_t accesses = 0;  // of warps
  std::uint64_t sectors = 0;   // distinct sectors of 32 bytes of each access, summed
  std::uint64_t distinct = 0;  // distinct sectors of each launch, summed: the traffic with a perfect cache
  std::uint64_t bytes = 0;     // that the lanes have requested
  SectorCounts& operator+=(SectorCounts const& other);
};

enum class AccessKind : std::uint8_t { kLoad, kStore, kAtomic };

// The sectors that a launch has accessed so far, separately for each kind of access.
class LaunchSectors {
 public:
  // Begins a launch unless `launch` is the number of the current one.
  void begin(std::uint64_t launch);
  // Returns whether this is the first access of this kind to a sector.
  bool add(std::uint64_t sector, AccessKind kind);

 private:
  using Words = std::array<std::uint64_t, 3>;  // a bit for each of 64 sectors, by kind
  std::uint64_t launch_ = ~std::uint64_t{0};
  std::unordered_map<std::uint64_t, Words> words_;  // by sector / 64
};

// Counts of one kernel.
struct KernelCounts {
  std::uint64_t launches = 0, blocks = 0;
  std::uint64_t instructions = 0;  // of threads
  SectorCounts loads, stores, atomics;
  std::uint64_t shared_accesses = 0;   // of warps
  std::uint64_t bank_conflicts = 0;    // cycles beyond the first one of each access to shared memory
  std::uint64_t partial_accesses = 0;  // accesses of warps, to any memory, in which some of the lanes took no part
  std::uint32_t exposed_loads = 0;     // of the thread that has most; see exposed_loads.hpp
  LaunchSectors launch_sectors;        // of the last launch
  // Adds the counts, but not the sectors of the last launch.
  KernelCounts& operator+=(KernelCounts const& other);
};

// Counts the accesses of the warps of one block at a time.
class AccessCounter {
 public:
  // Begins a block of so many threads.
  void begin(std::uint32_t threads);
  // One lane accesses memory; `address` is an offset if it is shared memory.
  void count(std::uint32_t thread, Instruction const& instruction, std::uint64_t address, std::uint32_t bytes,
             AccessKind kind, bool is_shared);
  // Ends the block, and adds what it did to `counts`.
  void end(KernelCounts& counts);

 private:
  // An instruction that accesses memory.
  struct Site {
    std::uint32_t number;                 // in the order in which the block reached them
    std::vector<std::uint32_t> executed;  // by thread
  };
  struct WarpAccess {
    std::uint32_t lanes = 0;
    std::uint32_t bytes = 0;  // of a lane
    AccessKind kind{};
    bool is_shared = false;
    std::array<std::uint64_t, 32> addresses{};  // by lane
  };
  std::uint32_t lanes_of_warp(std::uint32_t warp) const;
  SectorCounts& counts_of(AccessKind kind);
  void add(WarpAccess const& access, bool is_partial);

  std::uint32_t threads_ = 0;
  std::unordered_map<Instruction const*, Site> sites_;
  std::unordered_map<std::uint64_t, WarpAccess> open_;  // by execution, site and warp: lanes are still missing
  KernelCounts counts_;
  std::array<std::vector<std::uint64_t>, 3> sectors_;  // that the block has accessed, by kind
};

}  // namespace gpups::emulator
