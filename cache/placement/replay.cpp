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
  uses_.add({keys.data(), keys.size(), Device::host()}, {step, reader});
}

// Counts what is sent for a row in the step.
void PlacementReplay::count(Key key, Rank before, Rank in_step, std::span<RowUse const> uses,
                            ReplayedStep& step) const {
  Rank const home = home_of(key);
  auto const node_of = [&](Rank rank) { return number(rank) / static_cast<std::uint32_t>(options_.ranks_of_node); };
  auto const send = [&](Rank from, Rank to, double bytes) {
    (node_of(from) == node_of(to) ? step.from_node : step.from_others)[number(to)] += bytes;
  };
  bool const is_away = before != home || in_step != home;
  for (auto const& use : uses) {
    if (use.step != next_) continue;
    ++step.keys;
    bool const arrives = before != in_step && use.reader == in_step;
    if (use.reader != home) step.key_bytes += kKeyBytes + (is_away ? 1 + 1.0 / 8 : 0);  // an intent, a route
    if (arrives) {
      ++step.moves;
      send(before, in_step, options_.bytes.move);
      if (before != home) step.key_bytes += kKeyBytes;
      continue;
    }
    if (use.reader != before) {
      ++step.reads;
      send(before, use.reader, options_.bytes.read);
      if (before != home) step.key_bytes += kKeyBytes;
    }
    if (use.reader != in_step) {
      ++step.updates;
      send(use.reader, in_step, options_.bytes.update);
      if (in_step != home && in_step != before) step.key_bytes += kKeyBytes;
    }
  }
}

ReplayedStep PlacementReplay::advance() {
  ReplayedStep step;
  for (auto* const bytes : {&step.from_node, &step.from_others}) {
    bytes->assign(static_cast<std::size_t>(options_.ranks), 0);
  }
  auto const used = uses_.take(next_);
  std::vector<Rank> before;
  for (Key const key : used.keys) before.push_back(owners_.try_emplace(key, home_of(key)).first->second);
  auto const policy = number(next_) < kFirstPlanned ? PlacementPolicy::kStatic : options_.policy;
  auto const in_step = choose_owners(policy, {.step = next_,
                                              .bytes = options_.bytes,
                                              .keys = used.keys,
                                              .owners = before,
                                              .first_use = used.first,
                                              .uses = used.uses});
  for (std::size_t i = 0; i < in_step.size(); ++i) {
    auto const uses = std::span(used.uses).subspan(used.first[i], used.first[i + 1] - used.first[i]);
    count(used.keys[i], before[i], in_step[i], uses, step);
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
