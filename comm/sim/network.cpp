// SPDX-License-Identifier: Apache-2.0
#include "comm/sim/network.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

std::uint64_t checked_delay_us(Simulation const& options) {
  double const longest_ms = std::max(options.delay_ms_max, options.stall_ms_max);
  GPUPS_REQUIRE(options.delay_ms_max >= 0 && options.stall_ms_max >= 0 && longest_ms <= 1e9,
                "simulated delays of up to {} ms and stalls of up to {} ms are out of range: use 0 to 1e9 ms",
                options.delay_ms_max, options.stall_ms_max);
  GPUPS_REQUIRE(options.stall_probability >= 0 && options.stall_probability <= 1,
                "stall probability {} is out of range: use 0 to 1", options.stall_probability);
  return static_cast<std::uint64_t>(options.delay_ms_max * 1000);
}

}  // namespace

SimNetwork::SimNetwork(Simulation const& options) : delay_us_max_(checked_delay_us(options)), random_(options.seed) {}

void SimNetwork::deliver_later(Order order, Rank from, Rank to, std::function<void()> arrive) {
  std::lock_guard lock(mutex_);
  auto& route = routes_[{from, to, order == Order::kFifo ? 0 : ++packets_}];
  std::uint64_t const arrival_us = now_us_ + random_.below(delay_us_max_ + 1);
  route.push_back({route.empty() ? arrival_us : std::max(arrival_us, route.back().arrival_us), std::move(arrive)});
}

void SimNetwork::poll() {
  std::lock_guard lock(mutex_);
  if (is_simulated_ || routes_.empty()) return;
  auto const scheduled = std::next(routes_.begin(), static_cast<std::ptrdiff_t>(random_.below(routes_.size())));
  advance_to(std::max(now_us_, scheduled->second.front().arrival_us));
  deliver(SimRoute(scheduled->first));
}

void SimNetwork::set_simulated(bool yes) {
  std::lock_guard lock(mutex_);
  is_simulated_ = yes;
}

std::vector<SimNetwork::SimRoute> SimNetwork::due() const {
  std::vector<SimRoute> due;
  for (auto const& [route, packets] : routes_) {
    if (packets.front().arrival_us <= now_us_) due.push_back(route);
  }
  return due;
}

void SimNetwork::deliver(SimRoute const& route) {
  std::lock_guard lock(mutex_);
  auto const found = routes_.find(route);
  Packet const packet = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) routes_.erase(found);
  packet.arrive();
}

std::optional<std::uint64_t> SimNetwork::next_us() const {
  std::optional<std::uint64_t> next;
  for (auto const& [route, packets] : routes_) {
    std::uint64_t const arrival_us = packets.front().arrival_us;
    if (arrival_us > now_us_ && (!next || arrival_us < *next)) next = arrival_us;
  }
  return next;
}

}  // namespace gpups::comm
