// SPDX-License-Identifier: Apache-2.0
// Which ranks of the job are alive, have left or are lost, as one rank knows it. Sends nothing and reads no clock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::comm {

// A message of rank `by`, or of rank 0 about it. why is empty: `by` leaves in order, and rank == by. why is given and
// rank == by: `by` is lost. why is given and rank != by: `by` considers `rank` lost and leaves for that reason.
struct MembershipUpdate {
  Rank by{};
  Rank rank{};
  std::string why{};
};
std::string encode(MembershipUpdate const& update);
MembershipUpdate decode_membership_update(std::string_view body);  // throws SerializationError

// Keeps the state of every rank, and computes the events to report from the updates.
class Membership {
 public:
  Membership(Rank mine, std::uint32_t size) : mine_(mine), states_(size, State::kAlive) {}

  // An event to report: a rank has left in order (why is empty) or is lost.
  struct Change {
    Rank rank{};
    std::string why{};
  };

  // Returns whether another rank can have sent this update.
  bool is_valid(MembershipUpdate const& update) const;
  // REQUIRES: is_valid(update)
  void apply(MembershipUpdate const& update);
  // Returns the events since the last call.
  std::vector<Change> take_changes() { return std::exchange(changes_, {}); }

  bool is_alive(Rank rank) const { return states_[number(rank)] == State::kAlive; }
  bool is_lost(Rank rank) const { return states_[number(rank)] == State::kFailed; }
  bool is_alone() const;  // all others have left or are lost

 private:
  // kLeftAfterFailure: has left because another rank is lost; only the lost rank is reported.
  enum class State : std::uint8_t { kAlive, kLeft, kLeftAfterFailure, kFailed };
  void mark_failed(Rank rank, std::string const& why);

  Rank mine_;
  std::vector<State> states_;
  std::vector<Change> changes_;
};

}  // namespace gpups::comm
