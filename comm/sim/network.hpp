// SPDX-License-Identifier: Apache-2.0
// A network in simulated time with random delays that a seed determines. kFifo deliveries between two ranks keep their
// order; all others may overtake each other.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/transport/transport.hpp"
#include "gpups/group.hpp"
#include "kernels/base/hash.hpp"

namespace gpups::comm {

// A sequence of random numbers.
class SimRandom {
 public:
  explicit SimRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return kernels::mix(state_ += 0x9E3779B97F4A7C15U); }
  // Returns a number below `n`, which is not 0. Slightly biased.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  // Returns true with the given probability.
  bool chance(double probability) { return static_cast<double>(next() >> 11) < probability * 0x1p53; }

 private:
  std::uint64_t state_;
};

// LocalNetwork for simulations.
class SimNetwork final : public LocalNetwork {
 public:
  // Throws Error if an option is out of range.
  explicit SimNetwork(Simulation const& options);

  void deliver_later(Order order, Rank from, Rank to, std::function<void()> arrive) override;
  // Outside of a simulated run, advances the time and delivers one packet.
  void poll() override;

  // Only the thread that simulates calls the functions below.

  // While it is set, poll() does nothing.
  void set_simulated(bool yes);
  SimRandom& random() { return random_; }
  std::uint64_t now_us() const { return now_us_; }
  // Sets the simulated time. REQUIRES: it is not before now_us().
  void advance_to(std::uint64_t time_us) { now_us_ = time_us; }
  // A queue of packets: those between two ranks that keep their order, or a single packet.
  struct SimRoute {
    Rank from, to;
    std::uint64_t packet_number;
    auto operator<=>(SimRoute const&) const = default;
  };
  // Returns the routes whose first packet is due.
  std::vector<SimRoute> due() const;
  // Delivers the first packet of a route.
  void deliver(SimRoute const& route);
  // Returns the time of the next packet that is not due yet.
  std::optional<std::uint64_t> next_us() const;

 private:
  struct Packet {
    std::uint64_t arrival_us;
    std::function<void()> arrive;
  };

  std::uint64_t const delay_us_max_;
  // Held during a delivery, so that the order is kept if several threads poll. Recursive, because a delivery may send
  // an answer.
  std::recursive_mutex mutex_;
  bool is_simulated_ = false;
  SimRandom random_;
  std::uint64_t now_us_ = 0, packets_ = 0;
  std::map<SimRoute, std::deque<Packet>> routes_;  // only those with packets
};

}  // namespace gpups::comm
