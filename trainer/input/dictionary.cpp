// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/dictionary.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/edit_distance.hpp"
#include "trainer/base/progress_reporter.hpp"

namespace gpups::trainer {

Key key_of_name(std::string_view kind, std::string_view name) {
  return Key{XXH3_64bits_withSeed(name.data(), name.size(), XXH3_64bits(kind.data(), kind.size()))};
}

Dictionary::Dictionary(std::string kind, KeyFunction key_of) : kind_(std::move(kind)), key_of_(key_of), slots_(64) {}

std::uint32_t Dictionary::add(std::string_view name) {
  if (2 * (keys_.size() + 1) > slots_.size()) grow();
  Key const key = key_of_(kind_, name);
  std::size_t const place = place_of(key);
  if (slots_[place] != 0) {
    std::uint32_t const known = slots_[place] - 1;
    GPUPS_REQUIRE(this->name(known) == name,
                  "the {} names '{}' and '{}' have the same key {:016x} (they would share a row): change one of them",
                  kind_, this->name(known), name, number(key));
    return known;
  }
  GPUPS_REQUIRE(keys_.size() < 0xFFFFFFFEU,
                "there are more than 2^32 - 2 {} names (they are numbered with 32 bits): use fewer", kind_);
  keys_.push_back(key);
  text_ += name;
  ends_.push_back(text_.size());
  slots_[place] = static_cast<std::uint32_t>(keys_.size());
  return slots_[place] - 1;
}

std::optional<std::uint32_t> Dictionary::find(std::string_view name) const {
  std::uint32_t const slot = slots_[place_of(key_of_(kind_, name))];
  if (slot == 0 || this->name(slot - 1) != name) return std::nullopt;
  return slot - 1;
}

std::string_view Dictionary::name(std::uint32_t number) const {
  GPUPS_ASSERT(number < size());
  std::uint64_t const begin = number == 0 ? 0 : ends_[number - 1];
  return std::string_view(text_).substr(begin, ends_[number] - begin);
}

std::size_t Dictionary::place_of(Key key) const {
  std::size_t const mask = slots_.size() - 1;
  std::size_t place = number(key) & mask;
  while (slots_[place] != 0 && keys_[slots_[place] - 1] != key) place = (place + 1) & mask;
  return place;
}

void Dictionary::grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (std::uint32_t i = 0; i < keys_.size(); ++i) slots_[place_of(keys_[i])] = i + 1;
}

namespace {

// Throws Error for a name that is not among the trained ones.
[[noreturn]] void throw_unknown(Dictionary const& names, std::vector<bool> const& trained, QueriedName const& query,
                                std::size_t queries, std::string_view why) {
  std::string const where = query.position.empty() ? "" : query.position + ": ";
  std::string const others = queries == 1 ? "" : fmt::format(", nor any of the other {}", queries - 1);
  GPUPS_REQUIRE(!names.find(query.name),
                "{}the {} '{}' {}{} (its row has not been trained, so it means nothing): give another name", where,
                names.kind(), query.name, why, others);
  std::optional<std::string> close;
  std::size_t least = 0;
  for (std::uint32_t n = 0; n < names.size(); ++n) {
    if (!trained[n]) continue;
    std::size_t const distance = edit_distance(query.name, names.name(n));
    if ((!close || distance < least) && is_close(query.name, names.name(n))) close = names.name(n), least = distance;
  }
  throw Error(fmt::format("{}there is no {} '{}'{} (only names in the data have rows): {}", where, names.kind(),
                          query.name, others,
                          close ? fmt::format("did you mean '{}'?", *close) : "give a name that the data has"));
}

}  // namespace

std::vector<std::uint32_t> find_trained(Dictionary const& names, std::size_t trained,
                                        std::vector<QueriedName> const& queries, std::vector<std::string>& notices) {
  std::vector<bool> are(names.size());
  std::fill_n(are.begin(), std::min(trained, are.size()), true);
  return find_trained(names, are, queries, notices, "is not in the training data");
}

std::vector<std::uint32_t> find_trained(Dictionary const& names, std::vector<bool> const& trained,
                                        std::vector<QueriedName> const& queries, std::vector<std::string>& notices,
                                        std::string_view why) {
  constexpr std::size_t kListed = 3;
  std::vector<std::uint32_t> numbers;
  std::vector<QueriedName const*> unknown;
  for (QueriedName const& query : queries) {
    auto const found = names.find(query.name);
    if (found && trained[*found]) {
      numbers.push_back(*found);
    } else {
      unknown.push_back(&query);
    }
  }
  if (unknown.empty()) return numbers;
  if (numbers.empty()) throw_unknown(names, trained, *unknown.front(), queries.size(), why);
  std::string listed;
  for (std::size_t i = 0; i < std::min(kListed, unknown.size()); ++i) {
    listed += fmt::format("{}{}{}'{}'", i == 0 ? "" : ", ", unknown[i]->position,
                          unknown[i]->position.empty() ? "" : " ", unknown[i]->name);
  }
  notices.push_back(fmt::format("left out {} of {}, not in the training data: {}{}", unknown.size(),
                                with_count(queries.size(), names.kind()), listed,
                                unknown.size() > kListed ? ", ..." : ""));
  return numbers;
}

void require_fit_names(Dictionary const& names, bool (*is_unfit)(std::string_view name), std::string_view which,
                       std::string_view instead) {
  std::optional<std::string_view> first;
  std::uint64_t unfit = 0;
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    if (!is_unfit(names.name(i))) continue;
    if (unfit++ == 0) first = names.name(i);
  }
  if (!first) return;
  throw Error(fmt::format("{} of {} {}, such as '{}' (programs would read other names and numbers from the file): {}",
                          with_count(unfit, names.kind()), names.size(), which, *first, instead));
}

std::string names_and_keys(Dictionary const& names, std::vector<Key> const& keys) {
  require_fit_names(
      names, [](std::string_view name) { return name.find_first_of("\t\r\n") != name.npos; },
      "cannot be in a table, since a name has a tab or an end of a line",
      "replace these characters in the data, and train again");
  std::string text;
  for (std::uint32_t i = 0; i < names.size(); ++i) text += fmt::format("{}\t{}\n", number(keys[i]), names.name(i));
  return text;
}

}  // namespace gpups::trainer
