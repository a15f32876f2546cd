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

void KnownKeys::require_section(std::string const& section, Origin const& origin) const {
  auto const names = sections();
  if (std::find(names.begin(), names.end(), section) != names.end()) return;
  auto const close = close_word(section, names);
  throw Error(fmt::format(
      "{}: there is no section [{}] (it would have no effect): {}", origin.text, section,
      close ? fmt::format("did you mean [{}]?", *close) : fmt::format("the sections are {}", fmt::join(names, ", "))));
}

Field const* KnownKeys::find(std::string const& section, std::string const& key, Origin const& origin) const {
  GPUPS_REQUIRE(section != "search" && section != "bench",
                "{}: [{}] is not of a run (a run would not use it): set it in the file", origin.text, section);
  for (Field const& field : fields_) {
    if (field.section == section && field.key == key) return &field;
  }
  std::vector<std::string> keys, own;  // of the section: of all kinds, of this kind
  std::string elsewhere;               // a section with such a key
  bool of_others = false;
  each([&](Field const& field) {
    if (field.section == section && std::find(keys.begin(), keys.end(), field.key) == keys.end()) {
      keys.emplace_back(field.key);
    }
    if (field.key != key) return;
    if (elsewhere.empty()) elsewhere = field.section;
    of_others = of_others || field.section == section;
  });
  if (of_others) return nullptr;
  require_section(section, origin);
  if (elsewhere.empty()) throw_if_foreign(section, key, origin.text);
  for (Field const& field : fields_) {
    if (field.section == section) own.emplace_back(field.key);
  }
  auto const close = close_word(key, keys);
  std::string const what =
      close               ? fmt::format("did you mean '{}'?", *close)
      : elsewhere.empty() ? fmt::format("the keys of [{}] are {}", section, fmt::join(own.empty() ? keys : own, ", "))
                          : fmt::format("it is a key of [{}]", elsewhere);
  throw Error(
      fmt::format("{}: there is no key '{}' in [{}] (it would have no effect): {}", origin.text, key, section, what));
}

std::string KnownKeys::sections_with(std::string const& key) const {
  std::vector<std::string> found;
  each([&](Field const& field) {
    std::string const name = fmt::format("[{}]", field.section);
    if (field.key == key && std::find(found.begin(), found.end(), name) == found.end()) found.push_back(name);
  });
  if (!found.empty()) return fmt::format("{}", fmt::join(found, " or "));
  return fmt::format("one of [{}]", fmt::join(sections(), "], ["));
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
