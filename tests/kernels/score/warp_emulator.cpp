// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/score/warp_emulator.hpp"

#include <fmt/core.h>
#include <ucontext.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#else
// The address sanitizer must be notified of each switch of stacks.
inline void __sanitizer_start_switch_fiber(void**, void const*, std::size_t) {}
inline void __sanitizer_finish_switch_fiber(void*, void const**, std::size_t*) {}
#endif

namespace gpups::test {

// The threads of one run. The scheduler runs on the caller's stack.
class WarpEmulator::Fibers {
 public:
  Fibers(WarpEmulator* emulator, Body const& body) : body_(body) {
    for (unsigned i = 0; i < 32; ++i) {
      auto& thread = threads_[i];
      thread.fibers = this, thread.warp = std::unique_ptr<EmulatedWarp>(new EmulatedWarp(emulator, i));
      thread.stack = std::make_unique<std::byte[]>(kStackBytes);
      getcontext(&thread.context);
      thread.context.uc_stack.ss_sp = thread.stack.get();
      thread.context.uc_stack.ss_size = kStackBytes;
      auto const address = reinterpret_cast<std::uintptr_t>(&thread);
      makecontext(&thread.context, reinterpret_cast<void (*)()>(&Fibers::enter), 2,
                  static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
    }
  }

  void run(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<unsigned> ready(32);
    for (unsigned i = 0; i < 32; ++i) ready[i] = i;
    while (!ready.empty()) {
      std::shuffle(ready.begin(), ready.end(), random);
      for (unsigned thread : ready) resume(threads_[thread]);
      if (failure_) std::rethrow_exception(failure_);
      ready = release();
    }
    for (Thread const& thread : threads_) {
      if (!thread.ended) throw std::logic_error(where_all_are());
    }
  }

  EmulatedWarp::Exchanged const& exchange(unsigned number, char const* call, unsigned threads, std::uint64_t value) {
    Thread& thread = threads_[number];
    thread.call = call, thread.waits_for = threads, thread.value = value;
    switch_stack(thread.context, scheduler_, scheduler_stack_, scheduler_bytes_, false);
    return thread.exchanged;
  }

 private:
  static constexpr std::size_t kStackBytes = std::size_t{256} << 10;

  struct Thread {
    Fibers* fibers;
    std::unique_ptr<EmulatedWarp> warp;
    std::unique_ptr<std::byte[]> stack;
    ucontext_t context;
    char const* call = nullptr;  // the call in which it waits
    unsigned waits_for = 0;
    std::uint64_t value = 0;
    EmulatedWarp::Exchanged exchanged{};
    bool ended = false;
  };

  static void enter(unsigned high, unsigned low) {
    auto* const thread = reinterpret_cast<Thread*>(std::uintptr_t{high} << 32 | low);
    thread->fibers->run_body(*thread);
  }
  void run_body(Thread& thread) {
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack_, &scheduler_bytes_);
    try {
      body_(*thread.warp, static_cast<unsigned>(&thread - threads_.data()));
    } catch (...) {
      failure_ = std::current_exception();
    }
    thread.ended = true;
    switch_stack(thread.context, scheduler_, scheduler_stack_, scheduler_bytes_, true);
  }
  void resume(Thread& thread) { switch_stack(scheduler_, thread.context, thread.stack.get(), kStackBytes, false); }
  static void switch_stack(ucontext_t& from, ucontext_t& to, void const* stack, std::size_t bytes, bool for_good) {
    void* fake_stack = nullptr;
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_stack, stack, bytes);
    swapcontext(&from, &to);
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
  }

  // Returns the threads that can continue, because all threads they wait for have made the same call. Each of them gets
  // the values of all threads.
  std::vector<unsigned> release() {
    std::vector<unsigned> released;
    for (unsigned i = 0; i < 32; ++i) {
      if (threads_[i].call != nullptr && !threads_[i].ended && is_complete(i)) released.push_back(i);
    }
    for (unsigned i : released) {
      Thread& thread = threads_[i];
      thread.exchanged.threads = thread.waits_for;
      for (unsigned other = 0; other < 32; ++other) thread.exchanged.values[other] = threads_[other].value;
    }
    for (unsigned i : released) threads_[i].call = nullptr;
    return released;
  }
  bool is_complete(unsigned number) const {
    Thread const& thread = threads_[number];
    if ((thread.waits_for >> number & 1) == 0) return false;
    for (unsigned i = 0; i < 32; ++i) {
      if ((thread.waits_for >> i & 1) == 0) continue;
      Thread const& other = threads_[i];
      if (other.call == nullptr || other.waits_for != thread.waits_for) return false;
      if (std::string_view(other.call) != thread.call) return false;
    }
    return true;
  }

  std::string where_all_are() const {
    std::string text = "threads of a warp wait forever (a GPU would hang or read undefined values):";
    for (unsigned i = 0; i < 32; ++i) {
      Thread const& thread = threads_[i];
      text += thread.ended ? fmt::format(" {} has ended,", i)
                           : fmt::format(" {} waits in {} for {:#010x},", i, thread.call, thread.waits_for);
    }
    text.back() = '.';
    return text;
  }

  Body const& body_;
  std::array<Thread, 32> threads_;
  ucontext_t scheduler_;
  void const* scheduler_stack_ = nullptr;
  std::size_t scheduler_bytes_ = 0;
  std::exception_ptr failure_;
};

void WarpEmulator::run(Body const& body) {
  Fibers fibers(this, body);
  fibers_ = &fibers;
  fibers.run(seed_);
}

EmulatedWarp::Exchanged const& EmulatedWarp::exchange(char const* call, unsigned threads, std::uint64_t value) const {
  return emulator_->fibers_->exchange(thread_, call, threads, value);
}

std::uint64_t EmulatedWarp::read_bits(Exchanged const& exchanged, unsigned from) const {
  if ((exchanged.threads >> from & 1) == 0) {
    throw std::logic_error(
        fmt::format("thread {} reads from thread {}, which is not of {:#010x} (a GPU would read an undefined value)",
                    thread_, from, exchanged.threads));
  }
  return exchanged.values[from];
}

unsigned EmulatedWarp::those_with(std::uint64_t value, Exchanged const& exchanged) {
  unsigned found = 0;
  for (unsigned i = 0; i < 32; ++i) {
    if ((exchanged.threads >> i & 1) != 0 && exchanged.values[i] == value) found |= 1U << i;
  }
  return found;
}

}  // namespace gpups::test
