// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/known_keys.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/base/check.hpp"
#include "trainer/base/edit_distance.hpp"
#include "trainer/config/foreign_keys.hpp"

namespace gpups::trainer {

KnownKeys::KnownKeys(TaskKind const& kind, TaskKinds known)
    : kind_(kind), kinds_(known), fields_(fields_of(kind, known)) {
  for (TaskKind const* const other : known) {
    if (other == &kind) continue;
    for (Field& field : other->fields()) others_.emplace_back(other, std::move(field));
  }
}

std::vector<std::string> KnownKeys::sections() const {
  std::vector<std::string> names;
  each([&](Field const& field) {
    if (std::find(names.begin(), names.end(), field.section) == names.end()) names.emplace_back(field.section);
  });
  return names;
}

Field const* KnownKeys::find(std::string const& section, std::string const& key, Origin const& origin) const {
  GPUPS_REQUIRE(section != "search" && section != "bench",
                "{}: [{}] is not of a run (a run would not use it): set it in the file", origin.text, section);
  for (Field const& field : fields_) {
    if (field.section == section && field.key == key) return &field;
  }
  std::vector<std::string> keys;
  std::string elsewhere;  // a section with such a key
  bool of_others = false;
  each([&](Field const& field) {
    if (field.section == section) keys.emplace_back(field.key);
    if (field.key != key) return;
    if (elsewhere.empty()) elsewhere = field.section;
    of_others = of_others || field.section == section;
  });
  if (of_others) return nullptr;
  GPUPS_REQUIRE(!keys.empty(), "{}: there is no section [{}] (it would have no effect): did you mean [{}]?",
                origin.text, section, nearest_word(section, sections()));
  if (elsewhere.empty()) throw_if_foreign(section, key, origin.text);
  std::string const nearest = nearest_word(key, keys);
  constexpr std::size_t kTypos = 2;
  if (!elsewhere.empty() && edit_distance(key, nearest) > kTypos) {
    throw Error(fmt::format("{}: there is no key '{}' in [{}] (it would have no effect): it is a key of [{}]",
                            origin.text, key, section, elsewhere));
  }
  throw Error(fmt::format("{}: there is no key '{}' in [{}] (it would have no effect): did you mean '{}'?", origin.text,
                          key, section, nearest));
}

std::string KnownKeys::readers_with(std::string const& section, std::string const& key) const {
  std::vector<std::string> readers;
  for (auto const& [kind, field] : others_) {
    if (field.section != section || field.key != key) continue;
    // Of a kind's readers, those that use the key by default; or all, since they may use it with other settings.
    std::vector<std::string> const all = kind->readers();
    std::vector<std::string> using_it;
    for (std::string const& reader : all) {
      if (field.is_used(default_config(reader, kinds_))) using_it.push_back(reader);
    }
    for (std::string const& reader : using_it.empty() ? all : using_it) readers.push_back('"' + reader + '"');
  }
  std::string text;
  for (std::size_t i = 0; i < readers.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == readers.size() ? " or " : ", ") + readers[i];
  }
  return text;
}

}  // namespace gpups::trainer
