// SPDX-License-Identifier: Apache-2.0
// A network whose delays a seed decides, in simulated time. Two ranks' messages keep their order; all else may
// overtake all else.
#pragma once

#include <compare>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "comm/sim/random.hpp"
#include "comm/transport/local_network.hpp"
#include "gpups/group.hpp"

namespace gpups::comm {

class SimNetwork final : public LocalNetwork {
 public:
  // Throws Error where the options make no sense.
  explicit SimNetwork(Simulation const& options);

  void deliver_later(Order order, Rank from, Rank to, std::uint64_t digest, std::function<void()> arrive) override;
  // Outside of a simulated run, where nobody else lets time pass, one thing arrives.
  void poll() override;

  // The rest is for the one thread that simulates.

  void set_simulated(bool yes);
  SimRandom& random() { return random_; }
  std::uint64_t now_us() const { return now_us_; }
  void advance_to(std::uint64_t time_us);
  // What is next to arrive between two ranks, in order, or alone.
  struct SimRoute {
    Rank from, to;
    std::uint64_t packet_number;
    auto operator<=>(SimRoute const&) const = default;
  };
  std::vector<SimRoute> due() const;
  void deliver(SimRoute const& route);
  // When something arrives that is not yet due.
  std::optional<std::uint64_t> next_us() const;

  // Digest of all that has happened, in order.
  std::uint64_t digest() const { return digest_; }
  enum class SimEventKind : std::uint8_t { kCarry, kDeliver, kPass, kTurn, kResume, kGiveUp };
  void note(SimEventKind event, std::uint64_t what);

 private:
  struct Packet {
    std::uint64_t arrival_us;
    std::function<void()> arrive;
  };

  std::uint64_t const delay_us_max_;
  // Held while a parcel arrives, so that order is kept where several threads poll; arriving may carry an answer.
  std::recursive_mutex mutex_;
  bool set_simulated_ = false;
  SimRandom random_;
  std::uint64_t now_us_ = 0, packets_ = 0, digest_ = 0;
  std::map<SimRoute, std::deque<Packet>> routes_;  // those that are not empty
};

}  // namespace gpups::comm
