// SPDX-License-Identifier: Apache-2.0
#include "comm/bulk/transfer_matcher.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"

namespace gpups::comm {

using State = PostedSend::State;

namespace {

void wait_end(PostedSend const& offer) {
  try {
    offer.copied.wait();
  } catch (Error const&) {  // NOLINT: a device that reports errors copies nothing more
  }
}

}  // namespace

void TransferMatcher::offer(std::shared_ptr<PostedSend> const& offer) {
  std::lock_guard lock(mutex_);
  endpoint(offer->from).posted_sends.emplace(offer->number, offer);
}

void TransferMatcher::arrive(std::shared_ptr<PostedSend> const& offer) {
  RankQueues& receiver = endpoint(offer->to);
  {
    std::lock_guard lock(mutex_);
    if (offer->state != State::kPosted) return;
    if (receiver.arrived_sends.emplace(std::pair(offer->from, offer->tag), offer).second) {
      match(receiver, offer->from, offer->tag);
    } else {
      receiver.error.emplace(offer->from,
                             fmt::format("rank {} sends rank {} two transfers under one tag, {:#x} (a tag is for one "
                                         "transfer at a time): run the same build and configuration on all ranks",
                                         number(offer->from), number(offer->to), offer->tag));
    }
  }
  receiver.wake();
}

void TransferMatcher::receive(Rank rank, Rank from, std::uint64_t tag, PostedReceive receive) {
  RankQueues& receiver = endpoint(rank);
  {
    std::lock_guard lock(mutex_);
    [[maybe_unused]] bool const fresh =
        receiver.posted_receives.emplace(std::pair(from, tag), std::move(receive)).second;
    GPUPS_ASSERT(fresh && "a tag is for one transfer at a time");
    match(receiver, from, tag);
  }
  receiver.wake();
}

void TransferMatcher::match(RankQueues& receiver, Rank from, std::uint64_t tag) {
  auto const offer = receiver.arrived_sends.find({from, tag});
  auto const receive = receiver.posted_receives.find({from, tag});
  if (offer == receiver.arrived_sends.end() || receive == receiver.posted_receives.end()) return;
  receiver.matched.push_back({std::move(offer->second), std::move(receive->second)});
  receiver.arrived_sends.erase(offer);
  receiver.posted_receives.erase(receive);
}

void TransferMatcher::queue(MatchedTransfer& copy) {
  PostedReceive& receive = copy.receive;
  PostedSend& offer = *copy.offer;
  auto const set = [&](State state, Event event) {
    std::lock_guard lock(mutex_);
    offer.copied = std::move(event);
    offer.state = state;
    queued_.notify_all();
  };
  try {
    receive.stream.after(offer.ready);
    memory::copy(receive.stream, receive.allocate(), receive.stream.device(), offer.data, offer.device, offer.bytes);
    set(State::kCopyQueued, receive.stream.record());
  } catch (...) {
    set(State::kClosed, {});
    throw;
  }
}

TransferMatcher::MoveResult TransferMatcher::move(Rank rank) {
  RankQueues& receiver = endpoint(rank);
  MoveResult result;
  std::vector<MatchedTransfer> copies;
  std::unique_lock lock(mutex_);
  for (MatchedTransfer& copy : std::exchange(receiver.matched, {})) {
    if (copy.offer->state != State::kPosted) continue;
    bool const agreed = copy.offer->bytes == copy.receive.bytes;
    copy.offer->state = agreed ? State::kCopyQueueing : State::kClosed;
    if (agreed) {
      copies.push_back(std::move(copy));
    } else {
      copy.offer->rejection = size_mismatch(copy.offer->from, copy.offer->bytes, rank, copy.receive.bytes);
      receiver.error.emplace(copy.offer->from, copy.offer->rejection);
      result.rejected.push_back(copy.offer);
    }
  }
  lock.unlock();
  std::exception_ptr failure;
  for (MatchedTransfer& copy : copies) {
    try {
      if (failure == nullptr) queue(copy);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  lock.lock();
  if (failure != nullptr) {
    // Close the sends that are not copied, so that close() does not wait for them; keep the others.
    std::erase_if(copies, [](MatchedTransfer const& copy) {
      bool const queued = copy.offer->state == State::kCopyQueued;
      if (!queued) copy.offer->state = State::kClosed;
      return !queued;
    });
    std::move(copies.begin(), copies.end(), std::back_inserter(receiver.copying));
    queued_.notify_all();
    std::rethrow_exception(failure);
  }
  std::move(copies.begin(), copies.end(), std::back_inserter(receiver.copying));
  // The end of a copy on a GPU wakes no thread, so the rank must call move() again.
  result.any = !receiver.copying.empty() || !result.rejected.empty();
  std::erase_if(receiver.copying, [&](MatchedTransfer const& copy) {
    if (!copy.offer->copied.done()) return false;
    copy.offer->state = State::kClosed;
    receiver.done.insert(copy.receive.number);
    result.done.push_back(copy.offer);
    return true;
  });
  return result;
}

void TransferMatcher::sent(PostedSend const& offer) {
  RankQueues& sender = endpoint(offer.from);
  {
    std::lock_guard lock(mutex_);
    sender.done.insert(offer.number);
    sender.posted_sends.erase(offer.number);
  }
  sender.wake();
}

void TransferMatcher::rejected(PostedSend const& offer) {
  RankQueues& sender = endpoint(offer.from);
  {
    std::lock_guard lock(mutex_);
    sender.error.emplace(offer.to, offer.rejection);
  }
  sender.wake();
}

void TransferMatcher::check(Rank rank) {
  std::lock_guard lock(mutex_);
  if (endpoint(rank).error) throw *endpoint(rank).error;
}

std::vector<Transfer> TransferMatcher::take_done(Rank rank) {
  std::lock_guard lock(mutex_);
  auto const done = std::exchange(endpoint(rank).done, {});
  return {done.begin(), done.end()};
}

bool TransferMatcher::done(Rank rank, Transfer transfer) {
  std::lock_guard lock(mutex_);
  return endpoint(rank).done.erase(transfer) != 0;
}

void TransferMatcher::end(Rank rank, Transfer transfer) {
  std::lock_guard lock(mutex_);
  endpoint(rank).done.insert(transfer);
}

void TransferMatcher::ready_to_sum(std::uint64_t tag) {
  {
    std::lock_guard lock(mutex_);
    if (++sums_ready_[tag] < ends_.size()) return;
    sums_ready_.erase(tag);
    sums_.push_back(tag);
  }
  for (RankQueues& rank : ends_) rank.wake();
}

std::optional<std::uint64_t> TransferMatcher::next_sum(Rank rank) {
  std::lock_guard lock(mutex_);
  std::size_t& begun = endpoint(rank).sums_begun;
  if (begun == sums_ended_ + sums_.size()) return std::nullopt;
  std::uint64_t const tag = sums_[begun++ - sums_ended_];
  // Forget those that all ranks have begun.
  auto const least = std::ranges::min_element(ends_, {}, &RankQueues::sums_begun)->sums_begun;
  for (; sums_ended_ < least; ++sums_ended_) sums_.pop_front();
  return tag;
}

void TransferMatcher::abandon_sums(Rank rank) {
  {
    std::lock_guard lock(mutex_);
    if (!abandoned_by_) abandoned_by_ = rank;
  }
  for (RankQueues& other : ends_) other.wake();
}

std::optional<Rank> TransferMatcher::abandoned_sums() {
  std::lock_guard lock(mutex_);
  return abandoned_by_;
}

void TransferMatcher::close(Rank rank) {
  RankQueues& mine = endpoint(rank);
  mine.wake.set(nullptr);
  std::unique_lock lock(mutex_);
  mine.arrived_sends.clear();
  mine.posted_receives.clear();
  mine.matched.clear();
  for (MatchedTransfer const& copy : mine.copying) wait_end(*copy.offer);
  for (auto const& numbered : std::exchange(mine.posted_sends, {})) {
    auto const& offer = numbered.second;
    queued_.wait(lock, [&] { return offer->state != State::kCopyQueueing; });
    if (offer->state == State::kCopyQueued) wait_end(*offer);
    if (offer->state == State::kPosted) offer->state = State::kClosed;
  }
}

}  // namespace gpups::comm
