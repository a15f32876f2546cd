// SPDX-License-Identifier: Apache-2.0
// Those who have connected to rank 0 and not yet proved that they belong to the job. None of them can hold it up, fill
// its memory or end it: there is a bound on their number, on what they may send and on their time.
#pragma once

#include <poll.h>

#include <cstddef>
#include <list>
#include <string>
#include <vector>

#include "comm/cluster/link.hpp"
#include "comm/cluster/socket.hpp"
#include "comm/cluster/statement.hpp"

namespace gpups::comm {

// One who has proved to know the token.
struct Guest {
  Link link;
  Statement said{};
  Time heard_at{};
};

class Callers {
 public:
  Callers(Listener listener, std::string token, std::size_t callers_max);

  void add_to(std::vector<pollfd>& waiting) const;
  // Accepts, listens and answers; gives those who have proved, in the order in which they have.
  std::vector<Guest> progress();
  // Who was refused, and why; the first few.
  std::vector<std::string> const& refused() const { return refused_; }

 private:
  struct Caller {
    Link link;
    std::string from{};
    std::string greeting{};  // ours, to this caller
    Time deadline{};
    bool greeted = false;  // the other way
  };
  enum class Outcome { kWaiting, kProved, kRefused };

  void accept_all();
  Outcome progress(Caller& caller, Statement& said);
  void refuse(Caller& caller, std::string const& why, std::string const& what_to_do);

  Listener listener_;
  std::string token_;
  std::size_t callers_max_;
  std::list<Caller> callers_;  // by deadline
  std::vector<std::string> refused_;
  std::size_t told_ = 0;  // lines about those who were refused
};

}  // namespace gpups::comm
