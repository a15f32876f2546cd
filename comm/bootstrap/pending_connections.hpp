// SPDX-License-Identifier: Apache-2.0
// TCP connections to rank 0 that have not been authenticated yet. Their number, the bytes that they may send and their
// time are bounded, so that they can neither block rank 0 nor exhaust its memory.
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

// A rank that has proved that it has the token.
struct AuthenticatedPeer {
  Connection connection;
  RankInfo info{};
  TimePoint received_at{};
};

// Accepts connections and authenticates them.
class PendingConnections {
 public:
  // pending_max: the most connections that are pending at a time; further ones replace the oldest.
  PendingConnections(Listener listener, std::string token, std::size_t pending_max);

  // Appends the file descriptors to poll before the next progress().
  void add_poll_fds(std::vector<pollfd>& poll_fds) const;
  // Accepts connections, reads and answers; returns the ranks that are authenticated now, in the order of their
  // authentication. Does not block.
  std::vector<AuthenticatedPeer> progress();
  // Stops listening, so that further connections are refused, and closes those that are pending.
  void close();
  // Returns the address and the reason of the first few connections that were rejected.
  std::vector<std::string> const& rejected() const { return rejected_; }

 private:
  struct PendingConnection {
    Connection connection;
    std::string from{};
    std::string handshake{};  // the one that rank 0 has sent
    TimePoint deadline{};
    bool has_handshake = false;  // has received the handshake of the other end
  };
  enum class Outcome { kWaiting, kAuthenticated, kRejected };

  void accept_all();
  Outcome progress(PendingConnection& pending, RankInfo& info);
  void reject(PendingConnection& pending, std::string const& why, std::string const& advice);

  Listener listener_;
  std::string token_;
  std::size_t pending_max_;
  std::list<PendingConnection> pending_connections_;  // ascending by deadline
  std::vector<std::string> rejected_;
  std::size_t log_lines_ = 0;  // lines printed about rejected connections
};

}  // namespace gpups::comm
