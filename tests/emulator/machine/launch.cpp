// SPDX-License-Identifier: Apache-2.0
// The scheduler: which thread of which block executes next.
#include "tests/emulator/machine/launch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/emulator/machine/barriers.hpp"
#include "tests/emulator/machine/thread.hpp"
#include "tests/emulator/machine/warp_operations.hpp"
#include "tests/emulator/options.hpp"

namespace gpups::emulator {
namespace {

constexpr int kLaunchTimeout = 702;        // cudaErrorLaunchTimeout
constexpr std::uint32_t kTurnMax = 20000;  // instructions of a thread before others have a turn

// The source of random interleavings. Without a seed, everything is in order.
class Interleaving {
 public:
  bool is_random() const { return options().seed.has_value(); }
  std::uint32_t below(std::size_t bound) { return is_random() ? static_cast<std::uint32_t>(random_() % bound) : 0; }
  bool chance() { return is_random() && (random_() & 1) != 0; }
  std::uint32_t turn() { return is_random() ? 1 + below(200) : kTurnMax; }

 private:
  std::mt19937_64 random_{options().seed.value_or(0)};
};
Interleaving& interleaving() {
  static Interleaving one;
  return one;
}

// Executes an instruction, and follows what the thread loads.
Outcome execute_counted(Thread& thread, Instruction const& i) {
  Register const* const registers = thread.registers;  // a call changes them
  thread.exposed.before(registers, i, false);
  thread.has_loaded = false;
  auto const outcome = i.execute(thread, i);
  if (thread.has_loaded) thread.exposed.began(registers, i);
  return outcome;
}

// Executes a thread until it waits or has ended, for at most one turn. Returns kNext after a whole turn.
Outcome run_thread(Thread& thread) {
  bool const counts = thread.block->counter != nullptr;
  std::uint32_t const turn = interleaving().turn();
  std::uint32_t executed = 0;
  Outcome outcome = Outcome::kNext;
  Instruction const* code = thread.function->code.data();
  while (executed < turn) {
    Instruction const& i = code[thread.next++];
    ++executed;
    if (i.predicate != kNoRegister && ((thread.registers[i.predicate] & 1) != 0) == i.negated) {
      if (counts) thread.exposed.before(thread.registers, i, true);
      continue;
    }
    outcome = counts ? execute_counted(thread, i) : i.execute(thread, i);
    if (outcome == Outcome::kNext) continue;
    if (outcome == Outcome::kJumped) {
      code = thread.function->code.data();
      outcome = Outcome::kNext;
      continue;
    }
    thread.waits_at = &i;
    break;
  }
  thread.block->instructions += executed;
  return outcome == Outcome::kYield ? Outcome::kNext : outcome;
}

// Runs a thread and records for what it waits. Returns whether it could go on.
bool take_turn(Thread& thread) {
  auto const value_or = [&](RegisterId id, std::uint32_t otherwise) {
    return id == kNoRegister ? otherwise : read<std::uint32_t>(thread, id);
  };
  switch (run_thread(thread)) {
    case Outcome::kWarp:
      thread.state = Thread::State::kInWarp;
      thread.mask = value_or(thread.waits_at->e, 0);
      return false;
    case Outcome::kBarrier:
      thread.state = Thread::State::kAtBarrier;
      thread.barrier = value_or(thread.waits_at->b, 0);
      thread.barrier_threads = value_or(thread.waits_at->c, 0);
      return false;
    case Outcome::kExit:
      thread.state = Thread::State::kExited;
      --thread.block->running;
      return false;
    default:
      return true;
  }
}

// Runs the lanes of a warp until none can continue, or until they wait for another warp. Returns whether any thread has
// executed something.
bool run_warp(Block& block, std::uint32_t warp) {
  Interleaving& order = interleaving();
  std::uint32_t const first = warp * kWarpThreads;
  std::uint32_t const lanes = std::min(kWarpThreads, static_cast<std::uint32_t>(block.threads.size()) - first);
  bool progress = false;
  for (int round = 0;; ++round) {
    bool ran = false, can_continue = false;
    std::uint32_t const begin = order.below(lanes);
    bool const backwards = order.chance();
    for (std::uint32_t k = 0; k < lanes; ++k) {
      Thread& thread = block.threads[first + (begin + (backwards ? lanes - 1 - k : k)) % lanes];
      if (thread.state != Thread::State::kRunning) continue;
      ran = true;
      can_continue |= take_turn(thread);
    }
    bool const finished = finish_warp_instructions(block, warp, false);
    progress |= ran || finished;
    if ((!ran || can_continue) && !finished) return progress;
    if (round > 2 && order.chance()) return progress;  // other warps run ahead
  }
}

[[noreturn]] void throw_deadlock(Block const& block) {
  std::map<std::string, int> waiting;
  for (Thread const& thread : block.threads) {
    if (thread.waits_at == nullptr || thread.state == Thread::State::kExited) continue;
    std::string const mask =
        thread.state == Thread::State::kInWarp ? fmt::format(" with the mask {:#x}", thread.mask) : "";
    ++waiting[fmt::format("'{}'{}", *thread.waits_at->text, mask)];
  }
  std::string text = fmt::format("no thread of a block of {} can continue:", block.function->name);
  for (auto const& [where, threads] : waiting) text += fmt::format("\n  {} threads wait at {}", threads, where);
  throw KernelError{kLaunchTimeout, text};
}

// Gives each warp a turn. Returns whether the block has ended.
bool run_block(Block& block) {
  std::uint32_t const warps = block.warps(), first = interleaving().below(warps);
  bool progress = false;
  for (std::uint32_t k = 0; k < warps; ++k) progress |= run_warp(block, (first + k) % warps);
  if (block.running == 0) return true;
  progress |= finish_barriers(block);
  if (!progress) {
    for (std::uint32_t warp = 0; warp < warps; ++warp) progress |= finish_warp_instructions(block, warp, true);
  }
  if (!progress) throw_deadlock(block);
  return false;
}

// Prepares a block. Its registers, local and shared memory have arbitrary contents.
void begin_block(Block& block, Function const& kernel, LaunchSize const& size, std::uint8_t* parameters,
                 std::uint32_t number) {
  auto const& [grid, threads, dynamic_shared_bytes] = size;
  block.function = &kernel;
  block.grid = grid;
  block.size = threads;
  block.number = number;
  block.position = {number % grid[0], number / grid[0] % grid[1], number / grid[0] / grid[1]};
  block.parameters = parameters;
  block.dynamic_shared_bytes = dynamic_shared_bytes;
  block.instructions = 0;
  block.shared.assign(static_cast<std::size_t>(kernel.dynamic_shared_offset) + dynamic_shared_bytes, kUnwrittenByte);
  std::size_t const registers = static_cast<std::size_t>(kernel.registers) + kernel.constants.size();
  std::size_t const frame_lines = lines_for(static_cast<std::size_t>(kernel.frame_bytes));
  std::size_t const lines = frame_lines + lines_for(registers * sizeof(Register));
  std::uint32_t const count = threads[0] * threads[1] * threads[2];
  if (block.storage.size() < lines * count) {
    Line unwritten;
    unwritten.bytes.fill(kUnwrittenByte);
    block.storage.resize(lines * count, unwritten);
  }
  block.threads.resize(count);
  block.running = count;
  for (std::uint32_t k = 0; k < count; ++k) {
    Thread& thread = block.threads[k];
    thread = {};
    Line* const storage = block.storage.data() + lines * k;
    thread.frame = storage->bytes.data();
    thread.registers = reinterpret_cast<Register*>(storage + frame_lines);
    thread.parameters = parameters;
    thread.function = &kernel;
    thread.number = k;
    thread.position = {k % threads[0], k / threads[0] % threads[1], k / threads[0] / threads[1]};
    thread.block = &block;
    std::copy(kernel.constants.begin(), kernel.constants.end(), thread.registers + kernel.registers);
  }
}

// Blocks that are resident at the same time, and their counters. They are kept for the next launch.
struct Resident {
  Block block;
  AccessCounter counter;
};

class Launch {
 public:
  Launch(Function const& kernel, LaunchSize const& size, std::uint8_t* parameters, KernelCounts& counts)
      : kernel_(kernel),
        size_(size),
        parameters_(parameters),
        counts_(counts),
        blocks_(std::uint64_t{size.grid[0]} * size.grid[1] * size.grid[2]) {}

  void run() {
    static std::vector<std::unique_ptr<Resident>> resident;
    while (resident.size() < static_cast<std::size_t>(options().resident)) {
      resident.push_back(std::make_unique<Resident>());
    }
    std::vector<Resident*> idle, active;
    for (auto const& one : resident) idle.push_back(one.get());
    while (begun_ < blocks_ || !active.empty()) {
      for (; begun_ < blocks_ && !idle.empty(); idle.pop_back()) {
        begin(*idle.back());
        active.push_back(idle.back());
      }
      std::size_t const at = interleaving().below(active.size());
      if (!run_block(active[at]->block)) {
        if (!interleaving().is_random()) std::rotate(active.begin(), active.begin() + 1, active.end());
        continue;
      }
      end(*active[at]);
      idle.push_back(active[at]);
      active.erase(active.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ++counts_.launches;
    counts_.blocks += blocks_;
  }

 private:
  void begin(Resident& resident) {
    begin_block(resident.block, kernel_, size_, parameters_, static_cast<std::uint32_t>(begun_++));
    resident.block.counter = options().counts ? &resident.counter : nullptr;
    if (options().counts) resident.counter.begin(resident.block.running);
  }
  void end(Resident& resident) {
    counts_.instructions += resident.block.instructions;
    if (!options().counts) return;
    resident.counter.end(counts_);
    for (Thread const& thread : resident.block.threads) {
      counts_.exposed_loads = std::max(counts_.exposed_loads, thread.exposed.count());
    }
  }

  Function const& kernel_;
  LaunchSize const size_;
  std::uint8_t* const parameters_;
  KernelCounts& counts_;
  std::uint64_t const blocks_;
  std::uint64_t begun_ = 0;
};

}  // namespace

void launch(Function const& kernel, LaunchSize const& size, std::uint8_t* parameters, KernelCounts& counts) {
  Launch(kernel, size, parameters, counts).run();
}

}  // namespace gpups::emulator
