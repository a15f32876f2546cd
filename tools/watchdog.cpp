// SPDX-License-Identifier: Apache-2.0
#include "tools/watchdog.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "comm/group/group_impl.hpp"
#include "tools/standard_streams.hpp"
#include "trainer/base/stop_signals.hpp"

namespace gpups::tools {

StopAtJoin::StopAtJoin(std::function<void()> clean_up) : clean_up_(std::move(clean_up)), thread_([this] { watch(); }) {}

StopAtJoin::~StopAtJoin() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StopAtJoin::watch() {
  constexpr std::chrono::milliseconds kPollInterval{50};
  std::unique_lock lock(mutex_);
  while (!trainer::StopSignals::received()) {
    if (changed_.wait_for(lock, kPollInterval, [this] { return over_; })) return;
  }
  if (over_) return;
  clean_up_();
  print_error(
      "stopped by a signal before all processes of the job had joined (nothing was trained, so there is nothing to "
      "save): start the job again");
  std::_Exit(2);
}

namespace {

constexpr std::chrono::milliseconds kEndGrace{1200};  // from the loss of a rank to the end of this process

// The text that on_abort() prints. A signal handler has no arguments, and must not allocate.
std::array<char, 2048> lost_text;
std::atomic<std::size_t> lost_bytes{0};

// Handles abort(). The reason may be a lost rank, which the failure detector reports a little later.
void on_abort(int) {
  constexpr int kPolls = 20;
  timespec const between{.tv_sec = 0, .tv_nsec = 50'000'000};
  for (int i = 0; i < kPolls && lost_bytes == 0; ++i) ::nanosleep(&between, nullptr);
  if (lost_bytes == 0) return;
  [[maybe_unused]] auto const written = ::write(STDERR_FILENO, lost_text.data(), lost_bytes);
  ::_exit(2);
}

}  // namespace

Watchdog::Watchdog(Group const& group) : group_(group) {
  struct sigaction action {};
  action.sa_handler = on_abort;
  sigaction(SIGABRT, &action, &before_);
  group_.impl().on_lost([this](Rank rank, std::string const& why) {
    std::string const text = fmt::format(
        "rank {} is lost ({}; rank {} did not end by itself): see the output of the lost rank, then continue from the "
        "last checkpoint",
        number(rank), why, number(group_.rank()));
    std::string line = error_line(text) + "\n";
    line.resize(std::min(line.size(), lost_text.size()));
    std::copy(line.begin(), line.end(), lost_text.begin());
    lost_bytes = line.size();
    std::lock_guard lock(mutex_);
    if (!over_) thread_ = std::thread([this, text] { wait_and_end(text); });
  });
}

Watchdog::~Watchdog() {
  group_.impl().on_lost(nullptr);
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
  sigaction(SIGABRT, &before_, nullptr);
  lost_bytes = 0;
}

void Watchdog::wait_and_end(std::string const& text) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, kEndGrace, [this] { return over_; })) return;
  print_error(text);
  std::_Exit(2);
}

}  // namespace gpups::tools
