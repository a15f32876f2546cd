// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/rating_set.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/base/random.hpp"
#include "trainer/tasks/common/known_samples.hpp"
#include "trainer/tasks/ratings/rating_file.hpp"

namespace gpups::trainer {

std::uint32_t IdMap::add(std::uint64_t id) {
  if (2 * (keys_.size() + 1) > slots_.size()) grow();
  std::size_t const mask = slots_.size() - 1;
  for (std::size_t at = kernels::mix(id) & mask;; at = (at + 1) & mask) {
    if (slots_[at] == 0) {
      keys_.push_back(Key{id});
      slots_[at] = static_cast<std::uint32_t>(keys_.size());
    } else if (keys_[slots_[at] - 1] != Key{id}) {
      continue;
    }
    return slots_[at] - 1;
  }
}

void IdMap::grow() {
  slots_.assign(slots_.empty() ? 1024 : 2 * slots_.size(), 0);
  std::size_t const mask = slots_.size() - 1;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    std::size_t at = kernels::mix(number(keys_[i])) & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

namespace {

using Lines = std::vector<RatingLine>;

// Moves the ratings whose draw is in [begin, end) from `from` to `to`. draws: a random number in [0, 1) for each rating
// of `from`. Splits use disjoint ranges, so no rating is in two splits.
void hold_out(Lines& from, Lines& to, std::vector<double>& draws, double begin, double end) {
  if (begin >= end) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (draws[i] >= begin && draws[i] < end) {
      to.push_back(from[i]);
    } else {
      from[kept] = from[i];
      draws[kept++] = draws[i];
    }
  }
  from.resize(kept);
  draws.resize(kept);
}

std::vector<Rating> numbered(Lines const& lines, RatingSet& set) {
  std::vector<Rating> ratings;
  ratings.reserve(lines.size());
  for (RatingLine const& line : lines) {
    ratings.push_back({set.rows.add(line.row), set.columns.add(line.column), line.value});
  }
  return ratings;
}

void add_notice_of_unknown(RatingSet& set, std::string_view name) {
  auto const& split = set.split(name);
  auto const unknown = std::count_if(split.begin(), split.end(), [&set](Rating const& r) {
    return r.row >= set.known_rows || r.column >= set.known_columns;
  });
  if (unknown == 0) return;
  set.notices.push_back(
      fmt::format("{} of the {} split, of {}, have a row or a column without training ratings, which counts as zeros",
                  with_count(static_cast<std::uint64_t>(unknown), "rating"), name, split.size()));
}

// Adds a notice of the pairs that have several different ratings for training. Takes two bytes for each rating.
void say_contradictions(RatingSet& set) {
  auto const key = [](Rating const& r) { return kernels::mix(std::uint64_t{r.row} << 32 | r.column); };
  std::uint64_t const mask = std::bit_ceil(16 * set.train.size() + 1) - 1;
  std::vector<bool> seen(mask + 1);
  std::unordered_set<std::uint64_t> may_repeat;  // few of those that do not
  for (Rating const& rating : set.train) {
    std::uint64_t const hash = key(rating);
    if (seen[hash & mask]) may_repeat.insert(hash);
    seen[hash & mask] = true;
  }
  if (may_repeat.empty()) return;
  std::unordered_map<std::uint64_t, float> first;
  std::unordered_set<std::uint64_t> differ;
  for (Rating const& rating : set.train) {
    std::uint64_t const hash = key(rating);
    if (!may_repeat.contains(hash)) continue;
    auto const [at, is_new] = first.emplace(hash, rating.value);
    if (!is_new && at->second != rating.value) differ.insert(hash);
  }
  if (differ.empty()) return;
  set.notices.push_back(fmt::format("{} several different ratings for training, and each of them counts",
                                    with_count(differ.size(), "pair has", "pairs have")));
}

}  // namespace

std::uint64_t RatingSet::digest() const {
  static_assert(sizeof(Rating) == 12);
  std::uint64_t hash = 0;
  auto const add = [&hash](auto const& v) { hash = XXH3_64bits_withSeed(v.data(), v.size() * sizeof(v[0]), hash); };
  add(rows.keys());
  add(columns.keys());
  add(train);
  add(valid);
  add(test);
  return hash;
}

RatingSet read_ratings(DataConfig const& config) {
  RatingSet set;
  SameColumns same;  // of all splits
  auto const read = [&](std::string const& file) { return read_rating_file(config, file, set.notices, &same); };
  Lines train = read(config.train), valid, test;
  if (!config.valid.empty()) valid = read(config.valid);
  if (!config.test.empty()) test = read(config.test);

  std::vector<double> draws;
  draws.reserve(train.size());
  for (std::uint64_t i = 0; i < train.size(); ++i) {
    draws.push_back(static_cast<double>(random_bits(static_cast<std::uint64_t>(config.split_seed), i) >> 11) * 0x1p-53);
  }
  double const test_share = config.test.empty() ? config.test_share : 0;
  double const valid_share = config.valid.empty() ? config.valid_share : 0;
  hold_out(train, test, draws, 0, test_share);
  hold_out(train, valid, draws, test_share, test_share + valid_share);
  GPUPS_REQUIRE(!train.empty(),
                "{} has no ratings for training (all of them are held out): lower data.valid_share and "
                "data.test_share",
                config.train);

  auto const say_if_none = [&](std::string_view name, double share, bool none) {
    if (share == 0 || !none) return;
    set.notices.push_back(fmt::format("data.{}_share = {} selects none of {}: there is no {} split", name, share,
                                      with_count(draws.size(), "rating"), name));
  };
  say_if_none("valid", valid_share, valid.empty());
  say_if_none("test", test_share, test.empty());
  set.train = numbered(train, set);
  set.columns_of_files = same;
  set.known_rows = set.rows.size();
  set.known_columns = set.columns.size();
  set.valid = numbered(valid, set);
  set.test = numbered(test, set);
  say_contradictions(set);
  add_notice_of_unknown(set, "valid");
  add_notice_of_unknown(set, "test");
  auto const pair = [](Rating const& r) { return kernels::mix(std::uint64_t{r.row} << 32 | r.column); };
  say_known_samples(set.train, set.valid, "pair", "validation", pair, set.notices);
  say_known_samples(set.train, set.test, "pair", "test", pair, set.notices);
  say_known_samples(set.valid, set.test, "pair", "test", pair, set.notices, "validation");
  return set;
}

}  // namespace gpups::trainer
