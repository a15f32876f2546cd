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

#include "comm/network.hpp"
#include "comm/sim/random.hpp"
#include "gpups/group.hpp"

namespace gpups::comm {

class SimNetwork final : public Network {
 public:
  // Throws Error where the options make no sense.
  explicit SimNetwork(Simulation const& options);

  void carry(Order order, Rank from, Rank to, std::uint64_t digest, std::function<void()> arrive) override;
  // Outside of a simulated run, where nobody else lets time pass, one thing arrives.
  void poll() override;

  // The rest is for the one thread that simulates.

  void simulating(bool yes);
  Random& random() { return random_; }
  std::uint64_t now_us() const { return now_us_; }
  void pass_until(std::uint64_t time_us);
  // What is next to arrive between two ranks, in order, or alone.
  struct Channel {
    Rank from, to;
    std::uint64_t alone;
    auto operator<=>(Channel const&) const = default;
  };
  std::vector<Channel> due() const;
  void deliver(Channel const& channel);
  // When something arrives that is not yet due.
  std::optional<std::uint64_t> next_us() const;

  // Digest of all that has happened, in order.
  std::uint64_t digest() const { return digest_; }
  enum class Event : std::uint8_t { kCarry, kDeliver, kPass, kTurn, kResume, kGiveUp };
  void note(Event event, std::uint64_t what);

 private:
  struct Parcel {
    std::uint64_t due_us;
    std::function<void()> arrive;
  };

  std::uint64_t const delay_us_max_;
  // Held while a parcel arrives, so that order is kept where several threads poll; arriving may carry an answer.
  std::recursive_mutex mutex_;
  bool simulating_ = false;
  Random random_;
  std::uint64_t now_us_ = 0, parcels_ = 0, digest_ = 0;
  std::map<Channel, std::deque<Parcel>> channels_;  // those that are not empty
};

}  // namespace gpups::comm
