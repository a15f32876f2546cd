// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/join.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <set>
#include <utility>

#include "comm/bootstrap/authentication.hpp"
#include "comm/bootstrap/failure_detector.hpp"
#include "comm/bootstrap/pair_keys.hpp"
#include "comm/bootstrap/pending_connections.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

constexpr double kServerHeartbeatInterval_s = 0.5;  // to ranks that wait for the start
constexpr double kLateJoinGrace_s = 2;              // after a rejection, so that late ranks receive the reason
constexpr std::size_t kListedMax = 10;              // missing ranks in the error text

// Returns the address of rank 0 as other ranks use it.
std::string listen_address(JoinRequest const& request, int port) {
  LaunchEnvironment const& launch = request.launch;
  std::string host = launch.hosts.empty() ? request.mine.host : launch.hosts.front();
  if (launch.token.empty()) host = "127.0.0.1";
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

// Rank 0 in the join: accepts ranks until all have joined, or rejects the job.
class BootstrapServer {
 public:
  BootstrapServer(JoinRequest const& request, Listener listener, TimePoint deadline)
      : request_(request),
        mine_(rank_info_of(request)),
        deadline_(deadline),
        listen_address_text_(listen_address(request, listener.port())),
        rank_peers_(mine_.size, nullptr),
        pending_connections_(std::move(listener), request.launch.token, 64 + 2 * rank_peers_.size()) {}

  JoinResult run() {
    while (ranks_joined_ + 1 < mine_.size || !rejection_.empty()) {
      wait_for_events();
      // If this process was stopped for long, it has read no heartbeats meanwhile.
      if (now() > after(std::exchange(progressed_at_, now()), 4 * kServerHeartbeatInterval_s)) {
        for (AuthenticatedPeer& peer : peers_) peer.received_at = now();
      }
      for (AuthenticatedPeer& peer : pending_connections_.progress()) accept(std::move(peer));
      for (AuthenticatedPeer& peer : peers_) receive_from(peer);
      send_heartbeats();
      if (rejection_.empty() && now() >= deadline_) reject_all(missing_ranks_error());
      if (!rejection_.empty() && (now() >= rejected_until_ || all_informed())) throw Error(rejection_);
    }
    return start();
  }

 private:
  void wait_for_events() {
    std::vector<pollfd> poll_fds;
    pending_connections_.add_poll_fds(poll_fds);
    for (AuthenticatedPeer const& peer : peers_) {
      if (!peer.connection.is_open()) continue;
      short const events = peer.connection.has_outgoing() ? POLLIN | POLLOUT : POLLIN;
      poll_fds.push_back({peer.connection.fd(), events, 0});
    }
    TimePoint until = std::min(after(heartbeat_sent_at_, kServerHeartbeatInterval_s),
                               rejection_.empty() ? deadline_ : rejected_until_);
    (void)poll(poll_fds.data(), poll_fds.size(), milliseconds_until(until));
  }

  void accept(AuthenticatedPeer peer) {
    if (peer.info.group != mine_.group) {
      if (rejection_.empty()) other_groups_[peer.info.rank] = peer.info.group;
      peer.connection.put(FrameKind::kOtherGroup, mine_.group);
      (void)peer.connection.exchange();  // a short frame, the first on its connection
      return;
    }
    peers_.push_back(std::move(peer));
    AuthenticatedPeer& added = peers_.back();
    if (rejection_.empty()) {
      std::string why = mismatch_of(mine_, added.info);
      if (why.empty()) why = duplicate_rank_error(added);
      if (!why.empty()) return reject_all(why);
      rank_peers_[number(added.info.rank)] = &added;
      ++ranks_joined_;
      added.connection.put(FrameKind::kAlive, {});  // proves to the client that this is rank 0
    } else {
      added.connection.put(FrameKind::kRejected, rejection_);
    }
    (void)added.connection.exchange();
  }

  std::string duplicate_rank_error(AuthenticatedPeer const& peer) const {
    AuthenticatedPeer const* const before = rank_peers_[number(peer.info.rank)];
    if (before == nullptr && peer.info.rank != mine_.rank) return {};
    return fmt::format("two processes have rank {}: {}, and {} (a rank is one process): give each process its own RANK",
                       number(peer.info.rank), describe(before == nullptr ? mine_.member : before->info.member),
                       describe(peer.info.member));
  }

  void receive_from(AuthenticatedPeer& peer) {
    if (!peer.connection.is_open()) return;
    std::string ended = peer.connection.exchange();
    try {
      while (auto const frame = peer.connection.next()) {
        peer.received_at = now();
        if (frame->kind != FrameKind::kAlive) ended = "it sent an invalid message";
      }
    } catch (FrameError const&) {
      ended = "it sent an invalid message";
    }
    if (ended.empty() && now() > after(peer.received_at, std::max(request_.failure_detector.peer_timeout_s, 5.0))) {
      ended = "its heartbeats have stopped";
    }
    if (ended.empty()) return;
    peer.connection.close();
    if (rejection_.empty()) {
      reject_all(fmt::format(
          "rank {} is lost, {}, before all ranks had joined: {} (training needs all of them): look at its output",
          number(peer.info.rank), describe(peer.info.member), ended));
    }
  }

  void send_heartbeats() {
    if (now() < after(heartbeat_sent_at_, kServerHeartbeatInterval_s)) return;
    heartbeat_sent_at_ = now();
    for (AuthenticatedPeer& peer : peers_) {
      if (rejection_.empty() && peer.connection.is_open() && !peer.connection.has_outgoing())
        peer.connection.put(FrameKind::kAlive, {});
    }
  }

  void reject_all(std::string const& why) {
    rejection_ = why;
    rejected_until_ = after(now(), kLateJoinGrace_s);
    for (AuthenticatedPeer& peer : peers_) {
      if (!peer.connection.is_open()) continue;
      peer.connection.put(FrameKind::kRejected, rejection_);
      (void)peer.connection.exchange();
    }
  }

  // Returns whether all ranks have read the rejection. They close their connections afterwards.
  bool all_informed() const {
    std::set<Rank> informed;
    for (AuthenticatedPeer const& peer : peers_) {
      if (peer.connection.is_open()) return false;
      informed.insert(peer.info.rank);
    }
    return informed.size() + 1 >= mine_.size;
  }

  std::string missing_ranks_error() const {
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 1; rank < rank_peers_.size(); ++rank) {
      if (rank_peers_[rank] == nullptr) ranks.push_back(rank);
    }
    std::size_t const named = std::min(ranks.size(), kListedMax);
    std::string text = fmt::format("{}", fmt::join(ranks.begin(), ranks.begin() + static_cast<long>(named), ", "));
    if (named < ranks.size()) text += fmt::format(" and {} others", ranks.size() - named);
    std::string why = fmt::format("training needs all of them, and rank 0 listens at {}", listen_address_text_);
    if (request_.launch.token.empty()) why += "; without a token only processes on the machine of rank 0 can join";
    for (std::size_t i = 0; i < named; ++i) {
      auto const other = other_groups_.find(Rank{static_cast<std::uint32_t>(ranks[i])});
      if (other == other_groups_.end()) continue;
      why += fmt::format("; rank {} joins {} and not {}", ranks[i], group_text(other->second), group_text(mine_.group));
      break;
    }
    if (!pending_connections_.rejected().empty())
      why += fmt::format("; rejected connections: {}", fmt::join(pending_connections_.rejected(), ", "));
    return fmt::format(
        "{} {} of {} did not join within {} s ({}): start them, look at their output, and give all ranks the same "
        "address and port",
        ranks.size() == 1 ? "rank" : "ranks", text, rank_peers_.size(), request_.timeout_s, why);
  }

  JoinResult start() {
    pending_connections_.close();  // before a rank can start to join the next group
    StartMessage start{.broadcast_data = request_.broadcast_data};
    std::string const session = random_bytes(sizeof start.session);
    std::memcpy(&start.session, session.data(), session.size());
    start.members.push_back(request_.mine);
    for (std::size_t rank = 1; rank < rank_peers_.size(); ++rank)
      start.members.push_back(rank_peers_[rank]->info.member);
    HashKey const keys = random_key();
    std::vector<Connection> connections;
    connections.emplace_back(Socket(), ConnectionSide::kRankZero);  // rank 0 has no connection to itself
    for (std::size_t rank = 1; rank < rank_peers_.size(); ++rank) {
      Connection& connection = rank_peers_[rank]->connection;
      start.keys = encrypt_keys(connection.key(), pair_keys(keys, rank_peers_[rank]->info.rank, rank_peers_.size()));
      connection.put(FrameKind::kStart, encode(start));
      (void)connection.exchange();
      connections.push_back(std::move(connection));
    }
    return {.rank = mine_.rank,
            .local_rank = request_.launch.local_rank,
            .members = std::move(start.members),
            .session = start.session,
            .keys = pair_keys(keys, mine_.rank, rank_peers_.size()),
            .broadcast_data = request_.broadcast_data,
            .failure_detector = make_failure_detector(request_.launch.rank, mine_.size, std::move(connections),
                                                      request_.failure_detector)};
  }

  JoinRequest const& request_;
  RankInfo mine_;
  TimePoint deadline_;
  std::string listen_address_text_;
  std::vector<AuthenticatedPeer*> rank_peers_;  // by rank; null: has not joined
  PendingConnections pending_connections_;
  std::list<AuthenticatedPeer> peers_;        // all authenticated peers, including rejected ones
  std::map<Rank, std::string> other_groups_;  // the groups that ranks have tried to join here, if it is not this one
  std::size_t ranks_joined_ = 0;
  TimePoint heartbeat_sent_at_ = now(), progressed_at_ = now();
  std::string rejection_;
  TimePoint rejected_until_{};
};

}  // namespace

JoinResult wait_serve_bootstrap(JoinRequest const& request, Listener listener, TimePoint deadline) {
  return BootstrapServer(request, std::move(listener), deadline).run();
}

}  // namespace gpups::comm
