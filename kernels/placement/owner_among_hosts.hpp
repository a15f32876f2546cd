// SPDX-License-Identifier: Apache-2.0
// The owner of a row whose users are ranks of several hosts: a byte between hosts costs as much as several within one.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/base/hash.hpp"
#include "kernels/placement/choose_owners.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// A row, its home, its owner before the step, and its users. sent: (count), scratch.
struct RowWithUsers {
  Key key;
  Rank home, owner;
  RowUser const* users;
  std::uint32_t count;
  std::int64_t* sent;
};

// Whether rank `steps` uses the row in a step, as a number.
GPUPS_FN inline int uses(std::uint32_t steps, int step) { return static_cast<int>(steps >> step & 1); }

// Returns whether a row goes to rank `a` rather than `b` if both are as good. The order of ranks differs by row.
GPUPS_FN inline bool comes_first(Key key, Rank a, Rank b) {
  auto const order = [key](Rank rank) { return mix(number(key) ^ mix(std::uint64_t{number(rank)} + 1)); };
  return order(a) < order(b);
}

// The users of a row on one host, in a step.
struct UsersOfHost {
  std::uint32_t end;   // of the users, whose first one is given
  int uses;            // in the step, by any of them
  std::int64_t least;  // of `sent`
};

// Finds the cheapest owner as cheapest_owner() does. A use and a move cost `between` times as much if they lead to
// another host. The users of a host are one after another, so a step looks at each user four times.
class OwnerAmongHosts {
 public:
  GPUPS_FN OwnerAmongHosts(RowBytes const& bytes, RowWithUsers const& row, HostsOfRanks const& hosts)
      : row_(row),
        hosts_(hosts),
        bytes_(bytes),
        use_(bytes.read + bytes.update),
        move_(bytes.with_keys()),
        owner_host_(host_of(row.owner)) {}

  GPUPS_FN Rank cheapest() {
    std::uint32_t any = 0, now = 0;
    for (std::uint32_t u = 0; u < row_.count; ++u) {
      bool const owns = row_.users[u].rank == row_.owner;
      any |= row_.users[u].steps;
      now |= owns ? 0 : row_.users[u].steps;
      if (owns) owner_steps_ = row_.users[u].steps;
      row_.sent[u] = 0;
    }
    if ((now & 1) == 0) return row_.owner;
    for (std::uint32_t steps = any; steps != 0;) {
      int const step = std::bit_width(steps) - 1;
      steps ^= std::uint32_t{1} << step;
      add_step(step);
    }
    return best();
  }

 private:
  GPUPS_FN std::uint32_t host_of(Rank rank) const { return hosts_.host[number(rank)]; }
  // Returns what a byte from one rank to another costs.
  GPUPS_FN std::int64_t times(Rank from, Rank to) const { return host_of(from) == host_of(to) ? 1 : hosts_.between; }

  // Returns what a step costs that `owner` owns the row in, besides values and gradients. others: uses by other ranks.
  // routes: see routes_of().
  GPUPS_FN std::int64_t keys_of(Rank owner, int others, std::int64_t routes) const {
    if (owner == row_.home) return 0;
    return others * bytes_.forward * times(row_.home, owner) + routes;
  }
  // Returns what the routes of a step cost while the row is away from its home.
  GPUPS_FN std::int64_t routes_of(int step) const {
    std::int64_t routes = 0;
    for (std::uint32_t u = 0; u < row_.count; ++u) {
      if (row_.users[u].rank == row_.home) continue;
      routes += uses(row_.users[u].steps, step) * bytes_.route * times(row_.home, row_.users[u].rank);
    }
    return routes;
  }

  // Returns the users of the host of user `first`, and those after it.
  GPUPS_FN UsersOfHost users_from(std::uint32_t first, int step) const {
    std::uint32_t const host = host_of(row_.users[first].rank);
    UsersOfHost found{first, 0, row_.sent[first]};
    for (; found.end < row_.count && host_of(row_.users[found.end].rank) == host; ++found.end) {
      auto const& user = row_.users[found.end];
      found.uses += uses(user.steps, step);
      found.least = std::min(found.least, user.rank == row_.owner ? owner_sent_ : row_.sent[found.end]);
    }
    if (host == owner_host_) found.least = std::min(found.least, owner_sent_);
    return found;
  }

  // Adds what is sent in a step to that of later steps, for each owner.
  GPUPS_FN void add_step(int step) {
    int all = 0;
    std::int64_t least = owner_sent_;
    UsersOfHost own{0, 0, owner_sent_};
    for (std::uint32_t first = 0; first < row_.count;) {
      auto const of_host = users_from(first, step);
      all += of_host.uses;
      least = std::min(least, of_host.least);
      if (host_of(row_.users[first].rank) == owner_host_) own = of_host;
      first = of_host.end;
    }
    std::int64_t const routes = routes_of(step);
    auto const from = [&](std::int64_t sent, RowUser user, UsersOfHost const& of_host) {
      std::int64_t const later = std::min({sent, of_host.least + move_, least + hosts_.between * move_});
      int const used = uses(user.steps, step);
      return later + (of_host.uses - used + hosts_.between * (all - of_host.uses)) * use_ +
             keys_of(user.rank, all - used, routes);
    };
    std::int64_t const owner_sent = from(owner_sent_, {row_.owner, owner_steps_}, own);
    for (std::uint32_t first = 0; first < row_.count;) {
      auto const of_host = users_from(first, step);
      for (; first < of_host.end; ++first) row_.sent[first] = from(row_.sent[first], row_.users[first], of_host);
    }
    owner_sent_ = owner_sent;
  }

  GPUPS_FN Rank best() const {
    Rank best = row_.owner;
    std::int64_t least = owner_sent_;
    for (std::uint32_t u = 0; u < row_.count; ++u) {
      RowUser const user = row_.users[u];
      if (user.rank == row_.owner || !user.uses_now()) continue;
      std::int64_t const sent = row_.sent[u] + times(row_.owner, user.rank) * move_;
      bool const is_equal = sent == least && best != row_.owner;
      if (sent < least || (is_equal && comes_first(row_.key, user.rank, best))) best = user.rank, least = sent;
    }
    return best;
  }

  RowWithUsers const& row_;
  HostsOfRanks const& hosts_;
  RowBytes const& bytes_;
  std::int64_t use_, move_, owner_sent_ = 0;
  std::uint32_t owner_host_, owner_steps_ = 0;
};

}  // namespace gpups::kernels
