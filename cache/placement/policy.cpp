// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/policy.hpp"

#include <algorithm>

#include "kernels/hash.hpp"

namespace gpups::cache {
namespace {

// The announced uses of one row by one rank.
struct RankUses {
  Rank rank{};
  std::uint32_t uses = 0;
  bool now = false;  // uses the row in the step that is decided
};

// Counts the uses of one row by rank. Kept by the caller, so that memory is allocated once.
void count_uses(std::span<RowUse const> uses, Clock step, std::vector<RankUses>& counts) {
  counts.clear();
  for (auto const& use : uses) {
    auto found = std::find_if(counts.begin(), counts.end(), [&](auto const& one) { return one.rank == use.reader; });
    if (found == counts.end()) found = counts.insert(found, RankUses{.rank = use.reader});
    ++found->uses;
    found->now = found->now || use.step == step;
  }
  std::sort(counts.begin(), counts.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
}

// Moves a row to the rank that uses it most, if its owner does not use it in the step.
Rank relocate(Rank owner, std::vector<RankUses> const& counts) {
  RankUses best{.rank = owner};
  for (auto const& one : counts) {
    if (!one.now) continue;
    if (one.rank == owner) return owner;
    if (one.uses > best.uses) best = one;
  }
  return best.rank;
}

// Finds the owner with which ranks send the fewest bytes for all announced uses. The row may move again before each
// step that uses it, so this is a shortest path, which is found from the last step to the first.
class CheapestOwner {
 public:
  Rank find(Rank owner, std::span<RowUse const> uses, Clock step, RowBytes const& bytes) {
    uses_.assign(uses.begin(), uses.end());
    std::sort(uses_.begin(), uses_.end(),
              [](auto const& a, auto const& b) { return a.step != b.step ? a.step > b.step : a.reader < b.reader; });
    ranks_.assign(1, owner);
    for (auto const& use : uses_) ranks_.push_back(use.reader);
    std::sort(ranks_.begin() + 1, ranks_.end());
    ranks_.erase(std::unique(ranks_.begin() + 1, ranks_.end()), ranks_.end());
    sent_.assign(ranks_.size(), 0);
    for (auto first = uses_.begin(); first != uses_.end();) {
      auto const last = std::find_if(first, uses_.end(), [&](auto const& use) { return use.step != first->step; });
      add_step({first, last}, bytes);
      if (first->step == step) return cheapest({first, last}, owner, bytes);
      first = last;
    }
    return owner;
  }

 private:
  // Several parts of a batch may use a row.
  static std::ptrdiff_t uses(std::span<RowUse const> of_step, Rank rank) {
    return std::count_if(of_step.begin(), of_step.end(), [=](auto const& use) { return use.reader == rank; });
  }

  // sent_: what is sent from a step on with each owner, while later steps have the cheapest ones.
  void add_step(std::span<RowUse const> of_step, RowBytes const& bytes) {
    double const least = *std::min_element(sent_.begin(), sent_.end()) + bytes.move;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      auto const others = static_cast<double>(std::ssize(of_step) - uses(of_step, ranks_[i]));
      sent_[i] = std::min(sent_[i], least) + others * (bytes.read + bytes.update);
    }
  }

  Rank cheapest(std::span<RowUse const> of_step, Rank owner, RowBytes const& bytes) const {
    std::size_t best = 0;
    double least = sent_[0];
    for (std::size_t i = 1; i < ranks_.size(); ++i) {
      double const sent = sent_[i] + (ranks_[i] == owner ? 0 : bytes.move);
      if (sent >= least || uses(of_step, ranks_[i]) == 0) continue;
      best = i, least = sent;
    }
    return ranks_[best];
  }

  std::vector<RowUse> uses_;  // by step, descending
  std::vector<Rank> ranks_;   // the owner first
  std::vector<double> sent_;  // by rank
};

Rank choose_randomly(Rank owner, Key key, Clock step, std::vector<RankUses> const& counts) {
  std::vector<Rank> ranks{owner};
  for (auto const& one : counts) {
    if (one.now && one.rank != owner) ranks.push_back(one.rank);
  }
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

}  // namespace gpups

namespace gpups::cache {

std::vector<Rank> choose_owners(PlacementPolicy policy, UsedRows const& rows) {
  std::vector<Rank> owners(rows.owners.begin(), rows.owners.end());
  if (policy == PlacementPolicy::kStatic) return owners;
  std::vector<RankUses> counts;
  CheapestOwner cheapest;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    auto const first = rows.first_use[i];
    auto const uses = rows.uses.subspan(first, rows.first_use[i + 1] - first);
    if (policy != PlacementPolicy::kAdaptive) count_uses(uses, rows.step, counts);
    switch (policy) {
      case PlacementPolicy::kStatic:
        break;
      case PlacementPolicy::kRelocate:
        owners[i] = relocate(owners[i], counts);
        break;
      case PlacementPolicy::kAdaptive:
        owners[i] = cheapest.find(owners[i], uses, rows.step, rows.bytes);
        break;
      case PlacementPolicy::kRandom:
        owners[i] = choose_randomly(owners[i], rows.keys[i], rows.step, counts);
        break;
    }
  }
  return owners;
}

}  // namespace gpups::cache
