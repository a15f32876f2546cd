// SPDX-License-Identifier: Apache-2.0
#include "kernels/arena.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

#ifndef __SANITIZE_THREAD__
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#else
#include <atomic>
#include <semaphore>
#endif

namespace gpups::kernels {
namespace {

// Cores that the calling thread may run on now. Not TBB's number: that is what the process had when TBB was first used.
int allowed_threads() {
  // The call fails where the set has no room for all cores that the machine could have.
  for (std::size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> allowed(sets);
    std::size_t const bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, allowed.data()) == 0) return std::max(1, CPU_COUNT_S(bytes, allowed.data()));
    if (errno != EINVAL) break;
  }
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace

#ifndef __SANITIZE_THREAD__

struct Arena::Impl {
  explicit Impl(int count) : arena(count), threads(count) {}
  void blocks(std::size_t blocks, FunctionRef<void(std::size_t)> body) {
    arena.execute([&] {
      tbb::parallel_for(
          tbb::blocked_range<std::size_t>(0, blocks, 1),
          [&](auto const& range) {
            for (std::size_t b = range.begin(); b != range.end(); ++b) body(b);
          },
          tbb::auto_partitioner{});
    });
  }

  tbb::task_arena arena;
  int threads;
};

#else

// The thread sanitizer cannot see how libtbb, which is not built with it, orders the work of its threads, and takes
// nearly everything for a race. Plain threads do the work for it, slowly.
struct Arena::Impl {
  explicit Impl(int count) : threads(count), idle(count - 1) {}
  void blocks(std::size_t blocks, FunctionRef<void(std::size_t)> body) {
    std::atomic<std::size_t> next = 0;
    auto const work = [&] {
      for (std::size_t b = next++; b < blocks; b = next++) body(b);
    };
    std::vector<std::thread> helpers;
    while (helpers.size() + 1 < blocks && idle.try_acquire()) helpers.emplace_back(work);
    work();
    for (std::thread& helper : helpers) helper.join();
    if (!helpers.empty()) idle.release(static_cast<std::ptrdiff_t>(helpers.size()));
  }

  int threads;
  std::counting_semaphore<> idle;
};

#endif

Arena::Arena(int threads) : impl_(std::make_unique<Impl>(threads > 0 ? threads : allowed_threads())) {}
Arena::~Arena() = default;

int Arena::threads() const { return impl_->threads; }

void Arena::blocks(std::size_t blocks, FunctionRef<void(std::size_t)> body) {
  if (blocks <= 1 || impl_->threads == 1) {
    for (std::size_t b = 0; b < blocks; ++b) body(b);
  } else {
    impl_->blocks(blocks, body);
  }
}

}  // namespace gpups::kernels
