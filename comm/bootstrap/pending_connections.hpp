// SPDX-License-Identifier: Apache-2.0
// Those who have connected to rank 0 and not yet proved that they belong to the job. None of them can hold it up, fill
// its memory or end it: there is a bound on their number, on what they may send and on their time.
#pragma once

#include <poll.h>

#include <cstddef>
#include <list>
#include <string>
#include <vector>

#include "comm/bootstrap/connection.hpp"
#include "comm/bootstrap/rank_info.hpp"
#include "comm/bootstrap/socket.hpp"

namespace gpups::comm {

// One who has proved to know the token.
struct AuthenticatedPeer {
  Connection connection;
  RankInfo info{};
  TimePoint received_at{};
};

class PendingConnections {
 public:
  PendingConnections(Listener listener, std::string token, std::size_t pending_max);

  void add_poll_fds(std::vector<pollfd>& poll_fds) const;
  // Accepts, listens and answers; gives those who have proved, in the order in which they have.
  std::vector<AuthenticatedPeer> progress();
  // Who was rejected, and why; the first few.
  std::vector<std::string> const& rejected() const { return rejected_; }

 private:
  struct PendingConnection {
    Connection connection;
    std::string from{};
    std::string handshake{};  // ours, to this caller
    TimePoint deadline{};
    bool has_handshake = false;  // the other way
  };
  enum class Outcome { kWaiting, kAuthenticated, kRejected };

  void accept_all();
  Outcome progress(PendingConnection& pending, RankInfo& info);
  void reject(PendingConnection& pending, std::string const& why, std::string const& advice);

  Listener listener_;
  std::string token_;
  std::size_t pending_max_;
  std::list<PendingConnection> pending_connections_;  // by deadline
  std::vector<std::string> rejected_;
  std::size_t log_lines_ = 0;  // lines about those who were rejected
};

}  // namespace gpups::comm
