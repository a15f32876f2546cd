// SPDX-License-Identifier: Apache-2.0
// Work in steps on the cores of an arena. Threads that wait for a step do not sleep, so that a step costs a small part
// of a microsecond and may be short.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

#include "kernels/arena.hpp"
#include "kernels/cpu_pause.hpp"

namespace gpups::kernels {

// Calls body(step, block) for each block < blocks, side by side, and then after(step) once, for each step < steps in
// turn. A thread does the same blocks in all steps, if it can: what they use is in its caches. Where one throws, no
// step begins behind its own, and an exception is thrown.
template <class Body, class After>
void run_phases(Arena& arena, std::size_t phases, std::size_t blocks, Body const& body, After const& after_phase) {
  struct alignas(64) Block {
    std::atomic<std::size_t> phases_done = 0;
  };
  std::vector<Block> progress(blocks);
  alignas(64) std::atomic<std::size_t> now = 0;
  alignas(64) std::atomic<std::size_t> done = 0, joined = 0;
  // Whoever waits, waits for threads that are at work: one that has not come has taken nothing.
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
      constexpr int kSpins = 4096;  // then another thread may need the core
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
      now = phases;  // nobody waits for it
    }
  });
  if (failed) std::rethrow_exception(failure);
}

}  // namespace gpups::kernels
