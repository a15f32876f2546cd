// SPDX-License-Identifier: Apache-2.0
#include "comm/cluster/host.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <set>
#include <utility>

#include "comm/cluster/callers.hpp"
#include "comm/cluster/pair_keys.hpp"
#include "comm/cluster/secret.hpp"
#include "comm/cluster/star.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

constexpr double kAliveEvery_s = 0.5;  // to those who wait
constexpr double kLinger_s = 2;        // after a refusal, for those who come late
constexpr std::size_t kNamedMax = 10;  // of the ranks that are missing

// Where other ranks should look for rank 0.
std::string meeting_point(JoinRequest const& request, int port) {
  Launch const& launch = request.launch;
  std::string host = launch.hosts.empty() ? request.mine.host : launch.hosts.front();
  if (launch.token.empty()) host = "127.0.0.1";
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

class Host {
 public:
  Host(JoinRequest const& request, Listener listener)
      : request_(request),
        mine_(statement_of(request)),
        deadline_(after(now(), request.timeout_s)),
        listens_at_(meeting_point(request, listener.port())),
        places_(mine_.size, nullptr),
        callers_(std::move(listener), request.launch.token, 64 + 2 * places_.size()) {}

  Joined run() {
    while (came_ + 1 < mine_.size || !refusal_.empty()) {
      wait_for_something();
      // Who was stopped itself for long has not listened.
      if (now() > after(std::exchange(turned_at_, now()), 4 * kAliveEvery_s)) {
        for (Guest& guest : guests_) guest.heard_at = now();
      }
      for (Guest& guest : callers_.progress()) admit(std::move(guest));
      for (Guest& guest : guests_) listen_to(guest);
      say_alive();
      if (refusal_.empty() && now() >= deadline_) refuse_all(missing());
      if (!refusal_.empty() && (now() >= refused_until_ || all_told())) throw Error(refusal_);
    }
    return start();
  }

 private:
  void wait_for_something() {
    std::vector<pollfd> waiting;
    callers_.add_to(waiting);
    for (Guest const& guest : guests_) {
      if (!guest.link.is_open()) continue;
      short const events = guest.link.has_outgoing() ? POLLIN | POLLOUT : POLLIN;
      waiting.push_back({guest.link.fd(), events, 0});
    }
    Time until = std::min(after(said_alive_at_, kAliveEvery_s), refusal_.empty() ? deadline_ : refused_until_);
    (void)poll(waiting.data(), waiting.size(), milliseconds_until(until));
  }

  void admit(Guest guest) {
    guests_.push_back(std::move(guest));
    Guest& added = guests_.back();
    if (refusal_.empty()) {
      std::string why = disagreement(mine_, added.said);
      if (why.empty()) why = twice(added);
      if (!why.empty()) return refuse_all(why);
      places_[number(added.said.rank)] = &added;
      ++came_;
      added.link.put(FrameKind::kAlive, {});  // which proves to it that this is rank 0
    } else {
      added.link.put(FrameKind::kRefused, refusal_);
    }
    (void)added.link.exchange();
  }

  std::string twice(Guest const& guest) const {
    Guest const* const before = places_[number(guest.said.rank)];
    if (before == nullptr && guest.said.rank != mine_.rank) return {};
    return fmt::format(
        "two processes say that they are rank {}: {}, and {} (a rank is one process): give each process "
        "its own RANK",
        number(guest.said.rank), who(before == nullptr ? mine_.member : before->said.member), who(guest.said.member));
  }

  void listen_to(Guest& guest) {
    if (!guest.link.is_open()) return;
    std::string ended = guest.link.exchange();
    try {
      while (auto const frame = guest.link.next()) {
        guest.heard_at = now();
        if (frame->kind != FrameKind::kAlive) ended = "it sent what cannot be right";
      }
    } catch (FrameError const&) {
      ended = "it sent what cannot be right";
    }
    if (ended.empty() && now() > after(guest.heard_at, std::max(request_.watch.peer_timeout_s, 5.0))) {
      ended = "nothing is heard from it any more";
    }
    if (ended.empty()) return;
    guest.link.close();
    if (refusal_.empty()) {
      refuse_all(
          fmt::format("rank {} is lost, {}, before all ranks had come: {} (training needs all of them): look at "
                      "its output",
                      number(guest.said.rank), who(guest.said.member), ended));
    }
  }

  void say_alive() {
    if (now() < after(said_alive_at_, kAliveEvery_s)) return;
    said_alive_at_ = now();
    for (Guest& guest : guests_) {
      if (refusal_.empty() && guest.link.is_open() && !guest.link.has_outgoing()) guest.link.put(FrameKind::kAlive, {});
    }
  }

  void refuse_all(std::string const& why) {
    refusal_ = why;
    refused_until_ = after(now(), kLinger_s);
    for (Guest& guest : guests_) {
      if (!guest.link.is_open()) continue;
      guest.link.put(FrameKind::kRefused, refusal_);
      (void)guest.link.exchange();
    }
  }

  // They close their connections when they have read why.
  bool all_told() const {
    std::set<Rank> told;
    for (Guest const& guest : guests_) {
      if (guest.link.is_open()) return false;
      told.insert(guest.said.rank);
    }
    return told.size() + 1 >= mine_.size;
  }

  std::string missing() const {
    std::vector<std::size_t> ranks;
    for (std::size_t rank = 1; rank < places_.size(); ++rank) {
      if (places_[rank] == nullptr) ranks.push_back(rank);
    }
    std::size_t const named = std::min(ranks.size(), kNamedMax);
    std::string text = fmt::format("{}", fmt::join(ranks.begin(), ranks.begin() + static_cast<long>(named), ", "));
    if (named < ranks.size()) text += fmt::format(" and {} others", ranks.size() - named);
    std::string why = fmt::format("training needs all of them, and rank 0 listens at {}", listens_at_);
    if (request_.launch.token.empty()) why += "; without a token only processes of rank 0's machine can come";
    if (!callers_.refused().empty()) why += fmt::format("; refused were {}", fmt::join(callers_.refused(), ", "));
    return fmt::format(
        "{} {} of {} did not come within {} s ({}): start them, look at their output, and give all ranks the same "
        "address and port",
        ranks.size() == 1 ? "rank" : "ranks", text, places_.size(), request_.timeout_s, why);
  }

  Joined start() {
    Start start{.announcement = request_.announcement};
    std::string const session = random_bytes(sizeof start.session);
    std::memcpy(&start.session, session.data(), session.size());
    start.members.push_back(request_.mine);
    for (std::size_t rank = 1; rank < places_.size(); ++rank) start.members.push_back(places_[rank]->said.member);
    HashKey const keys = random_key();
    std::vector<Link> links;
    links.emplace_back(Socket(), Side::kRankZero);  // of rank 0 to itself
    for (std::size_t rank = 1; rank < places_.size(); ++rank) {
      Link& link = places_[rank]->link;
      start.keys = hide(link.key(), pair_keys(keys, places_[rank]->said.rank, places_.size()));
      link.put(FrameKind::kStart, encode(start));
      (void)link.exchange();
      links.push_back(std::move(link));
    }
    return {.rank = mine_.rank,
            .local_rank = request_.launch.local_rank,
            .members = std::move(start.members),
            .session = start.session,
            .keys = pair_keys(keys, mine_.rank, places_.size()),
            .announcement = request_.announcement,
            .watch = make_star(request_.launch.rank, mine_.size, std::move(links), request_.watch)};
  }

  JoinRequest const& request_;
  Statement mine_;
  Time deadline_;
  std::string listens_at_;
  std::vector<Guest*> places_;  // by rank; null: has not come
  Callers callers_;
  std::list<Guest> guests_;  // all who have proved, also those who have no place
  std::size_t came_ = 0;
  Time said_alive_at_ = now(), turned_at_ = now();
  std::string refusal_;
  Time refused_until_{};
};

}  // namespace

Joined wait_host(JoinRequest const& request, Listener listener) { return Host(request, std::move(listener)).run(); }

}  // namespace gpups::comm
