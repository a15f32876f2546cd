// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/replay.hpp"

#include "kernels/hash.hpp"

namespace gpups::cache {
namespace {

// Bytes of a key in an intent or a forward, if it is in the dictionary of both ends; measured.
constexpr double kKeyBytes = 1.5;
constexpr std::int64_t kFirstPlanned = 2;

}  // namespace

Rank PlacementReplay::home_of(Key key) const {
  return Rank{kernels::home_of(key, static_cast<std::uint32_t>(options_.ranks))};
}

void PlacementReplay::announce(Rank reader, Clock step, std::span<Key const> keys) {
  announced_[step].push_back({reader, {keys.begin(), keys.end()}});
}

// Counts what is sent for a row in the step.
void PlacementReplay::count(Key key, Rank before, Rank in_step, std::span<RowUser const> users,
                            ReplayedStep& step) const {
  Rank const home = home_of(key);
  auto const node_of = [&](Rank rank) { return number(rank) / static_cast<std::uint32_t>(options_.ranks_of_node); };
  auto const send = [&](Rank from, Rank to, double bytes) {
    (node_of(from) == node_of(to) ? step.from_node : step.from_others)[number(to)] += bytes;
  };
  bool const is_away = before != home || in_step != home;
  for (auto const& user : users) {
    if (!user.uses_now()) continue;
    ++step.keys;
    bool const arrives = before != in_step && user.rank == in_step;
    if (user.rank != home) step.key_bytes += kKeyBytes + (is_away ? 1 + 1.0 / 8 : 0);  // an intent, a route
    if (arrives) {
      ++step.moves;
      send(before, in_step, options_.bytes.move);
      if (before != home) step.key_bytes += kKeyBytes;
      continue;
    }
    if (user.rank != before) {
      ++step.reads;
      send(before, user.rank, options_.bytes.read);
      if (before != home) step.key_bytes += kKeyBytes;
    }
    if (user.rank != in_step) {
      ++step.updates;
      send(user.rank, in_step, options_.bytes.update);
      if (in_step != home && in_step != before) step.key_bytes += kKeyBytes;
    }
  }
}

ReplayedStep PlacementReplay::advance() {
  ReplayedStep step;
  for (auto* const bytes : {&step.from_node, &step.from_others}) {
    bytes->assign(static_cast<std::size_t>(options_.ranks), 0);
  }
  while (!announced_.empty() && announced_.begin()->first < next_ + kPolicyWindow) {
    auto const batches = announced_.extract(announced_.begin());
    for (auto const& [reader, keys] : batches.mapped()) uses_.add(View<Key const>(keys), batches.key(), reader);
  }
  auto const used = uses_.take(next_);
  std::vector<Rank> before;
  for (Key const key : used.keys) before.push_back(owners_.try_emplace(key, home_of(key)).first->second);
  auto const policy = number(next_) < kFirstPlanned ? PlacementPolicy::kStatic : options_.policy;
  auto const in_step = choose_owners(policy, {.step = next_,
                                              .bytes = options_.bytes,
                                              .keys = used.keys,
                                              .owners = before,
                                              .first_user = used.first,
                                              .users = used.users});
  for (std::size_t i = 0; i < in_step.size(); ++i) {
    auto const users = std::span(used.users).subspan(used.first[i], used.first[i + 1] - used.first[i]);
    count(used.keys[i], before[i], in_step[i], users, step);
    owners_[used.keys[i]] = in_step[i];
  }
  next_ = next_ + 1;
  return step;
}

std::vector<std::uint64_t> PlacementReplay::rows_owned() const {
  std::vector<std::uint64_t> rows(static_cast<std::size_t>(options_.ranks));
  for (auto const& [key, owner] : owners_) ++rows[number(owner)];
  return rows;
}

}  // namespace gpups::cache
