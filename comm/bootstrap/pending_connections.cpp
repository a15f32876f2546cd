// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/pending_connections.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <iterator>
#include <utility>

#include "comm/base/serialization.hpp"
#include "comm/bootstrap/connection.hpp"

namespace gpups::comm {
namespace {

constexpr double kPendingTimeout_s = 5;
constexpr std::size_t kLinesMax = 20;  // lines on standard error
constexpr std::size_t kShownMax = 4;   // rejected connections in the error about missing ranks

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
      // A rank of the job needs two round trips at most, so the oldest connection is the least likely to be one.
      bool const is_full = !accepted->first.is_open() || pending_connections_.size() >= pending_max_;
      if (is_full && !pending_connections_.empty()) {
        reject(pending_connections_.front(), "it sent nothing while many others connected",
               "find the process that connects to this port");
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

void PendingConnections::close() {
  listener_.close();
  pending_connections_.clear();
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
    if (!wrong.empty())
      return rejected(wrong, "connect only processes of this job, and run the same build on all ranks");
    if (connection.incoming().size() >= kHandshakeBytes) {
      connection.set_key(session_key(token_, connection.incoming().substr(0, kHandshakeBytes), pending.handshake));
      connection.consume(kHandshakeBytes);
      pending.has_handshake = true;
    }
  }
  try {
    if (pending.has_handshake) {
      if (auto const frame = connection.next()) {
        if (frame->kind != FrameKind::kHello)
          return rejected("its first message is not about its rank", "run the same build on all ranks");
        info = decode_rank_info(frame->body);
        return Outcome::kAuthenticated;
      }
    }
  } catch (SerializationError const&) {
    return rejected("its first message cannot be decoded", "run the same build on all ranks");
  } catch (FrameError const&) {
    connection.put(FrameKind::kWrongToken, {});
    (void)connection.exchange();
    return rejected("its token differs from the token of rank 0",
                    "use the same token for all ranks of a job, and another port for each job");
  }
  if (!ended.empty()) return rejected("it closed the connection before it had sent its rank", "look at its output");
  if (now() >= pending.deadline)
    return rejected("it did not authenticate in time", "find the process that connects to this port");
  return Outcome::kWaiting;
}

void PendingConnections::reject(PendingConnection& pending, std::string const& why, std::string const& advice) {
  std::string peer_text = pending.from;
  try {
    // This is not authenticated, but it helps to find the process.
    auto const frame = pending.has_handshake ? pending.connection.peek_unauthenticated() : std::nullopt;
    if (frame && frame->kind == FrameKind::kHello) {
      peer_text += fmt::format(", which claims to be rank {}", number(decode_rank_info(frame->body).rank));
    }
  } catch (Error const&) {
  }
  if (rejected_.size() < kShownMax) rejected_.push_back(fmt::format("{} ({})", peer_text, why));
  if (++log_lines_ > kLinesMax) return;
  fmt::print(stderr, "gpups: rejected {} ({}): {}{}\n", peer_text, why, advice,
             log_lines_ == kLinesMax ? "; further rejections are not printed" : "");
}

}  // namespace gpups::comm
