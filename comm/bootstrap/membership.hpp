// SPDX-License-Identifier: Apache-2.0
// What a rank knows of who of the job is still there. Sends nothing and owns no clock.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::comm {

// What `by` says, or what rank 0 says of it. why is empty: `by`, which is `rank` too, leaves regularly. by == rank: it
// is lost. Else `by` takes `rank` for lost, and leaves on that account.
struct MembershipUpdate {
  Rank by{};
  Rank rank{};
  std::string why{};
};
std::string encode(MembershipUpdate const& update);
MembershipUpdate decode_membership_update(std::string_view body);  // throws WireError

class Membership {
 public:
  Membership(Rank mine, std::uint32_t size) : mine_(mine), states_(size, State::kAlive) {}

  // What is to be told of a rank: that it has left (why is empty) or that it is lost.
  struct Change {
    Rank rank{};
    std::string why{};
  };

  // Whether anybody but this rank can have said this.
  bool is_valid(MembershipUpdate const& update) const;
  // REQUIRES: is_valid(update)
  void apply(MembershipUpdate const& update);
  std::vector<Change> take_changes() { return std::exchange(changes_, {}); }

  bool is_alive(Rank rank) const { return states_[number(rank)] == State::kAlive; }
  bool is_lost(Rank rank) const { return states_[number(rank)] == State::kFailed; }
  bool is_alone() const;  // all others have left or are lost

 private:
  // kFollowed: has left because of another one that is lost, which alone is told.
  enum class State : std::uint8_t { kAlive, kLeft, kLeftAfterFailure, kFailed };
  void mark_failed(Rank rank, std::string const& why);

  Rank mine_;
  std::vector<State> states_;
  std::vector<Change> changes_;
};

}  // namespace gpups::comm
