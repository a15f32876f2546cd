// SPDX-License-Identifier: Apache-2.0
// Windows of threads of one process: the calling thread copies the bytes of a put.
#include <atomic>
#include <cstring>
#include <new>

#include "comm/onesided/window.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

struct alignas(64) Line {
  std::uint64_t words[8] = {};
};

struct Shared {
  Shared(int ranks, std::size_t window_bytes)
      : bytes(window_bytes),
        memory(static_cast<std::size_t>(ranks), std::vector<Line>(window_bytes / sizeof(Line) + 1)),
        notifications(memory.size() * memory.size()) {}
  std::size_t bytes;
  std::vector<std::vector<Line>> memory;                  // by rank
  std::vector<std::atomic<std::uint64_t>> notifications;  // by receiver and sender
};

class Local final : public Window {
 public:
  Local(Rank me, std::shared_ptr<Shared> shared) : me_(me), shared_(std::move(shared)) {}

  int size() const override { return static_cast<int>(shared_->memory.size()); }
  std::span<std::byte> memory() override { return {reinterpret_cast<std::byte*>(words(me_)), shared_->bytes}; }

  bool put(Rank to, std::size_t offset, std::span<std::byte const> data) override {
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    GPUPS_ASSERT(offset % kWord == 0 && data.size() % kWord == 0 && offset + data.size() <= shared_->bytes);
    std::uint64_t* const into = words(to) + offset / kWord;
    for (std::size_t i = 0; i < data.size() / kWord; ++i) {
      std::uint64_t word;
      std::memcpy(&word, data.data() + i * kWord, kWord);
      std::atomic_ref(into[i]).store(word, std::memory_order_relaxed);
    }
    return true;
  }
  bool notify(Rank to, std::uint64_t value) override {
    notification(to, me_).store(value, std::memory_order_release);
    return true;
  }
  std::uint64_t notified(Rank from) const override { return notification(me_, from).load(std::memory_order_acquire); }
  bool progress() override { return false; }
  bool idle() const override { return true; }

 private:
  std::uint64_t* words(Rank rank) const { return shared_->memory[number(rank)].front().words; }
  std::atomic<std::uint64_t>& notification(Rank to, Rank from) const {
    return shared_->notifications[number(to) * shared_->memory.size() + number(from)];
  }

  Rank const me_;
  std::shared_ptr<Shared> const shared_;
};

}  // namespace

std::vector<std::unique_ptr<Window>> make_local_windows(int ranks, std::size_t bytes) {
  auto const shared = std::make_shared<Shared>(ranks, bytes);
  std::vector<std::unique_ptr<Window>> ends;
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) {
    ends.push_back(std::make_unique<Local>(Rank{rank}, shared));
  }
  return ends;
}

}  // namespace gpups::comm
