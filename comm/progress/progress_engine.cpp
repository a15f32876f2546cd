// SPDX-License-Identifier: Apache-2.0
#include "comm/progress/progress_engine.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "comm/base/peer_error.hpp"
#include "gpups/error.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

// Returns `thrown` itself, except for a std::exception that is no Error: then returns an Error with its text.
std::exception_ptr only_errors(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (Error const&) {
    return thrown;
  } catch (std::bad_alloc const&) {
    return std::make_exception_ptr(
        Error("the host is out of memory (this rank cannot continue): use smaller tables or batches, or more ranks "
              "on more machines"));
  } catch (std::exception const& bare) {
    return std::make_exception_ptr(
        Error(fmt::format("an internal error ended the protocol: {} (the tables of this rank may be wrong): restart "
                          "from the last checkpoint, and report this error",
                          bare.what())));
  } catch (...) {
    return thrown;
  }
}

constexpr ChannelId kAll[] = {ChannelId::kStore, ChannelId::kCollectives};
static_assert(std::size(kAll) == kChannels);

constexpr std::size_t index(ChannelId id) { return static_cast<std::size_t>(id); }

}  // namespace

ProgressEngine::ProgressEngine(Transport& transport, std::unique_ptr<BulkTransport>& bulk, ProgressDriver& driver)
    : transport_(transport),
      bulk_(bulk),
      driver_(driver),
      me_(transport.rank()),
      messenger_(transport, *bulk),
      exceptions_at_start_(std::uncaught_exceptions()) {}

ProgressEngine::~ProgressEngine() {
  if (started_) abandon("its Group has ended");
}

void ProgressEngine::start() {
  std::lock_guard lock(starting_);
  if (started_ || abandoned_) return;
  auto const wake = [this] { driver_.wake(); };
  transport_.on_arrival(wake);
  bulk_->on_arrival(wake);
  driver_.start([this] { return progress(); });
  started_ = true;
}

void ProgressEngine::post(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    posts_.push_back(std::move(task));
  }
  driver_.wake();
}

void ProgressEngine::post_soon(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    posts_.push_back(std::move(task));
  }
  driver_.progress_soon();
}

bool ProgressEngine::has_posts() {
  std::lock_guard lock(mutex_);
  return !posts_.empty();
}

bool ProgressEngine::take_posts() {
  std::vector<std::function<void()>> posts;
  {
    std::lock_guard lock(mutex_);
    posts.swap(posts_);
  }
  for (auto const& post : posts) post();
  return !posts.empty();
}

bool ProgressEngine::progress() {
  std::lock_guard progressing(progressing_);
  bool did = false;
  auto const each_channel = [this](auto const& call) {
    for (ChannelId const id : kAll) {
      if (Channel* const channel = messenger_.channel(id)) call(*channel);
    }
  };
  try {
    if (failed_) return false;
    each_channel([](Channel& channel) { channel.progress_begins(); });
    did |= take_posts();
    while (messenger_.receive()) did = true;
    did |= messenger_.progress();
    each_channel([&](Channel& channel) { did |= channel.progress(did); });
    if (did) publish();
  } catch (...) {
    fail(std::current_exception());
    return true;
  }
  return did;
}

void ProgressEngine::publish() {
  for (ChannelId const id : kAll) {
    if (!closing_[index(id)] || closed_[index(id)] || !messenger_.idle(id)) continue;
    Channel const* const channel = messenger_.channel(id);
    if (channel != nullptr && !channel->idle()) continue;
    messenger_.close(id);
    closed_[index(id)] = true;
  }
  idle_ = messenger_.idle();
  closed_by_all_ = messenger_.closed_by_all();
}

void ProgressEngine::fail(std::exception_ptr error) noexcept {
  Rank at_fault = me_;
  std::string why = "it failed with an unknown exception";
  try {
    std::rethrow_exception(error);
  } catch (PeerLost const& lost) {
    at_fault = lost.peer();
    why = lost.why().empty() ? fmt::format("rank {} has left", number(at_fault)) : lost.why();
    error = std::make_exception_ptr(PeerError(
        at_fault,
        fmt::format("rank {} is lost ({}; {}): look at that rank's output, then continue from the last checkpoint",
                    number(at_fault), why, slowest().text)));
  } catch (PeerError const& of_peer) {
    at_fault = of_peer.peer();
    why = of_peer.what();
  } catch (std::exception const& own) {
    why = fmt::format("it failed: {}", own.what());
    error = only_errors(error);
  } catch (...) {  // NOLINT: `why` is set above
  }
  {
    std::lock_guard lock(mutex_);
    failure_ = error;
    failed_ = true;
  }
  try {
    transport_.fail(at_fault, why);
  } catch (...) {  // NOLINT: the first error is the one to report
  }
}

void ProgressEngine::throw_if_failed() {
  if (!failed_) return;
  std::lock_guard lock(mutex_);
  std::rethrow_exception(failure_);
}

ProgressEngine::Slowest ProgressEngine::slowest() const {
  std::string doing = "waited for no other rank";
  for (ChannelId const id : kAll) {
    Channel const* const channel = messenger_.channel(id);
    if (channel == nullptr) continue;
    auto const [ranks, what] = channel->pending_peers();
    if (ranks.empty()) {
      if (!what.empty()) doing = what;
      continue;
    }
    std::vector<std::uint32_t> numbers;
    for (Rank rank : ranks) numbers.push_back(number(rank));
    return {ranks.front(), fmt::format("rank {} waited for {} from {} {}", number(me_), what,
                                       numbers.size() == 1 ? "rank" : "ranks", fmt::join(numbers, ", "))};
  }
  return {me_, fmt::format("rank {} {}", number(me_), doing)};
}

std::string ProgressEngine::why_silent(Rank peer) const {
  if (peer == me_) return "the rank may be busy with other work";
  for (ChannelId const id : kAll) {
    Channel const* const channel = messenger_.channel(id);
    std::string call;
    if (channel != nullptr) {
      call = channel->unmatched_call(peer);
    } else if (messenger_.has_early_messages(id, peer)) {  // collectives are open from the beginning
      call = "a function of its Store, and this rank has called none";
    }
    if (!call.empty())
      return fmt::format("rank {} has called {}; all ranks must make the same calls in the same order", number(peer),
                         call);
  }
  return "that rank may hang, or have ended early";
}

void ProgressEngine::wait(std::function<bool()> const& done, WaitLimit const& limit) {
  bool const ended = driver_.wait([&] { return failed_.load() || done(); }, limit.seconds);
  throw_if_failed();
  if (ended) return;
  {
    std::lock_guard progressing(progressing_);
    auto const [rank, text] = slowest();
    fail(std::make_exception_ptr(PeerError(
        rank, fmt::format("{}, and nothing arrived for {} s ({}): look at that rank's output, or allow more time ({}, "
                          "cluster.wait_timeout_s)",
                          text, limit.seconds, why_silent(rank), limit.setting))));
  }
  throw_if_failed();
}

void ProgressEngine::wait_invoke(std::function<void()> const& task) {
  struct Result {
    std::exception_ptr error;
    std::atomic<bool> done = false;
  };
  auto const result = std::make_shared<Result>();
  post([result, &task] {
    try {
      task();
    } catch (...) {
      result->error = only_errors(std::current_exception());
    }
    result->done = true;
  });
  wait([result] { return result->done.load(); }, kNoLimit);
  if (result->error) std::rethrow_exception(result->error);
}

void ProgressEngine::wait_close(ChannelId id, WaitLimit const& limit) {
  bool const is_alone = transport_.size() == 1;
  if (!is_alone) start();
  {
    std::lock_guard progressing(progressing_);
    throw_if_failed();
    closing_[index(id)] = true;
    if (!has_posts()) publish();
  }
  if (!started_ || closed_[index(id)]) return driver_.wake();  // the closing message may wait for room
  driver_.wake();
  wait([&] { return closed_[index(id)].load(); }, limit);
}

void ProgressEngine::abandon(char const* why) {
  {
    std::lock_guard lock(starting_);
    if (std::exchange(abandoned_, true)) return;
  }
  driver_.stop();
  transport_.on_arrival({});
  bulk_.reset();
  std::lock_guard progressing(progressing_);
  for (ChannelId const id : kAll) messenger_.drop(id);
  messenger_.drop_all();
  std::lock_guard lock(mutex_);
  posts_.clear();
  if (failure_ == nullptr) {
    failure_ = std::make_exception_ptr(
        Error(fmt::format("rank {} has left its group ({}): end the rank, or create another group", number(me_), why)));
  }
  failed_ = true;
}

void ProgressEngine::wait_close_all(WaitLimit const& limit) {
  if (!started_) {  // nothing was sent
    for (ChannelId const id : kAll) messenger_.close(id);
    return;
  }
  for (ChannelId const id : kAll) wait_close(id, limit);
  wait([this] { return idle_.load(); }, limit);
  // This rank has done its work, so the loss of a rank that it serves is no error of its own.
  if (bulk_->serves_others()) driver_.wait([this] { return failed_ || closed_by_all_; }, limit.seconds);
}

void ProgressEngine::end(WaitLimit const& limit) noexcept {
  if (std::exchange(ended_, true)) return;
  bool const unwinding = std::uncaught_exceptions() > exceptions_at_start_;
  std::string reason;
  if (abandoned_) {
    reason = "it continued after an exception that had ended its communication";
  } else if (!unwinding) {
    try {
      wait_close_all(limit);
    } catch (std::exception const& error) {
      reason = error.what();
    } catch (...) {
      reason = "it failed with an unknown exception";
    }
  }
  try {
    abandon("its Group has ended");
    if (unwinding) return;  // the code that catches the exception informs the other ranks
    reason.empty() ? transport_.leave() : transport_.fail(me_, reason);
  } catch (...) {  // NOLINT: no rank is left to inform
  }
}

}  // namespace gpups::comm
