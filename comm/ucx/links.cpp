// SPDX-License-Identifier: Apache-2.0
#include "comm/ucx/links.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace gpups::comm {
namespace {

class Links {
 public:
  explicit Links(int ranks) {
    constexpr std::uint64_t kSession = 1;
    std::vector<UcxLink::Peer> peers;
    for (int rank = 0; rank < ranks; ++rank) {
      links_.push_back(std::make_unique<UcxLink>());
      peers.push_back({links_.back()->address(), true, {}});
    }
    for (std::uint32_t rank = 0; rank < links_.size(); ++rank) {
      for (std::uint32_t other = 0; other < links_.size(); ++other) peers[other].key = {rank + other, rank * other};
      links_[rank]->connect(Rank{rank}, kSession, peers);
    }
    thread_ = std::thread([this] { drive(); });
  }
  // UCX stays to the end of the process, its thread too, where something of a link is still under way.
  ~Links() {
    auto const end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
    while (!idle() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    over_ = true;
    thread_.join();
  }
  UcxLink* link(std::size_t rank) const { return links_[rank].get(); }

 private:
  bool idle() const {
    return std::all_of(links_.begin(), links_.end(), [](auto const& link) {
      std::lock_guard lock(link->mutex());
      return link->open() == 0;
    });
  }
  void drive() {
    while (!over_) {
      for (auto const& link : links_) link->progress();
      std::this_thread::yield();
    }
  }

  std::vector<std::unique_ptr<UcxLink>> links_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

}  // namespace

std::vector<std::shared_ptr<UcxLink>> make_ucx_links(int ranks) {
  auto const all = std::make_shared<Links>(ranks);
  std::vector<std::shared_ptr<UcxLink>> links;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) links.emplace_back(all, all->link(rank));
  return links;
}

}  // namespace gpups::comm
