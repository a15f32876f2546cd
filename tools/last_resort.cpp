// SPDX-License-Identifier: Apache-2.0
#include "tools/last_resort.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "comm/group_impl.hpp"

namespace gpups::tools {
namespace {

constexpr std::chrono::milliseconds kPatience{1200};

}  // namespace

LastResort::LastResort(Group const& group, std::function<void(std::string const&)> end)
    : group_(group), end_(std::move(end)) {
  group_.impl().on_lost([this](Rank rank, std::string const& why) {
    std::string const text = fmt::format(
        "rank {} is lost ({}; rank {} was busy with work of its own): look at that rank's output, then go on from the "
        "last checkpoint",
        number(rank), why, number(group_.rank()));
    std::lock_guard lock(mutex_);
    if (!over_) thread_ = std::thread([this, text] { wait_and_end(text); });
  });
}

LastResort::~LastResort() {
  group_.impl().on_lost(nullptr);
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void LastResort::wait_and_end(std::string const& text) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kPatience, [this] { return over_; })) end_(text);
}

}  // namespace gpups::tools
