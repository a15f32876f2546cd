// SPDX-License-Identifier: Apache-2.0
// Memory of arrays. Freed blocks are kept in a list of their size class and used again: every step needs batches of
// nearly the same sizes, and new pages from the operating system cost more than the work on them.
//
// Queued work may still use a freed block of a GPU. Its user (memory_scope.hpp) may use it again at once, since its
// next work follows on the same stream. Others, such as another rank on the same GPU, get it when the work that was
// queued by then is done on all streams.
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/cpu_pause.hpp"
#include "kernels/runtime/cuda_runtime.hpp"
#include "kernels/runtime/host_memory.hpp"
#include "kernels/runtime/memory_scope.hpp"
#include "kernels/runtime/stream_impl.hpp"

namespace gpups::memory {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

// Returns the bytes of the size class of `bytes`. There are four classes for each power of two, so at most a quarter
// more than `bytes` is allocated.
std::size_t class_bytes(std::size_t bytes) {
#ifdef GPUPS_EMULATED
  return std::max<std::size_t>(bytes, 1);  // an emulated device finds every access past the end
#else
  std::size_t const least = 64;  // a cache line
  if (bytes <= least) return least;
  std::size_t const step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
#endif
}

// Locks a mutex. Spins at first: on the host the mutex is held for tens of nanoseconds, and sleeping takes a hundred
// times as long.
class ShortLock {
 public:
  explicit ShortLock(std::mutex& mutex) : lock_(mutex, std::try_to_lock) {
    for (int tries = 0; !lock_ && tries < kTries; ++tries) {
      kernels::cpu_pause();
      lock_.try_lock();
    }
    if (!lock_) lock_.lock();
  }

 private:
  static constexpr int kTries = 100;
  std::unique_lock<std::mutex> lock_;
};

// The memory of one device.
class Pool {
 public:
  explicit Pool(Device device) : device_(device) {}

  void* allocate(std::size_t bytes) {
    std::size_t const size = class_bytes(bytes);
    if (void* const kept = take_kept(size)) return kept;
    std::size_t const too_many = bytes_to_give_back(size);
    ShortLock const lock(mutex_);
    trim(too_many);
    void* block = fresh(size);
    if (block == nullptr) {
      trim(usage_.bytes_cached);
      block = fresh(size);
      GPUPS_REQUIRE(block != nullptr,
                    "no memory for {} bytes on {} ({} bytes are in use): use smaller batches, sums or tables, "
                    "a smaller capacity_rows or dictionary_keys, or more {}",
                    size, to_string(device_), usage_.bytes, device_.is_host() ? "machines" : "GPUs");
    }
    count(size);
    return block;
  }

  void release(void* block, std::size_t bytes) noexcept {
    std::size_t const size = class_bytes(bytes);
    ShortLock const lock(mutex_);
    usage_.bytes -= size;
    try {
      free_[size].push_back({block, kernels::memory_user(), age_});
      usage_.bytes_cached += size;
    } catch (std::bad_alloc const&) {
      give_back(block);
    }
  }

  Usage usage() {
    ShortLock const lock(mutex_);
    return usage_;
  }

  void release_kept() noexcept {
    ShortLock const lock(mutex_);
    trim(usage_.bytes_cached);
  }

 private:
  struct KeptBlock {
    void* block;
    kernels::MemoryUser freed_by;
    std::uint64_t age;  // age_ when it was freed
  };

  // Returns a kept block of this size class, or null if there is none that this user may have.
  void* take_kept(std::size_t size) {
    ShortLock const lock(mutex_);
    auto& blocks = free_[size];
    auto const usable = [&, user = kernels::memory_user()](KeptBlock const& kept) {
      return device_.is_host() || kept.freed_by == user || kept.age < unused_before_;
    };
    auto found = std::find_if(blocks.rbegin(), blocks.rend(), usable);
    if (found == blocks.rend() && !blocks.empty() && advance_age()) {
      found = std::find_if(blocks.rbegin(), blocks.rend(), usable);
    }
    if (found == blocks.rend()) return nullptr;
    void* const block = found->block;
    blocks.erase(std::next(found).base());
    usage_.bytes_cached -= size;
    count(size);
    return block;
  }

  // Begins a new age unless all work that was queued before the last one is still awaited. Returns whether that work is
  // done, so that any user may have the blocks that were freed before. Does not block.
  bool advance_age() {
    if (!queued_) {
      queued_.emplace(device_);
      ++age_;
    }
    if (!queued_->done()) return false;
    queued_.reset();
    unused_before_ = age_;
    return true;
  }

  void count(std::size_t size) {
    usage_.bytes += size;
    usage_.bytes_peak = std::max(usage_.bytes_peak, usage_.bytes);
  }

  void* fresh(std::size_t size) {
    if (!device_.is_host()) return cuda::allocate(device_.index, size);
    bool const huge = size >= kHugePage;
    std::size_t const align = huge ? kHugePage : 64;
    void* const block = std::aligned_alloc(align, (size + align - 1) / align * align);
    if (huge && block != nullptr) madvise(block, size, MADV_HUGEPAGE);
    return block;
  }

  // Returns how many kept bytes to free before a block is allocated on the host. A GPU reports when it has no more
  // memory; Linux provides more memory than there is, and kills a process later. The check pays for large blocks only.
  // It takes too long to be made under the lock.
  std::size_t bytes_to_give_back(std::size_t size) const {
    if (!device_.is_host() || size < kHugePage) return 0;
    return kernels::memory_shortage(kernels::host_memory(), size);
  }

  void give_back(void* block) noexcept { device_.is_host() ? std::free(block) : cuda::release(device_.index, block); }

  // Frees kept blocks, largest first, until `bytes` bytes are freed or no block is left.
  void trim(std::size_t bytes) {
    std::size_t const left = usage_.bytes_cached - std::min(usage_.bytes_cached, bytes);
    for (auto kept = free_.rbegin(); kept != free_.rend() && usage_.bytes_cached > left; ++kept) {
      auto& [size, blocks] = *kept;
      while (!blocks.empty() && usage_.bytes_cached > left) {
        give_back(blocks.back().block);
        blocks.pop_back();
        usage_.bytes_cached -= size;
      }
    }
  }

  Device device_;
  std::mutex mutex_;
  std::map<std::size_t, std::vector<KeptBlock>> free_;
  std::optional<kernels::QueuedWork> queued_;  // of a GPU: what may use blocks that were freed before age_
  std::uint64_t age_ = 1, unused_before_ = 0;  // no work uses blocks with an age below unused_before_
  Usage usage_{};
};

// Returns the pool of a device. Pools are never destroyed, because arrays of any lifetime return their memory to them.
Pool& pool(Device device) {
  static std::mutex mutex;
  static auto& pools = *new std::map<int, Pool*>;
  static Pool& host = *new Pool(Device::host());
  if (device.is_host()) return host;
  std::lock_guard lock(mutex);
  auto& entry = pools[device.index];
  if (entry == nullptr) entry = new Pool(device);
  return *entry;
}

}  // namespace

void* allocate(Device device, std::size_t bytes) { return pool(device).allocate(bytes); }
void release(Device device, void* block, std::size_t bytes) noexcept { pool(device).release(block, bytes); }
Usage usage(Device device) { return pool(device).usage(); }

void copy(Stream& stream, void* to, Device to_device, void const* from, Device from_device, std::size_t bytes) {
  if (bytes == 0) return;
  GPUPS_REQUIRE(to != nullptr && from != nullptr,
                "{} bytes are to be copied {} a null address (there is no memory): give the address of their memory",
                bytes, to == nullptr ? "to" : "from");
  if (!to_device.is_host() || !from_device.is_host()) {
    Device const device = to_device.is_host() ? from_device : to_device;
    if (to_device.is_host() || from_device.is_host()) stream.impl().counters->count_host_copy(bytes);
    if (stream.device().is_host()) {
      stream.impl().counters->count_wait();
      Stream own(device);
      cuda::copy(device.index, own.native(), to, from, bytes);
      own.wait();
    } else {
      int const own = stream.device().index;
      if (!to_device.is_host() && !from_device.is_host()) {
        cuda::enable_peer_access(own, own == to_device.index ? from_device.index : to_device.index);
      }
      cuda::copy(own, stream.native(), to, from, bytes);
    }
    return;
  }
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  stream.impl().arena->blocks((bytes + kBlock - 1) / kBlock, [&](std::size_t block) {
    std::size_t const first = block * kBlock;
    std::memcpy(static_cast<char*>(to) + first, static_cast<char const*>(from) + first,
                std::min(kBlock, bytes - first));
  });
}

// A copy to memory that is not pinned blocks the driver and the other streams of the thread. Large ones do not fit the
// pinned memory of a stream.
void read_back(Stream& stream, void* to, void const* from, Device from_device, std::size_t bytes) {
  constexpr std::size_t kPinnedMax = std::size_t{4} << 20;
  bool const is_pinned = !stream.device().is_host() && bytes > 0 && bytes <= kPinnedMax;
  void* const here = is_pinned ? stream.impl().uploads.place(stream.device().index, bytes) : to;
  copy(stream, here, Device::host(), from, from_device, bytes);
  stream.wait();
  if (is_pinned) std::memcpy(to, here, bytes);
}

void fill_bytes(Stream& stream, void* to, unsigned char byte, std::size_t bytes) {
  if (bytes == 0) return;
  if (stream.device().is_host()) {
    std::memset(to, byte, bytes);
  } else {
    cuda::fill_bytes(stream.device().index, stream.native(), to, byte, bytes);
  }
}

}  // namespace gpups::memory

void gpups::kernels::release_kept_memory(Device device) noexcept { gpups::memory::pool(device).release_kept(); }
