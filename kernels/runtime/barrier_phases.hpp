// SPDX-License-Identifier: Apache-2.0
// Runs work in phases on the threads of an arena, with a barrier after each phase. Threads spin while they wait, so
// that a barrier costs a small part of a microsecond and phases may be short.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

#include "kernels/base/cpu_pause.hpp"
#include "kernels/runtime/arena.hpp"

namespace gpups::kernels {

// For each phase < phases, in order: calls body(phase, block) for each block < blocks, in parallel, and then
// after_phase(phase) once. A thread runs the same blocks in all phases if it can, so that their data stay in its
// caches. If a call throws, no later phase begins, and one of the exceptions is rethrown.
template <class Body, class After>
void run_phases(Arena& arena, std::size_t phases, std::size_t blocks, Body const& body, After const& after_phase) {
  struct alignas(64) Block {
    std::atomic<std::size_t> phases_done = 0;
  };
  std::vector<Block> progress(blocks);
  alignas(64) std::atomic<std::size_t> now = 0;
  alignas(64) std::atomic<std::size_t> done = 0, joined = 0;
  // A thread waits only for blocks that are being run: a thread that has not started has taken none.
  auto const work = [&] {
    std::size_t const first_block = joined++;
    for (std::size_t phase; (phase = now.load(std::memory_order_acquire)) < phases;) {
      for (std::size_t k = 0; k < blocks; ++k) {
        std::size_t const block = (first_block + k) % blocks;
        std::size_t before = phase;
        if (!progress[block].phases_done.compare_exchange_strong(before, phase + 1)) continue;
        body(phase, block);
        if (++done != (phase + 1) * blocks) continue;
        after_phase(phase);
        now.store(phase + 1, std::memory_order_release);
      }
      constexpr int kSpins = 4096;  // then yields: another thread may need the core
      for (int spins = 0; now.load(std::memory_order_acquire) == phase; ++spins) {
        if (spins >= kSpins) std::this_thread::yield();
        cpu_pause();
      }
    }
  };
  std::atomic<bool> failed = false;
  std::exception_ptr failure;
  arena.blocks(blocks, [&](std::size_t) {
    try {
      work();
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
      now = phases;  // ends the waits of the other threads
    }
  });
  if (failed) std::rethrow_exception(failure);
}

}  // namespace gpups::kernels
