// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/policy.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <string>

#include "gpups/error.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/update/update_rows.hpp"

namespace gpups::cache {
namespace {

// Returns whether a row goes to rank `a` rather than `b` if both are as good. The order of ranks differs by row.
bool comes_first(Key key, Rank a, Rank b) {
  auto const order = [key](Rank rank) { return kernels::mix(number(key) ^ kernels::mix(number(rank) + 1)); };
  return order(a) < order(b);
}

// Moves a row to the rank that uses it most, if its owner does not use it in the step.
Rank relocate(Key key, Rank owner, std::span<RowUser const> users) {
  RowUser best{.rank = owner};
  for (auto const& user : users) {
    if (!user.uses_now()) continue;
    if (user.rank == owner) return owner;
    int const more = std::popcount(user.steps) - std::popcount(best.steps);
    if (more > 0 || (more == 0 && comes_first(key, user.rank, best.rank))) best = user;
  }
  return best.rank;
}

// Finds the owner with which ranks send the fewest bytes for all announced uses. The row may move again before each
// step that uses it, so this is a shortest path, which is found from the last step to the first.
class CheapestOwner {
 public:
  explicit CheapestOwner(RowBytes const& bytes) : bytes_(bytes) {}

  Rank find(Key key, Rank owner, std::span<RowUser const> users) {
    candidates_.assign(1, {{.rank = owner}});
    std::uint32_t any = 0, all = 0xFFFF;  // steps in which ranks use the row
    bool may_move = false;
    for (auto const& user : users) {
      if (user.rank == owner) {
        candidates_[0].user.steps = user.steps;
      } else {
        candidates_.push_back({user});
        may_move = may_move || user.uses_now();
      }
      any |= user.steps;
    }
    if (!may_move) return owner;
    // A later step in which all candidates use the row costs the same with each.
    for (auto const& one : candidates_) all &= one.user.steps;
    std::uint32_t const steps = (any & ~all) | 1;
    if (candidates_.size() == 2) return cheaper_of_two(steps);
    for (int step = std::bit_width(steps) - 1; step >= 0; --step) {
      if ((steps >> step & 1) != 0) add_step(step);
    }
    return cheapest(key);
  }

 private:
  struct Candidate {
    RowUser user;
    std::int64_t sent = 0;  // from a step on, if the rank owns the row in it, with the cheapest later owners
  };

  // The same for the owner and one other rank, which uses the row now. The difference of their costs decides, so this
  // needs no array of costs.
  Rank cheaper_of_two(std::uint32_t steps) const {
    RowUser const &owner = candidates_[0].user, &other = candidates_[1].user;
    std::int64_t const use = bytes_.read + bytes_.update;
    std::int64_t more = 0;  // what ranks send from a step on, if `owner` owns the row in it instead of `other`
    for (std::uint32_t left = steps; left != 0;) {
      int const step = std::bit_width(left) - 1;
      left &= ~(1U << step);
      int const uses = (other.steps >> step & 1) - (owner.steps >> step & 1);
      more = std::clamp(more, -bytes_.move, bytes_.move) + uses * use;
    }
    return more > bytes_.move ? other.rank : owner.rank;
  }

  // Puts a step before the later ones.
  void add_step(int step) {
    std::int64_t least = candidates_[0].sent;
    int users = 0;
    for (auto const& one : candidates_) {
      least = std::min(least, one.sent);
      users += one.user.steps >> step & 1;
    }
    for (auto& one : candidates_) {
      int const others = users - (one.user.steps >> step & 1);
      one.sent = std::min(one.sent, least + bytes_.move) + others * (bytes_.read + bytes_.update);
    }
  }

  // Returns the owner so far, or the cheapest rank that uses the row in the step that is decided.
  Rank cheapest(Key key) const {
    Rank best = candidates_[0].user.rank;
    std::int64_t least = candidates_[0].sent - bytes_.move;
    bool moves = false;
    for (auto const& one : std::span(candidates_).subspan(1)) {
      bool const is_less = one.sent < least || (one.sent == least && moves && comes_first(key, one.user.rank, best));
      if (!is_less || !one.user.uses_now()) continue;
      best = one.user.rank, least = one.sent, moves = true;
    }
    return best;
  }

  RowBytes bytes_;
  std::vector<Candidate> candidates_;  // the owner so far first
};

Rank choose_randomly(Rank owner, Key key, Clock step, std::span<RowUser const> users) {
  std::vector<Rank> ranks{owner};
  for (auto const& user : users) {
    if (user.uses_now() && user.rank != owner) ranks.push_back(user.rank);
  }
  std::sort(ranks.begin() + 1, ranks.end());
  auto const number_of_step = static_cast<std::uint64_t>(number(step));
  return ranks[kernels::mix(number(key) ^ kernels::mix(number_of_step)) % ranks.size()];
}

}  // namespace
}  // namespace gpups::cache

namespace gpups {

char const* name_of(PlacementPolicy policy) {
  switch (policy) {
    case PlacementPolicy::kStatic:
      return "static";
    case PlacementPolicy::kRelocate:
      return "relocate";
    case PlacementPolicy::kAdaptive:
      return "adaptive";
    case PlacementPolicy::kRandom:
      return "random";
  }
  return "unknown";
}

PlacementPolicy placement_policy(std::string_view name) {
  std::string names;
  for (auto const policy : kPlacementPolicies) {
    if (name == name_of(policy)) return policy;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(policy));
  }
  throw Error(fmt::format("there is no placement policy '{}' (the policies are {}): use one of them", name, names));
}

char const* name_of(PlacementReason reason) {
  switch (reason) {
    case PlacementReason::kHome:
      return "home";
    case PlacementReason::kLocalized:
      return "localized";
    case PlacementReason::kPolicy:
      return "policy";
  }
  return "unknown";
}

}  // namespace gpups

namespace gpups::cache {

RowBytes row_bytes(TableOptions const& table) {
  auto const value = static_cast<std::int64_t>(table.dim * kernels::bytes_of_number(table.value_type));
  auto const state = static_cast<std::int64_t>(kernels::state_columns(table.optimizer, table.dim) * sizeof(float));
  return {.read = value,
          .update = static_cast<std::int64_t>(table.dim * sizeof(float)),
          .move = value + state + static_cast<std::int64_t>(kernels::kLifecycleWords * sizeof(std::uint32_t))};
}

std::vector<Rank> choose_owners(PlacementPolicy policy, UsedRows const& rows) {
  std::vector<Rank> owners(rows.owners.begin(), rows.owners.end());
  if (policy == PlacementPolicy::kStatic) return owners;
  CheapestOwner cheapest(rows.bytes);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    auto const users = rows.users.subspan(rows.first_user[i], rows.first_user[i + 1] - rows.first_user[i]);
    switch (policy) {
      case PlacementPolicy::kStatic:
        break;
      case PlacementPolicy::kRelocate:
        owners[i] = relocate(rows.keys[i], owners[i], users);
        break;
      case PlacementPolicy::kAdaptive:
        owners[i] = cheapest.find(rows.keys[i], owners[i], users);
        break;
      case PlacementPolicy::kRandom:
        owners[i] = choose_randomly(owners[i], rows.keys[i], rows.step, users);
        break;
    }
  }
  return owners;
}

}  // namespace gpups::cache
