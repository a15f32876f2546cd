// SPDX-License-Identifier: Apache-2.0
#include "comm/ucx/local_workers.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace gpups::comm {
namespace {

class LocalWorkers {
 public:
  explicit LocalWorkers(int ranks) {
    constexpr std::uint64_t kSession = 1;
    std::vector<UcxWorker::PeerAddress> peers;
    for (int rank = 0; rank < ranks; ++rank) {
      workers_.push_back(std::make_unique<UcxWorker>());
      peers.push_back({workers_.back()->address(), true, {}});
    }
    for (std::uint32_t rank = 0; rank < workers_.size(); ++rank) {
      for (std::uint32_t other = 0; other < workers_.size(); ++other) peers[other].key = {rank + other, rank * other};
      workers_[rank]->connect(Rank{rank}, kSession, peers);
    }
    thread_ = std::thread([this] { run_progress(); });
  }
  // Waits a moment for pending operations. Workers with pending operations stay until the end of the process.
  ~LocalWorkers() {
    auto const end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (!idle() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    stopping_ = true;
    thread_.join();
  }
  UcxWorker* worker(std::size_t rank) const { return workers_[rank].get(); }

 private:
  bool idle() const {
    return std::all_of(workers_.begin(), workers_.end(), [](auto const& worker) {
      std::lock_guard lock(worker->mutex());
      return worker->open() == 0;
    });
  }
  void run_progress() {
    while (!stopping_) {
      for (auto const& worker : workers_) worker->progress();
      std::this_thread::yield();
    }
  }

  std::vector<std::unique_ptr<UcxWorker>> workers_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace

std::vector<std::shared_ptr<UcxWorker>> make_local_ucx_workers(int ranks) {
  auto const all = std::make_shared<LocalWorkers>(ranks);
  std::vector<std::shared_ptr<UcxWorker>> workers;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank)
    workers.emplace_back(all, all->worker(rank));
  return workers;
}

}  // namespace gpups::comm
