// SPDX-License-Identifier: Apache-2.0
#include "comm/payload/exchange.hpp"

#include <algorithm>

#include "comm/payload/sizes.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {

using State = Offer::State;

void Exchange::offer(std::shared_ptr<Offer> const& offer) {
  std::lock_guard lock(mutex_);
  end(offer->from).offers.emplace(offer->number, offer);
}

void Exchange::arrive(std::shared_ptr<Offer> const& offer) {
  End& receiver = end(offer->to);
  {
    std::lock_guard lock(mutex_);
    if (offer->state != State::kOpen) return;
    if (receiver.arrived.emplace(std::pair(offer->from, offer->tag), offer).second) {
      match(receiver, offer->from, offer->tag);
    } else {
      receiver.error.emplace(
          offer->from, fmt::format("rank {} sends rank {} two transfers under one tag, {:#x} (they cannot be told "
                                   "apart): run the same build and configuration on all ranks",
                                   number(offer->from), number(offer->to), offer->tag));
    }
  }
  receiver.wake();
}

void Exchange::want(Rank rank, Rank from, std::uint64_t tag, Want want) {
  End& receiver = end(rank);
  {
    std::lock_guard lock(mutex_);
    [[maybe_unused]] bool const fresh = receiver.wants.emplace(std::pair(from, tag), std::move(want)).second;
    GPUPS_ASSERT(fresh && "one transfer of a tag at a time");
    match(receiver, from, tag);
  }
  receiver.wake();
}

void Exchange::match(End& receiver, Rank from, std::uint64_t tag) {
  auto const offer = receiver.arrived.find({from, tag});
  auto const want = receiver.wants.find({from, tag});
  if (offer == receiver.arrived.end() || want == receiver.wants.end()) return;
  receiver.matched.push_back({std::move(offer->second), std::move(want->second)});
  receiver.arrived.erase(offer);
  receiver.wants.erase(want);
}

void Exchange::queue(Copy& copy) {
  Want& want = copy.want;
  Offer& offer = *copy.offer;
  auto const set = [&](State state, Event event) {
    std::lock_guard lock(mutex_);
    offer.copied = std::move(event);
    offer.state = state;
    queued_.notify_all();
  };
  try {
    want.stream.after(offer.ready);
    memory::copy(want.stream, want.where(), want.stream.device(), offer.data, offer.device, offer.bytes);
    set(State::kQueued, want.stream.record());
  } catch (...) {
    set(State::kClosed, {});
    throw;
  }
}

Exchange::Moved Exchange::move(Rank rank) {
  End& receiver = end(rank);
  Moved moved;
  std::vector<Copy> copies;
  std::unique_lock lock(mutex_);
  for (Copy& copy : std::exchange(receiver.matched, {})) {
    if (copy.offer->state != State::kOpen) continue;
    bool const agreed = copy.offer->bytes == copy.want.bytes;
    copy.offer->state = agreed ? State::kQueueing : State::kClosed;
    if (agreed) {
      copies.push_back(std::move(copy));
    } else {
      copy.offer->refusal = sizes_differ(copy.offer->from, copy.offer->bytes, rank, copy.want.bytes);
      receiver.error.emplace(copy.offer->from, copy.offer->refusal);
      moved.refused.push_back(copy.offer);
    }
  }
  lock.unlock();
  std::exception_ptr failure;
  for (Copy& copy : copies) {
    try {
      if (failure == nullptr) queue(copy);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  lock.lock();
  if (failure != nullptr) {  // nobody may wait for what will not be copied, and what was queued is still waited for
    std::erase_if(copies, [](Copy const& copy) {
      bool const queued = copy.offer->state == State::kQueued;
      if (!queued) copy.offer->state = State::kClosed;
      return !queued;
    });
    std::move(copies.begin(), copies.end(), std::back_inserter(receiver.copying));
    queued_.notify_all();
    std::rethrow_exception(failure);
  }
  std::move(copies.begin(), copies.end(), std::back_inserter(receiver.copying));
  // A copy on a GPU wakes nobody when it is over, so that the rank has to look again.
  moved.any = !receiver.copying.empty() || !moved.refused.empty();
  std::erase_if(receiver.copying, [&](Copy const& copy) {
    if (!copy.offer->copied.done()) return false;
    copy.offer->state = State::kClosed;
    receiver.done.insert(copy.want.number);
    moved.over.push_back(copy.offer);
    return true;
  });
  return moved;
}

void Exchange::sent(Offer const& offer) {
  End& sender = end(offer.from);
  {
    std::lock_guard lock(mutex_);
    sender.done.insert(offer.number);
    sender.offers.erase(offer.number);
  }
  sender.wake();
}

void Exchange::refused(Offer const& offer) {
  End& sender = end(offer.from);
  {
    std::lock_guard lock(mutex_);
    sender.error.emplace(offer.to, offer.refusal);
  }
  sender.wake();
}

void Exchange::check(Rank rank) {
  std::lock_guard lock(mutex_);
  if (end(rank).error) throw *end(rank).error;
}

std::vector<Transfer> Exchange::take_done(Rank rank) {
  std::lock_guard lock(mutex_);
  auto const done = std::exchange(end(rank).done, {});
  return {done.begin(), done.end()};
}

bool Exchange::done(Rank rank, Transfer transfer) {
  std::lock_guard lock(mutex_);
  return end(rank).done.erase(transfer) != 0;
}

void Exchange::close(Rank rank) {
  End& mine = end(rank);
  mine.wake.set(nullptr);
  std::unique_lock lock(mutex_);
  mine.arrived.clear();
  mine.wants.clear();
  mine.matched.clear();
  for (Copy const& copy : mine.copying) copy.offer->copied.wait();
  for (auto const& numbered : std::exchange(mine.offers, {})) {
    auto const& offer = numbered.second;
    queued_.wait(lock, [&] { return offer->state != State::kQueueing; });
    if (offer->state == State::kQueued) offer->copied.wait();
    if (offer->state == State::kOpen) offer->state = State::kClosed;
  }
}

}  // namespace gpups::comm
