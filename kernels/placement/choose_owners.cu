// SPDX-License-Identifier: Apache-2.0
#include "kernels/placement/choose_owners.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/placement/owner_among_hosts.hpp"
#include "kernels/placement/row_owners.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

// Moves a row to the rank that uses it most, if its owner does not use it in the step.
GPUPS_FN inline Rank most_frequent_user(RowWithUsers const& row) {
  RowUser best{row.owner, 0};
  for (std::uint32_t u = 0; u < row.count; ++u) {
    RowUser const user = row.users[u];
    if (!user.uses_now()) continue;
    if (user.rank == row.owner) return row.owner;
    int const more = std::popcount(user.steps) - std::popcount(best.steps);
    if (more > 0 || (more == 0 && comes_first(row.key, user.rank, best.rank))) best = user;
  }
  return best.rank;
}

// The owner, or the one other rank that uses the row, which uses it now. What ranks send from a step on, if `owner`
// owns the row in it instead of `other`, is more by
//   more(step) = uses of the step by `other` instead of `owner` + clamp(more(step + 1), -move, move).
// `other` is cheaper if more(0) > move. steps: in which they use the row. The first ones mostly decide.
GPUPS_FN inline Rank cheaper_of_two(RowBytes const& bytes, Rank home, RowUser owner, RowUser other,
                                    std::uint32_t steps) {
  // A use by one rank while the other owns the row sends a value, a gradient and, if the owner is away, a forward. A
  // use by the rank that is not the home also sends a route while this rank owns the row.
  std::int64_t const use = bytes.read + bytes.update, move = bytes.with_keys(), away = use + bytes.forward,
                     saved = use - bytes.route;
  std::int64_t const of_other = owner.rank == home ? saved : away, of_owner = other.rank == home ? saved : away;
  std::int64_t bound = move;  // more(step) has to be above it
  for (; steps != 0; steps &= steps - 1) {
    std::uint32_t const step = steps & (0 - steps);  // the first bit
    bound -= ((other.steps & step) != 0 ? of_other : 0) - ((owner.steps & step) != 0 ? of_owner : 0);
    if (bound >= move) return owner.rank;
    if (bound < -move) return other.rank;
  }
  return bound < 0 ? other.rank : owner.rank;
}

// Finds the owner with which ranks send the fewest bytes for all announced uses. The row may move again before each
// step that uses it, so this is a shortest path, which is found from the last step to the first. sent[u]: the bytes
// from a step on, if user u owns the row in it, with the cheapest later owners.
GPUPS_FN inline Rank cheapest_owner(RowBytes const& bytes, RowWithUsers const& row) {
  RowUser owner{row.owner, 0};
  std::uint32_t any = 0, now = 0, others = 0;  // steps in which any rank and others use the row; number of others
  std::uint32_t at_home = 0;                   // steps in which the home uses it
  RowUser other{};
  for (std::uint32_t u = 0; u < row.count; ++u) {
    RowUser const user = row.users[u];
    bool const owns = user.rank == row.owner;
    any |= user.steps;
    now |= select(owns, 0, user.steps);
    others += select(owns, 0, 1);
    owner.steps = select(owns, user.steps, owner.steps);
    at_home |= select(user.rank == row.home, user.steps, 0);
    other = {Rank{select(owns, number(other.rank), number(user.rank))}, select(owns, other.steps, user.steps)};
  }
  if ((now & 1) == 0) return row.owner;  // the row cannot move
  std::uint32_t steps = any;
  if (others == 1) return cheaper_of_two(bytes, row.home, owner, other, steps);

  for (std::uint32_t u = 0; u < row.count; ++u) row.sent[u] = 0;
  std::int64_t const use = bytes.read + bytes.update, move = bytes.with_keys();
  std::int64_t owner_sent = 0;
  while (steps != 0) {
    int const step = std::bit_width(steps) - 1;
    steps ^= std::uint32_t{1} << step;
    std::int64_t least = owner_sent;
    int users = uses(owner.steps, step);
    for (std::uint32_t u = 0; u < row.count; ++u) {
      if (row.users[u].rank == row.owner) continue;
      least = std::min(least, row.sent[u]);
      users += uses(row.users[u].steps, step);
    }
    std::int64_t const routes = (users - uses(at_home, step)) * bytes.route;
    auto const from = [&](std::int64_t sent, RowUser user) {
      std::int64_t const later = std::min(sent, least + move), by_others = users - uses(user.steps, step);
      return later + by_others * use + (user.rank == row.home ? 0 : by_others * bytes.forward + routes);
    };
    owner_sent = from(owner_sent, owner);
    for (std::uint32_t u = 0; u < row.count; ++u) row.sent[u] = from(row.sent[u], row.users[u]);
  }
  Rank best = row.owner;
  std::int64_t least = owner_sent - move;
  bool moves = false;
  for (std::uint32_t u = 0; u < row.count; ++u) {
    RowUser const user = row.users[u];
    if (user.rank == row.owner || !user.uses_now()) continue;
    bool const is_less =
        row.sent[u] < least || (row.sent[u] == least && moves && comes_first(row.key, user.rank, best));
    if (!is_less) continue;
    best = user.rank, least = row.sent[u], moves = true;
  }
  return best;
}

// Any of the owner and the other ranks that use the row in the step, by a hash of key and step.
GPUPS_FN inline Rank random_owner(RowWithUsers const& row, Clock step) {
  auto const is_other = [&](std::uint32_t u) { return row.users[u].uses_now() && row.users[u].rank != row.owner; };
  std::uint32_t others = 0;
  for (std::uint32_t u = 0; u < row.count; ++u) others += is_other(u) ? 1 : 0;
  auto const chosen = mix(number(row.key) ^ mix(static_cast<std::uint64_t>(number(step)))) % (others + 1);
  for (std::uint32_t u = 0; u < row.count && chosen > 0; ++u) {
    std::uint32_t smaller = 0;
    for (std::uint32_t v = 0; v < row.count; ++v) smaller += is_other(v) && row.users[v].rank < row.users[u].rank;
    if (is_other(u) && smaller + 1 == chosen) return row.users[u].rank;
  }
  return row.owner;
}

GPUPS_FN inline Rank choose_owner(RowsOfTable const& table, RowWithUsers const& row, HostsOfRanks const& hosts,
                                  Clock step) {
  switch (table.policy) {
    case PlacementPolicy::kStatic:
    case PlacementPolicy::kAuto:  // a store has replaced it by one of the others
      break;
    case PlacementPolicy::kRelocate:
      return most_frequent_user(row);
    case PlacementPolicy::kAdaptive:
      return hosts.host == nullptr ? cheapest_owner(table.bytes, row)
                                   : OwnerAmongHosts(table.bytes, row, hosts).cheapest();
    case PlacementPolicy::kRandom:
      return random_owner(row, step);
  }
  return row.owner;
}

template <Space S>
void run(Exec<S> ex, ChooseOwners const& c) {
  GPUPS_ASSERT(c.sent.size() >= c.users.size());
  SegmentList const tables(ex, std::vector<RowsOfTable>(c.tables.begin(), c.tables.end()),
                           [](RowsOfTable const& table) { return table.size; });
  each_item(ex, tables.segments(),
            [step = c.step, keys = c.keys, owners = c.owners, first_user = c.first_user, user_count = c.user_count,
             users = c.users, sent = c.sent, hosts = c.hosts, ranks = c.ranks,
             chosen = c.chosen] GPUPS_FN(RowsOfTable const& table, std::size_t i) {
              std::size_t const d = table.first + i;
              if (table.policy == PlacementPolicy::kStatic) return void(chosen[d] = owners[d]);
              std::uint32_t const first = first_user[d];
              RowWithUsers const row{.key = keys[d],
                                     .home = Rank{home_of(keys[d], ranks)},
                                     .owner = Rank{owners[d]},
                                     .users = users.data() + first,
                                     .count = user_count[d],
                                     .sent = sent.data() + first};
              chosen[d] = number(choose_owner(table, row, hosts, step));
            });
}

GPUPS_KERNEL(choose_owners, ChooseOwners)

}  // namespace gpups::kernels
