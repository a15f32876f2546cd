// SPDX-License-Identifier: Apache-2.0
#include "comm/cluster/joiner.hpp"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "comm/cluster/greeting.hpp"
#include "comm/cluster/link.hpp"
#include "comm/cluster/meeting.hpp"
#include "comm/cluster/pair_keys.hpp"
#include "comm/cluster/star.hpp"
#include "comm/cluster/statement.hpp"
#include "comm/peer_text.hpp"
#include "comm/wire.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

constexpr double kConnect_s = 2;
constexpr double kGreeting_s = 3;
constexpr double kAnswer_s = 10;
constexpr double kAliveEvery_s = 0.5;
constexpr std::size_t kStartBytesMax = std::size_t{1} << 28;
constexpr std::size_t kRefusalBytesMax = std::size_t{1} << 16;  // that are shown; it may quote many callers

// Waits until something comes, or until then.
void wait_for(Link const& link, Time until) {
  pollfd waiting{link.fd(), static_cast<short>(link.has_outgoing() ? POLLIN | POLLOUT : POLLIN), 0};
  (void)poll(&waiting, 1, milliseconds_until(until));
}

class Joiner {
 public:
  explicit Joiner(JoinRequest const& request) : request_(request), deadline_(after(now(), request.timeout_s)) {}

  Joined run() {
    std::optional<Link> link;
    while (!(link = try_all())) {
      GPUPS_REQUIRE(now() < deadline_,
                    "rank 0 was not there within {} s (this is rank {}, and {}): start rank 0, or give all ranks the "
                    "address and port where it listens",
                    request_.timeout_s, number(request_.launch.rank), nobody_);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return wait_start(std::move(*link));
  }

 private:
  // One try at each of the addresses. Nothing where nobody listens at any; throws where somebody else than rank 0 does.
  std::optional<Link> try_all() {
    std::string wrong;
    for (Endpoint const& endpoint : wait_meeting_points(request_.launch, deadline_)) {
      Connected connected =
          wait_connect(endpoint, std::max(after(now(), 0.1), std::min(after(now(), kConnect_s), deadline_)));
      if (!connected.socket.is_open()) {
        nobody_ = fmt::format("{} says: {}", endpoint.text(), connected.error);
        continue;
      }
      Link link(std::move(connected.socket), Side::kOther);
      std::string const problem = introduce(link);
      if (problem.empty()) return link;
      if (wrong.empty())
        wrong = fmt::format("what listens at {} is not rank 0 of this job ({})", endpoint.text(), problem);
    }
    GPUPS_REQUIRE(wrong.empty(),
                  "{}: give all ranks of the job the same token, build, address and port, and other jobs other ones",
                  wrong);
    return {};
  }

  // Both sides prove who they are. Says what is wrong with the other one.
  std::string introduce(Link& link) {
    std::string const mine = make_greeting();
    link.put_clear(mine);
    Time const greeted_until = after(now(), kGreeting_s);
    while (link.incoming().size() < kGreetingBytes) {
      std::string const ended = link.exchange();
      std::string const wrong = wrong_greeting(link.incoming());
      if (!wrong.empty()) return wrong;
      if (link.incoming().size() >= kGreetingBytes) break;
      if (!ended.empty()) return "it closed the connection without a greeting";
      if (now() >= greeted_until) return "it is silent";
      wait_for(link, greeted_until);
    }
    link.set_key(session_key(request_.launch.token, mine, link.incoming().substr(0, kGreetingBytes)));
    link.consume(kGreetingBytes);
    link.put(FrameKind::kHello, encode(statement_of(request_)));
    return wait_proof(link);
  }

  std::string wait_proof(Link& link) {
    Time const until = after(now(), kAnswer_s);
    for (;;) {
      std::string const ended = link.exchange();
      try {
        if (auto const frame = link.unproved(); frame && frame->kind == FrameKind::kOtherToken) {
          return "its token is another one";
        }
        first_ = link.next();
      } catch (FrameError const&) {
        return "it did not prove that it has the same token";
      }
      if (first_) return {};
      if (!ended.empty()) return "it closed the connection without a proof that it has the same token";
      if (now() >= until) return "it is silent";
      wait_for(link, until);
    }
  }

  Joined wait_start(Link link) {
    link.set_body_bytes_max(kStartBytesMax);
    Time heard_at = now(), said_alive_at = now(), turned_at = now();
    for (;;) {
      // Who was stopped itself for long has not listened.
      if (now() > after(std::exchange(turned_at, now()), 4 * kAliveEvery_s)) heard_at = now();
      if (first_) {
        heard_at = now();
        if (first_->kind == FrameKind::kRefused) throw Error(peer_text(first_->body, kRefusalBytesMax));
        if (first_->kind == FrameKind::kStart) return start(first_->body, std::move(link));
      }
      std::string const ended = link.exchange();
      first_ = next(link);
      if (first_) continue;
      if (!ended.empty()) lost(ended);
      if (now() > after(heard_at, std::max(request_.watch.peer_timeout_s, 5.0)))
        lost("nothing is heard from it any more");
      if (now() >= after(said_alive_at, kAliveEvery_s)) {
        said_alive_at = now();
        if (!link.has_outgoing()) link.put(FrameKind::kAlive, {});
        continue;
      }
      wait_for(link, after(said_alive_at, kAliveEvery_s));
    }
  }

  std::optional<Frame> next(Link& link) {
    try {
      return link.next();
    } catch (FrameError const&) {
      lost("it sent what cannot be right");
    }
  }

  [[noreturn]] void lost(std::string const& why) {
    throw Error(
        fmt::format("rank 0 is lost, while rank {} waited for the other ranks: {} (nobody else can start the "
                    "job): look at the output of rank 0",
                    number(request_.launch.rank), why));
  }

  Joined start(std::string const& body, Link link) {
    Start start;
    std::vector<HashKey> keys;
    try {
      start = decode_start(body);
      keys = reveal(link.key(), start.keys);
    } catch (WireError const&) {
      lost("it sent what cannot be right");
    }
    if (!concerns(start, statement_of(request_)) || keys.size() != start.members.size())
      lost("it sent what cannot be right");
    std::vector<Link> links;
    links.push_back(std::move(link));
    auto const size = static_cast<std::uint32_t>(request_.launch.size);
    return {.rank = request_.launch.rank,
            .local_rank = request_.launch.local_rank,
            .members = std::move(start.members),
            .session = start.session,
            .keys = std::move(keys),
            .announcement = std::move(start.announcement),
            .watch = make_star(request_.launch.rank, size, std::move(links), request_.watch)};
  }

  JoinRequest const& request_;
  Time deadline_;
  std::string nobody_ = "nobody was asked";
  std::optional<Frame> first_;  // that came from rank 0 and was not looked at
};

}  // namespace

Joined wait_joiner(JoinRequest const& request) { return Joiner(request).run(); }

}  // namespace gpups::comm
