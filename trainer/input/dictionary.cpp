// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/dictionary.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <utility>

#include "kernels/base/check.hpp"

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

std::string names_and_keys(Dictionary const& names, std::vector<Key> const& keys) {
  std::string text;
  for (std::uint32_t i = 0; i < names.size(); ++i) text += fmt::format("{}\t{}\n", number(keys[i]), names.name(i));
  return text;
}

}  // namespace gpups::trainer
