// SPDX-License-Identifier: Apache-2.0
#include "comm/cluster/callers.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <iterator>
#include <utility>

#include "comm/cluster/greeting.hpp"
#include "comm/wire.hpp"

namespace gpups::comm {
namespace {

constexpr double kCallerTimeout_s = 5;
constexpr std::size_t kLinesMax = 20;  // on standard error
constexpr std::size_t kKeptMax = 4;    // for the message about ranks that have not come

}  // namespace

Callers::Callers(Listener listener, std::string token, std::size_t callers_max)
    : listener_(std::move(listener)), token_(std::move(token)), callers_max_(callers_max) {}

void Callers::add_to(std::vector<pollfd>& waiting) const {
  for (Socket const& socket : listener_.sockets()) waiting.push_back({socket.fd(), POLLIN, 0});
  for (Caller const& caller : callers_) {
    short const events = caller.link.has_outgoing() ? POLLIN | POLLOUT : POLLIN;
    waiting.push_back({caller.link.fd(), events, 0});
  }
}

void Callers::accept_all() {
  for (Socket const& socket : listener_.sockets()) {
    for (std::size_t i = 0; i <= callers_max_; ++i) {
      auto accepted = listener_.accept(socket);
      if (!accepted) break;
      // Who belongs to the job is done within two round trips, so the one who has been here longest goes.
      bool const is_full = !accepted->first.is_open() || callers_.size() >= callers_max_;
      if (is_full && !callers_.empty()) {
        refuse(callers_.front(), "it said nothing while many others came", "look for what connects to this port");
        callers_.pop_front();
      }
      if (!accepted->first.is_open()) break;
      callers_.push_back({.link = Link(std::move(accepted->first), Side::kRankZero),
                          .from = accepted->second.text(),
                          .greeting = make_greeting(),
                          .deadline = after(now(), kCallerTimeout_s)});
      callers_.back().link.put_clear(callers_.back().greeting);
    }
  }
}

std::vector<Guest> Callers::progress() {
  accept_all();
  std::vector<Guest> proved;
  for (auto at = callers_.begin(); at != callers_.end();) {
    Statement said;
    Outcome const outcome = progress(*at, said);
    if (outcome == Outcome::kProved) {
      proved.push_back({.link = std::move(at->link), .said = std::move(said), .heard_at = now()});
    }
    at = outcome == Outcome::kWaiting ? std::next(at) : callers_.erase(at);
  }
  return proved;
}

Callers::Outcome Callers::progress(Caller& caller, Statement& said) {
  Link& link = caller.link;
  std::string const ended = link.exchange();
  auto const refused = [&](std::string const& why, std::string const& what_to_do) {
    refuse(caller, why, what_to_do);
    return Outcome::kRefused;
  };
  if (!caller.greeted) {
    std::string const wrong = wrong_greeting(link.incoming());
    if (!wrong.empty()) return refused(wrong, "connect processes of this job only, and run the same build on all");
    if (link.incoming().size() >= kGreetingBytes) {
      link.set_key(session_key(token_, link.incoming().substr(0, kGreetingBytes), caller.greeting));
      link.consume(kGreetingBytes);
      caller.greeted = true;
    }
  }
  try {
    if (caller.greeted) {
      if (auto const frame = link.next()) {
        if (frame->kind != FrameKind::kHello) return refused("it did not say who it is", "run the same build on all");
        said = decode_statement(frame->body);
        return Outcome::kProved;
      }
    }
  } catch (WireError const&) {
    return refused("what it says cannot be read", "run the same build on all ranks");
  } catch (FrameError const&) {
    link.put(FrameKind::kOtherToken, {});
    (void)link.exchange();
    return refused("its token is another one", "give all ranks of the job the same token, and other jobs other ports");
  }
  if (!ended.empty()) return refused("it closed the connection before it had said who it is", "look at its output");
  if (now() >= caller.deadline) return refused("it was silent", "look for what connects to this port");
  return Outcome::kWaiting;
}

void Callers::refuse(Caller& caller, std::string const& why, std::string const& what_to_do) {
  std::string whom = caller.from;
  try {
    // Nothing of it is proved, but it helps to find the process.
    auto const frame = caller.greeted ? caller.link.unproved() : std::nullopt;
    if (frame && frame->kind == FrameKind::kHello) {
      whom += fmt::format(", which says that it is rank {}", number(decode_statement(frame->body).rank));
    }
  } catch (Error const&) {
  }
  if (refused_.size() < kKeptMax) refused_.push_back(fmt::format("{} ({})", whom, why));
  if (++told_ > kLinesMax) return;
  fmt::print(stderr, "gpups: refused {} ({}): {}{}\n", whom, why, what_to_do,
             told_ == kLinesMax ? "; further ones are not shown" : "");
}

}  // namespace gpups::comm
