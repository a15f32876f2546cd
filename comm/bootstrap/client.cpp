// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/join.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "comm/base/peer_error.hpp"
#include "comm/base/serialization.hpp"
#include "comm/bootstrap/connection.hpp"
#include "comm/bootstrap/failure_detector.hpp"
#include "comm/bootstrap/pair_keys.hpp"
#include "comm/bootstrap/rank_info.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

constexpr double kConnectTimeout_s = 2;
constexpr double kHandshakeTimeout_s = 3;
constexpr double kAnswerTimeout_s = 10;
constexpr int kClosedMax = 10;  // times that rank 0 may close the connection, because it stops to listen for a group
constexpr double kHeartbeatInterval_s = 0.5;
constexpr std::size_t kStartBytesMax = std::size_t{1} << 28;
constexpr std::size_t kRejectionBytesMax = std::size_t{1} << 16;  // shown of a rejection, which may list many ranks

// Blocks until the connection can be read or written, or until `until`.
void wait_for(Connection const& connection, TimePoint until) {
  pollfd waiting{connection.fd(), static_cast<short>(connection.has_outgoing() ? POLLIN | POLLOUT : POLLIN), 0};
  (void)poll(&waiting, 1, milliseconds_until(until));
}

// A rank other than 0 in the join: connects to rank 0 and waits for the start.
class BootstrapClient {
 public:
  explicit BootstrapClient(JoinRequest const& request)
      : request_(request), deadline_(after(now(), request.timeout_s)) {}

  JoinResult run() {
    std::optional<Connection> connection;
    while (!(connection = try_all())) {
      GPUPS_REQUIRE(
          now() < deadline_ || !other_group_,
          "rank 0 joins {} and not {} (this is rank {}, which waited {} s): join the same groups on all ranks",
          group_text(*other_group_), group_text(request_.group), number(request_.launch.rank), request_.timeout_s);
      GPUPS_REQUIRE(now() < deadline_,
                    "rank 0 could not be reached within {} s (this is rank {}; {}): start rank 0, or give all ranks "
                    "the address and port at which it listens",
                    request_.timeout_s, number(request_.launch.rank), last_connect_error_);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return wait_start(std::move(*connection));
  }

 private:
  // Tries to connect to each of the addresses once. Returns nothing if no process listens; throws if a process other
  // than rank 0 of this job listens.
  std::optional<Connection> try_all() {
    std::string wrong;
    for (SocketAddress const& endpoint : wait_bootstrap_addresses(request_.launch, deadline_)) {
      Connected connected =
          wait_connect(endpoint, std::max(after(now(), 0.1), std::min(after(now(), kConnectTimeout_s), deadline_)));
      if (!connected.socket.is_open()) {
        last_connect_error_ = fmt::format("the error for {} is: {}", endpoint.text(), connected.error);
        continue;
      }
      Connection connection(std::move(connected.socket), ConnectionSide::kOther);
      is_closed_ = false;
      std::string const problem = authenticate(connection);
      if (problem.empty() && first_->kind == FrameKind::kOtherGroup) {
        other_group_ = peer_text(first_->body);
        first_.reset();
        closed_ = 0;
        return {};
      }
      other_group_.reset();
      if (problem.empty()) return connection;
      if (is_closed_ && closed_++ < kClosedMax) {
        last_connect_error_ = fmt::format("the process at {}: {}", endpoint.text(), problem);
        continue;
      }
      if (wrong.empty())
        wrong = fmt::format("the process at {} is not rank 0 of this job ({})", endpoint.text(), problem);
    }
    GPUPS_REQUIRE(wrong.empty(),
                  "{}: use the same token, build, address and port for all ranks of a job, and a different token and "
                  "port for each job",
                  wrong);
    return {};
  }

  // Authenticates both sides. Returns why that failed; empty if it succeeded.
  std::string authenticate(Connection& connection) {
    std::string const mine = make_handshake();
    connection.put_plaintext(mine);
    TimePoint const handshake_until = after(now(), kHandshakeTimeout_s);
    while (connection.incoming().size() < kHandshakeBytes) {
      std::string const ended = connection.exchange();
      std::string const wrong = handshake_error(connection.incoming());
      if (!wrong.empty()) return wrong;
      if (connection.incoming().size() >= kHandshakeBytes) break;
      is_closed_ = !ended.empty();
      if (is_closed_) return "it closed the connection without a handshake";
      if (now() >= handshake_until) return "it did not answer in time";
      wait_for(connection, handshake_until);
    }
    connection.set_key(session_key(request_.launch.token, mine, connection.incoming().substr(0, kHandshakeBytes)));
    connection.consume(kHandshakeBytes);
    connection.put(FrameKind::kHello, encode(rank_info_of(request_)));
    return wait_authenticated(connection);
  }

  std::string wait_authenticated(Connection& connection) {
    TimePoint const until = after(now(), kAnswerTimeout_s);
    for (;;) {
      std::string const ended = connection.exchange();
      try {
        if (auto const frame = connection.peek_unauthenticated(); frame && frame->kind == FrameKind::kWrongToken) {
          return "its token differs from the token of this rank";
        }
        first_ = connection.next();
      } catch (FrameError const&) {
        return "it did not prove that it has the same token";
      }
      if (first_) return {};
      is_closed_ = !ended.empty();
      if (is_closed_) return "it closed the connection before it had proved that it has the same token";
      if (now() >= until) return "it did not answer in time";
      wait_for(connection, until);
    }
  }

  JoinResult wait_start(Connection connection) {
    connection.set_body_bytes_max(kStartBytesMax);
    TimePoint received_at = now(), heartbeat_sent_at = now(), progressed_at = now();
    for (;;) {
      // If this process was stopped for long, it has read no heartbeats meanwhile.
      if (now() > after(std::exchange(progressed_at, now()), 4 * kHeartbeatInterval_s)) received_at = now();
      if (first_) {
        received_at = now();
        if (first_->kind == FrameKind::kRejected) throw Error(peer_text(first_->body, kRejectionBytesMax));
        if (first_->kind == FrameKind::kStart) return start(first_->body, std::move(connection));
      }
      std::string const ended = connection.exchange();
      first_ = next(connection);
      if (first_) continue;
      if (!ended.empty()) throw_server_lost(ended);
      if (now() > after(received_at, std::max(request_.failure_detector.peer_timeout_s, 5.0)))
        throw_server_lost("its heartbeats have stopped");
      if (now() >= after(heartbeat_sent_at, kHeartbeatInterval_s)) {
        heartbeat_sent_at = now();
        if (!connection.has_outgoing()) connection.put(FrameKind::kAlive, {});
        continue;
      }
      wait_for(connection, after(heartbeat_sent_at, kHeartbeatInterval_s));
    }
  }

  std::optional<Frame> next(Connection& connection) {
    try {
      return connection.next();
    } catch (FrameError const&) {
      throw_server_lost("it sent an invalid message");
    }
  }

  [[noreturn]] void throw_server_lost(std::string const& why) {
    throw Error(
        fmt::format("rank 0 is lost, while rank {} waited for the other ranks: {} (only rank 0 can start the job): "
                    "look at the output of rank 0",
                    number(request_.launch.rank), why));
  }

  JoinResult start(std::string const& body, Connection connection) {
    StartMessage start;
    std::vector<HashKey> keys;
    try {
      start = decode_start(body);
      keys = decrypt_keys(connection.key(), start.keys);
    } catch (SerializationError const&) {
      throw_server_lost("it sent an invalid message");
    }
    if (!matches(start, rank_info_of(request_)) || keys.size() != start.members.size())
      throw_server_lost("it sent an invalid message");
    std::vector<Connection> connections;
    connections.push_back(std::move(connection));
    auto const size = static_cast<std::uint32_t>(request_.launch.size);
    return {.rank = request_.launch.rank,
            .local_rank = request_.launch.local_rank,
            .members = std::move(start.members),
            .session = start.session,
            .keys = std::move(keys),
            .broadcast_data = std::move(start.broadcast_data),
            .failure_detector =
                make_failure_detector(request_.launch.rank, size, std::move(connections), request_.failure_detector)};
  }

  JoinRequest const& request_;
  TimePoint deadline_;
  std::string last_connect_error_ = "no address was tried";
  std::optional<std::string> other_group_;  // that rank 0 joined at the last try
  bool is_closed_ = false;                  // rank 0 has closed the connection that was tried last
  int closed_ = 0;                          // connections so far that were closed
  std::optional<Frame> first_;              // received from rank 0 and not handled yet
};

}  // namespace

JoinResult wait_join_bootstrap(JoinRequest const& request) { return BootstrapClient(request).run(); }

}  // namespace gpups::comm
