// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/late_fetches.hpp"

#include <algorithm>
#include <utility>

namespace gpups::cache {

// -- requests of this rank --

void LateFetches::wait_fetch(PendingBatch& pending, std::optional<HomePlanner::Plan> const& own, HostKeys const& keys) {
  pending.sent = pending.is_late = true;
  Clock const clock = pending.batch->clock;
  if (own) {
    auto const id = next_fetch_++;
    auto& fetch = fetches_[id] = {.clock = clock, .home = state_.me, .routed = true};
    pending.routes[state_.me] = own->owners;
    expect_owners(fetch, pending);
    forward(state_.me, id, clock, *own);
    for (auto const& [owner, parts] : own->forwards) {
      for (auto const& part : parts) keys_ += part.keys.size();
    }
    ++pending.fetches;
  }
  for (auto const& [home, outgoing] : intents_.wait_encode_late(*pending.batch, keys)) {
    auto const id = next_fetch_++;
    fetches_[id] = {.clock = clock, .home = home, .routed = false, .unanswered = {home}};
    ++pending.fetches;
    keys_ += outgoing.keys();
    state_.messenger.send(home, {.kind = MessageKind::kLateFetch,
                                 .clock = clock,
                                 .id = id,
                                 .intents = outgoing.intents,
                                 .key_bytes = outgoing.bytes->size()});
    intents_.send_keys(home, outgoing, tag(Section::kLateFetchKeys, id, 0), &Traffic::late_fetches);
  }
  try_read(clock);
}

// Adds the other owners of a fetch to the ranks that must answer.
void LateFetches::expect_owners(Fetch& fetch, PendingBatch const& pending) {
  auto const route = pending.routes.find(fetch.home);
  if (route == pending.routes.end()) return;
  for (auto const& owners : route->second) {
    for (Rank const owner : owners) {
      if (owner != fetch.home && owner != state_.me) fetch.unanswered.insert(owner);
    }
  }
}

void LateFetches::on_answer(Rank from, Message const& message) {
  auto const found = fetches_.find(message.id);
  bool const from_home = found != fetches_.end() && from == found->second.home;
  if (found == fetches_.end() || message.clock != found->second.clock || (from_home && found->second.routed) ||
      (found->second.routed && !found->second.unanswered.contains(from)) || (!from_home && !message.routes.empty()) ||
      message.routes.size() > 1) {
    state_.throw_peer_error(from, "answered a late fetch that was not requested");
  }
  auto& answers = answers_[message.clock];
  if (std::any_of(answers.begin(), answers.end(),
                  [&](auto const& other) { return other.from == from && other.id == message.id; })) {
    state_.throw_peer_error(from, "answered a late fetch twice");
  }
  answers.push_back({from, message.id, message.sent});
  if (!from_home) return try_read(message.clock);
  router_.receive(from, message, tag(Section::kLateRoutes, message.id, 0), [this, id = message.id] {
    auto& fetch = fetches_.at(id);
    fetch.routed = true;
    expect_owners(fetch, state_.batches.at(fetch.clock));
    try_read(fetch.clock);
  });
}

// Reads the answers for a batch, if all of its homes have sent their routes.
void LateFetches::try_read(Clock clock) {
  auto& pending = state_.batches.at(clock);
  if (std::any_of(fetches_.begin(), fetches_.end(),
                  [=](auto const& fetch) { return fetch.second.clock == clock && !fetch.second.routed; })) {
    return;
  }
  if (!pending.routed) router_.wait_route(pending);
  for (auto const& answer : std::exchange(answers_[clock], {})) read(answer);
  answers_.erase(clock);
}

void LateFetches::read(Answer const& answer) {
  auto& fetch = fetches_.at(answer.id);
  if (!fetch.unanswered.contains(answer.from)) {
    state_.throw_peer_error(answer.from, "answered a late fetch that was not requested");
  }
  values_.receive(answer.from, state_.batches.at(fetch.clock), tag(Section::kLateFetchValues, answer.id, 0), fetch.home,
                  answer.sent, [this, from = answer.from, id = answer.id] {
                    auto const place = fetches_.find(id);
                    place->second.unanswered.erase(from);
                    if (!place->second.unanswered.empty()) return;
                    Clock const clock = place->second.clock;
                    fetches_.erase(place);
                    auto& pending = state_.batches.at(clock);
                    if (--pending.fetches > 0) return;
                    values_.wait_decode(pending);
                    arrived_(clock);
                  });
}

std::vector<Rank> LateFetches::pending_peers(Clock step) const {
  std::set<Rank> ranks;
  for (auto const& [id, fetch] : fetches_) {
    if (fetch.clock == step) ranks.insert(fetch.unanswered.begin(), fetch.unanswered.end());
  }
  return {ranks.begin(), ranks.end()};
}

// -- requests of other ranks --

// Sends the keys of rows that are away to their owners, which answer the reader.
void LateFetches::forward(Rank reader, std::uint64_t id, Clock clock, HomePlanner::Plan const& plan) {
  for (auto const& [owner, parts] : plan.forwards) {
    auto const outgoing = HomePlanner::wait_encode_late(state_.on_host, reader, clock, parts);
    auto const forward_id = next_forward_++;
    state_.messenger.send(owner, {.kind = MessageKind::kLateForward,
                                  .clock = clock,
                                  .id = id,
                                  .forward_id = forward_id,
                                  .forwards = outgoing.forwards,
                                  .key_bytes = outgoing.bytes->size()});
    state_.messenger.send_data(state_.on_host, owner, tag(Section::kLateForwardKeys, forward_id, 0),
                               outgoing.bytes->data(), outgoing.bytes->size(), &Traffic::late_fetches, outgoing.bytes);
  }
}

void LateFetches::on_request(Rank from, Message const& message) {
  if (message.intents.size() != 1 || message.intents[0].clock != message.clock) {
    state_.throw_peer_error(from, "sent a late fetch without its keys");
  }
  intents_.receive_late(from, message, [this, from, message](std::optional<HomePlanner::Plan> plan) {
    OutgoingRoutes routes;
    if (plan) {
      forward(from, message.id, message.clock, *plan);
      routes = planner_.encode_route(message.clock, *plan);
    }
    wait_answer({.of = {from, message.clock},
                 .home = state_.me,
                 .answer = {.kind = MessageKind::kLateFetchReply, .clock = message.clock, .id = message.id}},
                routes);
  });
}

void LateFetches::on_forward(Rank home, Message const& message) {
  if (message.forwards.size() != 1 || message.forwards[0].intent.clock != message.clock) {
    state_.throw_peer_error(home, "forwarded a late fetch without its keys");
  }
  intents_.receive_forwards(home, message, [this, home, message] {
    kernels::HostReads none(state_.stream);
    intents_.wait_find(none);
    wait_answer({.of = {message.forwards[0].reader, message.clock},
                 .home = home,
                 .answer = {.kind = MessageKind::kLateFetchReply, .clock = message.clock, .id = message.id}},
                {});
  });
}

// Answers a request, now or when the step before it is applied.
void LateFetches::wait_answer(LateRequest request, OutgoingRoutes const& routes) {
  if (state_.round.applied() < request.of.second - 1) return waiting_.emplace_back(std::move(request), routes), void();
  request.answer.routes = routes.routes;
  request.answer.route_bytes = routes.bytes->size();
  values_.wait_send_late(request.of, request.home, request.answer);
  state_.messenger.send_data(state_.on_host, request.of.first, tag(Section::kLateRoutes, request.answer.id, 0),
                             routes.bytes->data(), routes.bytes->size(), &Traffic::late_fetches, routes.bytes);
}

void LateFetches::wait_answer_waiting() {
  for (auto& [request, routes] : std::exchange(waiting_, {})) wait_answer(std::move(request), routes);
}

void LateFetches::on_message(Rank from, Message const& message) {
  if (from == state_.me) state_.throw_peer_error(from, "sent a message to itself");
  switch (message.kind) {
    case MessageKind::kLateFetch:
      return on_request(from, message);
    case MessageKind::kLateForward:
      return on_forward(from, message);
    default:
      return on_answer(from, message);
  }
}

}  // namespace gpups::cache
