// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/machine/barriers.hpp"

#include <vector>

namespace gpups::emulator {
namespace {

constexpr std::uint32_t kBarriers = 16;

std::vector<Thread*> threads_at(Block& block, std::uint32_t barrier) {
  std::vector<Thread*> waiting;
  for (Thread& thread : block.threads) {
    if (thread.state == Thread::State::kAtBarrier && thread.barrier == barrier) waiting.push_back(&thread);
  }
  return waiting;
}

// Writes the result of a barrier with a reduction: how many threads have a true predicate, or whether all or any have.
void write_reduction(std::vector<Thread*> const& waiting) {
  std::uint32_t count = 0;
  for (Thread const* thread : waiting) {
    if (thread->waits_at->mode != 0 && (thread->registers[thread->waits_at->a] & 1) != 0) ++count;
  }
  std::uint32_t const results[] = {0, count, count == waiting.size(), count != 0};
  for (Thread* thread : waiting) {
    Instruction const& i = *thread->waits_at;
    if (i.mode != 0) write<std::uint32_t>(*thread, i.d, results[i.mode]);
  }
}

}  // namespace

bool finish_barriers(Block& block) {
  bool finished = false;
  for (std::uint32_t barrier = 0; barrier < kBarriers; ++barrier) {
    auto const waiting = threads_at(block, barrier);
    if (waiting.empty()) continue;
    std::uint32_t const given = waiting.front()->barrier_threads;
    if (waiting.size() < (given != 0 ? given : block.running)) continue;
    write_reduction(waiting);
    for (Thread* thread : waiting) {
      thread->state = Thread::State::kRunning;
      thread->waits_at = nullptr;
    }
    finished = true;
  }
  return finished;
}

}  // namespace gpups::emulator
