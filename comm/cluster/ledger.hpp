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
struct Notice {
  Rank by{};
  Rank rank{};
  std::string why{};
};
std::string encode(Notice const& notice);
Notice decode_notice(std::string_view body);  // throws WireError

class Ledger {
 public:
  Ledger(Rank mine, std::uint32_t size) : mine_(mine), fates_(size, Fate::kThere) {}

  // What is to be told of a rank: that it has left (why is empty) or that it is lost.
  struct Event {
    Rank rank{};
    std::string why{};
  };

  // Whether anybody but this rank can have said this.
  bool can_be(Notice const& notice) const;
  // REQUIRES: can_be(notice)
  void apply(Notice const& notice);
  std::vector<Event> take_events() { return std::exchange(events_, {}); }

  bool is_there(Rank rank) const { return fates_[number(rank)] == Fate::kThere; }
  bool is_lost(Rank rank) const { return fates_[number(rank)] == Fate::kLost; }
  bool is_alone() const;  // all others have left or are lost

 private:
  // kFollowed: has left because of another one that is lost, which alone is told.
  enum class Fate : std::uint8_t { kThere, kLeft, kFollowed, kLost };
  void lose(Rank rank, std::string const& why);

  Rank mine_;
  std::vector<Fate> fates_;
  std::vector<Event> events_;
};

}  // namespace gpups::comm
