// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/interactions/interaction_set.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <tuple>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/base/random.hpp"
#include "trainer/input/named_files.hpp"
#include "trainer/input/table_reader.hpp"
#include "trainer/tasks/common/odd_names.hpp"
#include "trainer/tasks/common/user_and_item.hpp"
#include "trainer/tasks/interactions/interaction_rows.hpp"

namespace gpups::trainer {
namespace {

using Pairs = std::vector<Interaction>;

bool is_before(Interaction const& a, Interaction const& b) {
  return std::tie(a.user, a.item) < std::tie(b.user, b.item);
}

constexpr TableKind kInteractions{.columns = kUserAndItem, .separator = "blanks", .takes_rest = true};

// Returns the interactions of the files that a setting names, in their order, with new names added to the set. trains:
// they are those of data.train.
Pairs read_pairs(DataConfig const& config, std::string const& file, SameColumns& same, InteractionSet& set,
                 std::vector<std::string>& notices, bool trains) {
  Pairs pairs;
  bool lists = false;
  for (std::filesystem::path const& path : files_named(config.folder, file, notices)) {
    TableReader reader(path, config.table, kInteractions);
    same.check(reader.layout(), path.string());
    lists = lists || (config.table.columns.empty() && reader.layout().takes_rest);
    if (config.table.columns.empty() && reader.layout().takes_rest) require_lists(reader.first_rows(), path.string());
    say_dates(reader.first_rows(), reader.layout(), path.string(), notices);
    std::uint64_t users_alone = 0, lines = 0;
    for (std::vector<std::string_view> fields; reader.next(fields); ++lines) {
      if (fields.size() < 2) {
        ++users_alone;
        continue;
      }
      std::uint32_t const user = set.users.add(fields[0]);
      for (std::size_t i = 1; i < fields.size(); ++i) pairs.push_back({user, set.items.add(fields[i])});
    }
    reader.finish(config.bad_share_max, reader.layout().takes_rest ? "a user and items" : "a user and an item",
                  notices);
    GPUPS_REQUIRE(
        !trains || 2 * users_alone <= lines,
        "{} has {} with a user and no item, of {} (a line is a user and the items that the user chose, {}): check "
        "the file, and data.separator",
        path.string(), with_count(users_alone, "line"), lines, reader.layout().divided);
    if (users_alone > 0) {
      notices.push_back(fmt::format("left out {} of {} with a user and no item, of {}", with_count(users_alone, "line"),
                                    path.string(), lines));
    }
  }
  if (trains && lists) say_baskets(set.users, set.items, file, notices);
  return pairs;
}

// Sorts interactions and keeps one of equal ones.
void make_distinct(Pairs& pairs) {
  std::sort(pairs.begin(), pairs.end(), is_before);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
}

// Removes the interactions that an earlier split has.
Interactions without(Pairs pairs, std::span<Interactions const* const> earlier, std::string_view name,
                     InteractionSet& set) {
  make_distinct(pairs);
  std::size_t const removed = std::erase_if(pairs, [&](Interaction const& pair) {
    return std::any_of(earlier.begin(), earlier.end(), [&](Interactions const* split) { return split->has(pair); });
  });
  if (removed > 0) {
    set.notices.push_back(fmt::format("{}: {} of {} left out, because an earlier split has them", name, removed,
                                      with_count(removed + pairs.size(), "interaction")));
  }
  return {std::move(pairs), set.users.size()};
}

void add_notice_of_unknown(InteractionSet& set, std::string_view name) {
  auto const& pairs = set.split(name).pairs();
  auto const unknown = std::count_if(pairs.begin(), pairs.end(), [&set](Interaction const& pair) {
    return pair.user >= set.known_users || pair.item >= set.known_items;
  });
  if (unknown == 0) return;
  set.notices.push_back(fmt::format(
      "{} of the {} split, of {}, have a user or an item that training has not seen, which has its initial row",
      with_count(static_cast<std::uint64_t>(unknown), "interaction"), name, pairs.size()));
}

}  // namespace

Interactions::Interactions(std::vector<Interaction> pairs, std::size_t users)
    : pairs_(std::move(pairs)), offsets_(users + 1) {
  for (Interaction const& pair : pairs_) ++offsets_[pair.user + 1];
  for (std::size_t u = 0; u < users; ++u) offsets_[u + 1] += offsets_[u];
}

bool Interactions::has(Interaction pair) const {
  auto const all = of(pair.user);
  return std::binary_search(all.begin(), all.end(), pair, is_before);
}

std::uint64_t Interactions::most_of(std::size_t users) const {
  std::uint64_t most = 0;
  std::size_t const all = offsets_.size() - 1;
  for (std::size_t first = 0; first < all; ++first) {
    most = std::max(most, offsets_[std::min(first + users, all)] - offsets_[first]);
  }
  return most;
}

std::vector<float> InteractionSet::popularity() const {
  std::vector<float> counts(items.size());
  for (Interaction const& pair : train.pairs()) ++counts[pair.item];
  return counts;
}

std::uint64_t InteractionSet::digest() const {
  static_assert(sizeof(Interaction) == 8);
  std::uint64_t hash = 0;
  auto const add = [&hash](auto const& v) { hash = XXH3_64bits_withSeed(v.data(), v.size() * sizeof(v[0]), hash); };
  add(users.keys());
  add(items.keys());
  add(train.pairs());
  add(valid.pairs());
  add(test.pairs());
  return hash;
}

InteractionSet read_interactions(DataConfig const& config) {
  InteractionSet set;
  std::vector<std::string> notices;
  SameColumns same;  // of all splits
  Pairs all = read_pairs(config, config.train, same, set, notices, true), train, valid, test;
  make_distinct(all);
  double const test_share = config.test.empty() ? config.test_share : 0;
  double const valid_share = config.valid.empty() ? config.valid_share : 0;
  for (std::uint64_t i = 0; i < all.size(); ++i) {
    std::uint64_t const bits = random_bits(static_cast<std::uint64_t>(config.split_seed), i);
    double const draw = static_cast<double>(bits >> 11) * 0x1p-53;
    (draw < test_share ? test : draw < test_share + valid_share ? valid : train).push_back(all[i]);
  }
  GPUPS_REQUIRE(
      !train.empty(),
      "{} has no interactions for training (a line is a user and the items that the user chose): check the file, "
      "and data.valid_share and data.test_share",
      (std::filesystem::path(config.folder) / config.train).string());

  auto const say_if_none = [&](char const* name, double share, Pairs const& pairs) {
    if (share == 0 || !pairs.empty()) return;
    notices.push_back(fmt::format("data.{}_share = {} selects none of {}: there is no {} split", name, share,
                                  with_count(all.size(), "interaction"), name));
  };
  say_if_none("valid", valid_share, valid);
  say_if_none("test", test_share, test);

  // Numbers the names of training interactions first.
  InteractionSet numbered;
  auto const add = [&](Pairs& pairs, InteractionSet const& from) {
    for (Interaction& pair : pairs) {
      pair = {numbered.users.add(from.users.name(pair.user)), numbered.items.add(from.items.name(pair.item))};
    }
  };
  add(train, set);
  numbered.known_users = numbered.users.size();
  numbered.known_items = numbered.items.size();
  add(valid, set);
  add(test, set);
  set = std::move(numbered);
  auto const read_held_out = [&](std::string const& file, Pairs& split) {
    if (file.empty()) return;
    split = read_pairs(config, file, same, set, notices, false);
    GPUPS_REQUIRE(!split.empty(),
                  "{} has no interactions to rank (metrics need some): correct the file, or set its key to \"\"",
                  (std::filesystem::path(config.folder) / file).string());
  };
  read_held_out(config.valid, valid);
  read_held_out(config.test, test);
  say_odd_names(set.users, notices);
  say_odd_names(set.items, notices);
  set.notices = std::move(notices);

  make_distinct(train);
  set.train = {std::move(train), set.users.size()};
  Interactions const* const earlier[] = {&set.train, &set.valid};
  set.valid = without(std::move(valid), std::span(earlier, 1), "valid", set);
  set.test = without(std::move(test), earlier, "test", set);
  add_notice_of_unknown(set, "valid");
  add_notice_of_unknown(set, "test");
  return set;
}

}  // namespace gpups::trainer
