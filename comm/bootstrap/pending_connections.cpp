// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/pending_connections.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <iterator>
#include <utility>

#include "comm/bootstrap/handshake.hpp"
#include "comm/wire.hpp"

namespace gpups::comm {
namespace {

constexpr double kPendingTimeout_s = 5;
constexpr std::size_t kLinesMax = 20;  // on standard error
constexpr std::size_t kShownMax = 4;   // for the message about ranks that have not come

}  // namespace

PendingConnections::PendingConnections(Listener listener, std::string token, std::size_t pending_max)
    : listener_(std::move(listener)), token_(std::move(token)), pending_max_(pending_max) {}

void PendingConnections::add_poll_fds(std::vector<pollfd>& poll_fds) const {
  for (Socket const& socket : listener_.sockets()) poll_fds.push_back({socket.fd(), POLLIN, 0});
  for (PendingConnection const& pending : pending_connections_) {
    short const events = pending.connection.has_outgoing() ? POLLIN | POLLOUT : POLLIN;
    poll_fds.push_back({pending.connection.fd(), events, 0});
  }
}

void PendingConnections::accept_all() {
  for (Socket const& socket : listener_.sockets()) {
    for (std::size_t i = 0; i <= pending_max_; ++i) {
      auto accepted = listener_.accept(socket);
      if (!accepted) break;
      // Who belongs to the job is done within two round trips, so the one who has been here longest goes.
      bool const is_full = !accepted->first.is_open() || pending_connections_.size() >= pending_max_;
      if (is_full && !pending_connections_.empty()) {
        reject(pending_connections_.front(), "it said nothing while many others came",
               "look for what connects to this port");
        pending_connections_.pop_front();
      }
      if (!accepted->first.is_open()) break;
      pending_connections_.push_back({.connection = Connection(std::move(accepted->first), ConnectionSide::kRankZero),
                                      .from = accepted->second.text(),
                                      .handshake = make_handshake(),
                                      .deadline = after(now(), kPendingTimeout_s)});
      pending_connections_.back().connection.put_plaintext(pending_connections_.back().handshake);
    }
  }
}

std::vector<AuthenticatedPeer> PendingConnections::progress() {
  accept_all();
  std::vector<AuthenticatedPeer> authenticated;
  for (auto at = pending_connections_.begin(); at != pending_connections_.end();) {
    RankInfo info;
    Outcome const outcome = progress(*at, info);
    if (outcome == Outcome::kAuthenticated) {
      authenticated.push_back({.connection = std::move(at->connection), .info = std::move(info), .received_at = now()});
    }
    at = outcome == Outcome::kWaiting ? std::next(at) : pending_connections_.erase(at);
  }
  return authenticated;
}

PendingConnections::Outcome PendingConnections::progress(PendingConnection& pending, RankInfo& info) {
  Connection& connection = pending.connection;
  std::string const ended = connection.exchange();
  auto const rejected = [&](std::string const& why, std::string const& advice) {
    reject(pending, why, advice);
    return Outcome::kRejected;
  };
  if (!pending.has_handshake) {
    std::string const wrong = handshake_error(connection.incoming());
    if (!wrong.empty()) return rejected(wrong, "connect processes of this job only, and run the same build on all");
    if (connection.incoming().size() >= kHandshakeBytes) {
      connection.set_key(session_key(token_, connection.incoming().substr(0, kHandshakeBytes), pending.handshake));
      connection.consume(kHandshakeBytes);
      pending.has_handshake = true;
    }
  }
  try {
    if (pending.has_handshake) {
      if (auto const frame = connection.next()) {
        if (frame->kind != FrameKind::kHello) return rejected("it did not say who it is", "run the same build on all");
        info = decode_rank_info(frame->body);
        return Outcome::kAuthenticated;
      }
    }
  } catch (WireError const&) {
    return rejected("what it says cannot be read", "run the same build on all ranks");
  } catch (FrameError const&) {
    connection.put(FrameKind::kWrongToken, {});
    (void)connection.exchange();
    return rejected("its token is another one", "give all ranks of the job the same token, and other jobs other ports");
  }
  if (!ended.empty()) return rejected("it closed the connection before it had said who it is", "look at its output");
  if (now() >= pending.deadline) return rejected("it was silent", "look for what connects to this port");
  return Outcome::kWaiting;
}

void PendingConnections::reject(PendingConnection& pending, std::string const& why, std::string const& advice) {
  std::string peer_text = pending.from;
  try {
    // Nothing of it is proved, but it helps to find the process.
    auto const frame = pending.has_handshake ? pending.connection.peek_unauthenticated() : std::nullopt;
    if (frame && frame->kind == FrameKind::kHello) {
      peer_text += fmt::format(", which says that it is rank {}", number(decode_rank_info(frame->body).rank));
    }
  } catch (Error const&) {
  }
  if (rejected_.size() < kShownMax) rejected_.push_back(fmt::format("{} ({})", peer_text, why));
  if (++log_lines_ > kLinesMax) return;
  fmt::print(stderr, "gpups: rejected {} ({}): {}{}\n", peer_text, why, advice,
             log_lines_ == kLinesMax ? "; further ones are not shown" : "");
}

}  // namespace gpups::comm
