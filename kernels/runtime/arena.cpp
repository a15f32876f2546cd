// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/arena.hpp"

#include <sched.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/runtime/stream_impl.hpp"
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

// Returns the number of cores that the calling thread may run on now. TBB's number is not used: it is the number that
// the process had when it first used TBB.
int allowed_threads() {
  // The call fails with EINVAL if the set is too small for all cores that the machine could have.
  for (std::size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<cpu_set_t> allowed(sets);
    std::size_t const bytes = sets * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, allowed.data()) == 0) return std::max(1, CPU_COUNT_S(bytes, allowed.data()));
    if (errno != EINVAL) break;
  }
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

// Returns the bytes of the private cache of a core. The shared cache is not counted: on most machines its part for a
// core is smaller, and if it is larger, other programs use it too.
std::size_t core_cache_bytes() {
  constexpr long kLeast = 256 << 10;  // if the system does not report it
  long const bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return static_cast<std::size_t>(bytes > kLeast ? bytes : kLeast);
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

// libtbb is not built with the thread sanitizer, which therefore cannot see how TBB orders the work of its threads, and
// reports races nearly everywhere. Plain threads run the blocks instead, slowly.
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

bool exceeds_caches(Arena const& arena, std::size_t bytes) {
  constexpr std::size_t kTimes = 8;  // measured: below it, ordinary stores are as fast, and the result stays in cache
  static std::size_t const core_cache = core_cache_bytes();
  return bytes > kTimes * core_cache * static_cast<std::size_t>(arena.threads());
}

namespace {

// Keeps the exception of the smallest index.
class FirstException {
 public:
  template <class F>
  void guard(std::size_t i, F call) {
    try {
      call();
    } catch (...) {
      std::lock_guard const lock(mutex_);
      if (thrown_ == nullptr || i < number_) {
        thrown_ = std::current_exception();
        number_ = i;
      }
    }
  }
  void rethrow() const {
    if (thrown_ != nullptr) std::rethrow_exception(thrown_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr thrown_;
  std::size_t number_ = 0;
};

}  // namespace

void parallel_for(Stream& stream, std::size_t n, FunctionRef<void(Stream& part, std::size_t i)> body) {
  FirstException first;
  if (!stream.device().is_host()) {
    for (std::size_t i = 0; i < n; ++i) first.guard(i, [&] { body(stream, i); });
  } else {
    stream.impl().counters->count_launch();
    stream.impl().arena->blocks(n, [&](std::size_t i) {
      first.guard(i, [&] {
        Stream part(Device::host(), 1);
        body(part, i);
      });
    });
  }
  first.rethrow();
}

}  // namespace gpups::kernels
