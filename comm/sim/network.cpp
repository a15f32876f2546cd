// SPDX-License-Identifier: Apache-2.0
#include "comm/sim/network.hpp"

#include <algorithm>
#include <utility>

#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

std::uint64_t checked_delay_us(Simulation const& options) {
  double const longest_ms = std::max(options.delay_ms_max, options.stall_ms_max);
  GPUPS_REQUIRE(options.delay_ms_max >= 0 && options.stall_ms_max >= 0 && longest_ms <= 1e9,
                "simulated delays of up to {} ms and stalls of up to {} ms cannot be (time goes forward): use 0 to 1e9",
                options.delay_ms_max, options.stall_ms_max);
  GPUPS_REQUIRE(options.stall_probability >= 0 && options.stall_probability <= 1,
                "stall probability {} cannot be (it is a share of all turns): use 0 to 1", options.stall_probability);
  return static_cast<std::uint64_t>(options.delay_ms_max * 1000);
}

}  // namespace

SimNetwork::SimNetwork(Simulation const& options) : delay_us_max_(checked_delay_us(options)), random_(options.seed) {}

void SimNetwork::carry(Order order, Rank from, Rank to, std::uint64_t digest, std::function<void()> arrive) {
  std::lock_guard lock(mutex_);
  note(Event::kCarry, digest);
  auto& channel = channels_[{from, to, order == Order::kFifo ? 0 : ++parcels_}];
  std::uint64_t const due_us = now_us_ + random_.below(delay_us_max_ + 1);
  channel.push_back({channel.empty() ? due_us : std::max(due_us, channel.back().due_us), std::move(arrive)});
}

void SimNetwork::poll() {
  std::lock_guard lock(mutex_);
  if (simulating_ || channels_.empty()) return;
  auto const chosen = std::next(channels_.begin(), static_cast<std::ptrdiff_t>(random_.below(channels_.size())));
  pass_until(std::max(now_us_, chosen->second.front().due_us));
  deliver(Channel(chosen->first));
}

void SimNetwork::simulating(bool yes) {
  std::lock_guard lock(mutex_);
  simulating_ = yes;
}

void SimNetwork::pass_until(std::uint64_t time_us) {
  now_us_ = time_us;
  note(Event::kPass, time_us);
}

std::vector<SimNetwork::Channel> SimNetwork::due() const {
  std::vector<Channel> due;
  for (auto const& [channel, parcels] : channels_) {
    if (parcels.front().due_us <= now_us_) due.push_back(channel);
  }
  return due;
}

void SimNetwork::deliver(Channel const& channel) {
  std::lock_guard lock(mutex_);
  note(Event::kDeliver, kernels::mix(number(channel.from)) ^ (number(channel.to) + (channel.alone << 16)));
  auto const found = channels_.find(channel);
  Parcel const parcel = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) channels_.erase(found);
  parcel.arrive();
}

std::optional<std::uint64_t> SimNetwork::next_us() const {
  std::optional<std::uint64_t> next;
  for (auto const& [channel, parcels] : channels_) {
    std::uint64_t const due_us = parcels.front().due_us;
    if (due_us > now_us_ && (!next || due_us < *next)) next = due_us;
  }
  return next;
}

void SimNetwork::note(Event event, std::uint64_t what) {
  digest_ =
      kernels::mix(digest_ + 0x9E3779B97F4A7C15U + kernels::mix(what + (static_cast<std::uint64_t>(event) << 56)));
}

}  // namespace gpups::comm
