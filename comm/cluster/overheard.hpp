// SPDX-License-Identifier: Apache-2.0
// A watch that lets somebody else hear, too, that a rank is lost.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "comm/cluster/watch.hpp"

namespace gpups::comm {

class Overheard final : public Watch {
 public:
  explicit Overheard(std::unique_ptr<Watch> watch) : watch_(std::move(watch)) {}

  // Called once, from any thread, when the first rank is lost; at once if one is.
  using OnLost = std::function<void(Rank rank, std::string const& why)>;
  void on_lost(OnLost on_lost) {
    std::lock_guard lock(mutex_);
    on_lost_ = std::move(on_lost);
    if (first_ && on_lost_) on_lost_(first_->first, first_->second);
  }

  void listen(Events events) override {
    if (!events.lost) return watch_->listen(std::move(events));
    watch_->listen({.lost =
                        [this, lost = std::move(events.lost)](Rank rank, std::string const& why) {
                          overhear(rank, why);  // first: the other may never come back
                          lost(rank, why);
                        },
                    .left = std::move(events.left)});
  }
  void leave(Rank at_fault, std::string const& why) override { watch_->leave(at_fault, why); }
  bool wait_all_gone(double timeout_s) override { return watch_->wait_all_gone(timeout_s); }

 private:
  void overhear(Rank rank, std::string const& why) {
    std::lock_guard lock(mutex_);
    if (first_) return;
    first_.emplace(rank, why);
    if (on_lost_) on_lost_(rank, why);
  }

  std::mutex mutex_;  // of the two below
  std::optional<std::pair<Rank, std::string>> first_;
  OnLost on_lost_;
  std::unique_ptr<Watch> const watch_;
};

}  // namespace gpups::comm
