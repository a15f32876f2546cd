// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/exchange/late_fetches.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"

namespace gpups::cache {

void LateFetches::run_or_keep(std::function<bool()> task) {
  if (!task()) waiting_.push_back(std::move(task));
}

void LateFetches::wait_continue() {
  for (auto& task : std::exchange(waiting_, {})) run_or_keep(std::move(task));
}

// -- requests of this rank --

void LateFetches::wait_fetch(PendingBatch& pending, std::vector<PartKeys> const& own) {
  GPUPS_ASSERT(!pending.sent && pending.fetches == 0);
  pending.sent = pending.is_late = true;
  Clock const clock = pending.batch->clock;
  ++pending.fetches;  // until try_read() has read the routes
  unread_.insert(clock);
  for (auto const& [home, outgoing] : intents_.wait_encode_late(*pending.batch)) {
    auto const id = next_fetch_++;
    fetches_[id] = {.clock = clock, .home = home, .routed = false, .unanswered = {home}};
    ++pending.fetches;
    keys_ += outgoing.keys;
    state_.messenger.send(home, LateFetch{.id = id, .intent = outgoing.intents[0], .key_bytes = outgoing.key_bytes()});
    send_keys(state_, home, outgoing, tag(Section::kLateFetchKeys, id, 0), &Traffic::late_fetches);
  }
  if (state_.placement.any_moved) {
    unplanned_.insert(clock);
    run_or_keep([this, clock, own] {
      if (!planner_.is_planned(clock)) return false;
      wait_plan_own(clock, own);
      return true;
    });
  }
  run_or_keep([this, clock] { return try_read(clock); });
}

// Requests the rows of this home that are away.
void LateFetches::wait_plan_own(Clock clock, std::vector<PartKeys> const& own) {
  unplanned_.erase(clock);
  auto const plan = planner_.wait_plan_late(state_.me, clock, own);
  if (!plan.route) return;
  auto& pending = state_.batches.at(clock);
  GPUPS_ASSERT(!pending.routed && pending.fetches > 0);  // try_read() waits for the plan of this home
  pending.routes[state_.me] = *plan.route;
  auto const id = next_fetch_++;
  auto& fetch = fetches_[id] = {.clock = clock, .home = state_.me, .routed = true};
  wait_expect_owners(fetch, pending);
  ++pending.fetches;
  for (auto const& [owner, parts] : plan.forwards) {
    for (auto const& part : parts) keys_ += part.keys.size();
  }
  forward(id, plan);
}

// Adds the other owners of a fetch to the ranks that must answer.
void LateFetches::wait_expect_owners(Fetch& fetch, PendingBatch const& pending) {
  auto const route = pending.routes.find(fetch.home);
  if (route == pending.routes.end()) return;
  std::uint32_t const bytes = rank_bytes(state_.ranks);
  for (auto const& part : route->second.parts) {
    if (part.before.empty()) continue;
    auto const owners = to_host(state_.stream, part.before);
    for (std::size_t i = 0; i < owners.size() / bytes; ++i) {
      Rank const owner{kernels::read_rank(owners.data(), i, bytes)};
      if (number(owner) >= static_cast<std::uint32_t>(state_.ranks)) {
        state_.throw_peer_error(fetch.home, "sent a route to a rank that does not exist");
      }
      if (owner != fetch.home && owner != state_.me) fetch.unanswered.insert(owner);
    }
  }
}

void LateFetches::on_message(Rank from, LateFetchReply const& message) {
  auto const found = fetches_.find(message.id);
  bool const from_home = found != fetches_.end() && from == found->second.home;
  if (found == fetches_.end() || message.clock != found->second.clock || (from_home && found->second.routed) ||
      (found->second.routed && !found->second.unanswered.contains(from)) ||
      (!from_home && !message.routes.batches.empty()) || message.routes.batches.size() > 1) {
    state_.throw_peer_error(from, "answered a late fetch that was not requested");
  }
  if (!found->second.answered.insert(from).second) state_.throw_peer_error(from, "answered a late fetch twice");
  answers_[message.clock].push_back({from, message.id, message.sent});
  if (!from_home) return run_or_keep([this, clock = message.clock] { return try_read(clock); });
  router_.receive(from, message.clock, message.routes, tag(Section::kLateRoutes, message.id, 0),
                  [this, id = message.id] {
                    auto& fetch = fetches_.at(id);
                    fetch.routed = true;
                    wait_expect_owners(fetch, state_.batches.at(fetch.clock));
                    run_or_keep([this, clock = fetch.clock] { return try_read(clock); });
                  });
}

// Reads the answers for a batch, if all of its homes have sent their routes. If rows move, those of this rank are known
// when the step before is complete. Returns false if it must be called again later, other than for an answer.
bool LateFetches::try_read(Clock clock) {
  auto const place = state_.batches.find(clock);
  if (place == state_.batches.end()) return true;
  auto& pending = place->second;
  if (unplanned_.contains(clock) || (state_.rows_move() && state_.round.complete_before() < clock)) return false;
  if (std::any_of(fetches_.begin(), fetches_.end(),
                  [=](auto const& fetch) { return fetch.second.clock == clock && !fetch.second.routed; })) {
    return true;
  }
  if (!pending.routed) router_.wait_route(pending);
  for (auto const& answer : std::exchange(answers_[clock], {})) read(answer);
  answers_.erase(clock);
  if (unread_.erase(clock) > 0) finish_one(clock);
  return true;
}

// Ends one of the fetches that a batch waits for.
void LateFetches::finish_one(Clock clock) {
  auto& pending = state_.batches.at(clock);
  GPUPS_ASSERT(pending.routed && pending.fetches > 0);
  if (--pending.fetches > 0) return;
  values_.wait_decode(pending);
  arrived_(clock);
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
                    finish_one(clock);
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
void LateFetches::forward(std::uint64_t id, HomePlanner::LatePlan const& plan) {
  for (auto const& [owner, keys] : plan.forwards) {
    auto const outgoing = encode_late(plan, keys);
    auto const forward_id = next_forward_++;
    state_.messenger.send(
        owner,
        LateForward{
            .id = id, .forward_id = forward_id, .forward = outgoing.forwards[0], .key_bytes = outgoing.key_bytes()});
    send_keys(state_, owner, outgoing, tag(Section::kLateForwardKeys, forward_id, 0), &Traffic::late_fetches);
  }
}

void LateFetches::on_message(Rank from, LateFetch const& message) {
  ReaderBatchId const of{from, message.intent.clock};
  announced_.receive_late(from, message, [this, of, id = message.id](std::vector<PartKeys> const& keys) {
    run_or_keep([this, of, id, keys] {
      auto const& [reader, clock] = of;
      if (!planner_.is_planned(clock)) return false;
      auto const plan = planner_.wait_plan_late(reader, clock, keys);
      announced_.take_planned(reader, clock, {upload_keys(state_.stream, plan.own)});
      forward(id, plan);
      LateRequest request{.of = of, .home = state_.me, .id = id};
      if (plan.route) request.routes = {{late_route(clock, *plan.route)}, {*plan.route}};
      answer_in_time(request);
      return true;
    });
  });
}

void LateFetches::on_message(Rank home, LateForward const& message) {
  ReaderBatchId const of{message.forward.reader, message.forward.intent.clock};
  announced_.receive_late_forward(
      home, message, [this, of, home, id = message.id] { answer_in_time({.of = of, .home = home, .id = id}); });
}

// Answers a request, now or when the step before it is applied or, if rows move, complete.
void LateFetches::answer_in_time(LateRequest const& request) {
  run_or_keep([this, request] {
    auto const& [of, home, id, routes] = request;
    auto const& [reader, step] = of;
    if (state_.rows_move() ? state_.round.complete_before() < step : state_.round.applied() < step - 1) return false;
    GPUPS_ASSERT(state_.reader_batches.at(of).homes.at(home).keys_received);
    auto const parts = finder_.wait_find_late(of, home);
    values_.wait_send_late(of, parts, {.clock = step, .id = id, .routes = routes.header()});
    send_routes(state_, reader, routes, tag(Section::kLateRoutes, id, 0), &Traffic::late_fetches);
    return true;
  });
}

}  // namespace gpups::cache
