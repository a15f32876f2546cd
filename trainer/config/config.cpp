// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/config.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <type_traits>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/edit_distance.hpp"
#include "trainer/base/finite_number.hpp"
#include "trainer/config/fields.hpp"
#include "trainer/config/foreign_keys.hpp"
#include "trainer/config/known_keys.hpp"
#include "trainer/config/parse_toml.hpp"
#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;

std::string type_of(FieldPointer pointer) {
  return std::visit(
      kernels::Overloaded{[](std::string*) { return "a string"; }, [](std::int64_t*) { return "an integer"; },
                          [](double*) { return "a number"; }, [](bool*) { return "true or false"; },
                          [](std::vector<std::int64_t>*) { return "an array of integers"; },
                          [](std::vector<std::string>*) { return "an array of strings"; }},
      pointer);
}

std::string type_of(toml::node const& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::table:
      return "a section";
    default:
      return "a date or time";
  }
}

std::string trimmed(std::string const& text) {
  std::size_t const first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last + 1 - first);
}

[[noreturn]] void throw_wrong_type(Field const& field, FieldPointer pointer, toml::node const& value,
                                   Origin const& origin) {
  throw Error(fmt::format("{}: {} is {} (the key needs {}): write {}", origin.text, field.name(), type_of(value),
                          type_of(pointer), type_of(pointer)));
}

// Throws Error for an element of a list that has the wrong type.
[[noreturn]] void throw_wrong_element(Field const& field, FieldPointer pointer, toml::node const& element,
                                      Origin const& origin) {
  throw Error(fmt::format("{}: {} contains {} (the key needs {}): write {}", origin.text, field.name(),
                          type_of(element), type_of(pointer), type_of(pointer)));
}

template <class Number>
Number checked(Field const& field, Number value, Origin const& origin) {
  auto const as_double = static_cast<double>(value);
  bool fits = as_double >= field.least && as_double <= field.most;  // false for NaN
  if constexpr (std::is_same_v<Number, std::int64_t>) {
    // The conversion to double rounds integers of more than 53 bits. The limits of all fields are below 2^63.
    fits = fits && value <= static_cast<std::int64_t>(field.most);
  }
  GPUPS_REQUIRE(fits, "{}: {} is {} (out of range): use a value from {} to {}", origin.text, field.name(), value,
                field.least, field.most);
  return value;
}

std::string checked(Field const& field, std::string value, Origin const& origin) {
  auto const has = [&value](std::vector<std::string> const& choices) {
    return std::find(choices.begin(), choices.end(), value) != choices.end();
  };
  if (!field.choices.empty() && !has(field.choices) && !has(field.hidden_choices)) {
    auto meant = choice_for(value, field.choices);
    if (!meant) meant = close_word(value, field.choices);
    throw Error(fmt::format("{}: {} is \"{}\" (unknown): use one of {}{}", origin.text, field.name(), value,
                            fmt::join(field.choices, ", "),
                            meant ? fmt::format("; did you mean \"{}\"?", *meant) : ""));
  }
  if (!field.path || value.empty()) return value;
  std::error_code error;
  fs::path const path = fs::weakly_canonical(origin.folder / value, error);
  GPUPS_REQUIRE(!error, "{}: {} is not a usable path ({}): choose another path", origin.text, field.name(),
                error.message());
  return path.string();
}

// Sorts the values of a list whose order has no meaning. Throws Error if two of them are equal.
template <class Element>
void require_distinct(Field const& field, std::vector<Element>& values, Origin const& origin) {
  std::sort(values.begin(), values.end());
  auto const twice = std::adjacent_find(values.begin(), values.end());
  GPUPS_REQUIRE(twice == values.end(), "{}: {} contains {} twice (the second has no effect): write it once",
                origin.text, field.name(), *twice);
}

// Returns false if the value is not a list.
template <class Element>
bool set_list(std::vector<Element>& to, Field const& field, FieldPointer pointer, toml::node const& value,
              Origin const& origin) {
  if (!value.is_array()) return false;
  to.clear();
  for (toml::node const& element : *value.as_array()) {
    if (!element.is<Element>()) throw_wrong_element(field, pointer, element, origin);
    to.push_back(checked(field, element.ref<Element>(), origin));
  }
  if (!field.ordered) require_distinct(field, to, origin);
  return true;
}

// Checks a value and stores it in `config`.
void set(Config& config, Field const& field, toml::node const& value, Origin const& origin) {
  FieldPointer const pointer = field.pointer(config);
  bool const fits = std::visit(
      kernels::Overloaded{
          [&](std::string* to) {
            if (!value.is_string()) return false;
            *to = checked(field, value.ref<std::string>(), origin);
            return true;
          },
          [&](std::int64_t* to) {
            if (!value.is_integer()) return false;
            *to = checked(field, value.ref<std::int64_t>(), origin);
            return true;
          },
          [&](double* to) {
            if (!value.is_number()) return false;
            *to = checked(field, *value.value<double>(), origin);
            return true;
          },
          [&](bool* to) {
            if (!value.is_boolean()) return false;
            *to = value.ref<bool>();
            return true;
          },
          [&](std::vector<std::int64_t>* to) { return set_list<std::int64_t>(*to, field, pointer, value, origin); },
          [&](std::vector<std::string>* to) { return set_list<std::string>(*to, field, pointer, value, origin); }},
      pointer);
  if (!fits) throw_wrong_type(field, pointer, value, origin);
}

// A key that a file or an override gives.
struct GivenKey {
  std::string section, key;
  Field const* field;  // null: only other kinds of tasks have it
  Origin origin;
};
using Given = std::vector<GivenKey>;

void throw_if_unused(Config const& config, KnownKeys const& keys, Given const& given) {
  for (GivenKey const& one : given) {
    std::string const name = one.section + "." + one.key;
    GPUPS_REQUIRE(one.field != nullptr, "{}: {} has no effect here (only data.reader = {} uses it): remove it",
                  one.origin.text, name, keys.readers_with(one.section, one.key));
    auto const reason = one.field->unused_because(config);
    GPUPS_REQUIRE(!reason, "{}: {} has no effect here ({}): remove it", one.origin.text, name, reason.value_or(""));
    if (name == "train.batch_size") require_batch_size(config, one.origin.text);
  }
}

// Sets the values of keys that are not given, where the default depends on other settings.
void set_defaults(Config& config, TaskKind const& kind, std::vector<Given const*> const& all_given) {
  std::set<std::string> names;
  for (Given const* const given : all_given) {
    for (GivenKey const& one : *given) names.insert(one.section + "." + one.key);
  }
  kind.set_defaults(config, names);
}

Config defaults_of(TaskKind const& kind, TaskKinds kinds) {
  Config config = kind.defaults();
  config.data.reader = kind.readers().front();
  config.task.kinds.assign(kinds.begin(), kinds.end());
  config.task.kind = &kind;
  return config;
}

// Throws Error if the line with this number is a string without quotes, of which the TOML parser's message does not say
// how to correct it. kinds: of tasks; the file cannot be read, so its kind is not known.
void reject_unquoted(TaskKinds kinds, std::string const& text, std::uint32_t number, std::string const& name) {
  std::istringstream lines(text);
  std::string line, section;
  for (std::uint32_t i = 0; i < number && std::getline(lines, line); ++i) {
    std::string const all = trimmed(line.substr(0, line.find('\r')));
    if (i + 1 < number && all.size() > 2 && all.front() == '[' && all.back() == ']') {
      section = trimmed(all.substr(1, all.size() - 2));
    }
  }
  line.erase(std::min(line.find_first_of("#\r"), line.size()));
  std::size_t const equals = std::min(line.find('='), line.size() - std::min<std::size_t>(line.size(), 1));
  std::string const key = trimmed(line.substr(0, equals)),
                    value = trimmed(line.substr(std::min(equals + 1, line.size())));
  bool const is_bare = !value.empty() && value.find_first_of("\"'[]{}=") == std::string::npos;
  if (!is_bare) return;
  for (TaskKind const* const kind : kinds) {
    Config config = defaults_of(*kind, kinds);
    for (Field const& field : fields_of(*kind, kinds)) {
      if (field.section != section || field.key != key) continue;
      GPUPS_REQUIRE(!std::holds_alternative<std::string*>(field.pointer(config)),
                    "{}:{}: {} is {} without quotes (the key needs a string): write {} = \"{}\"", name, number,
                    field.name(), value, key, value);
    }
  }
}

toml::table parsed(TaskKinds kinds, std::string const& text, std::string const& name) {
  try {
    return parse_toml(text, name);
  } catch (toml::parse_error const& error) {
    reject_unquoted(kinds, text, error.source().begin.line, name);
    throw Error(fmt::format("{}:{}: {} (the file is not TOML): correct the line", name, error.source().begin.line,
                            error.description()));
  }
}

// Applies the keys of a file. Those that the kind of task does not have are only checked for their names.
Given read_file(Config& config, KnownKeys const& keys, toml::table const& table, std::string const& name,
                fs::path const& folder) {
  Given given;
  for (auto const& [section, node] : table) {
    Origin const at{fmt::format("{}:{}", name, section.source().begin.line), folder};
    std::string const section_name(section.str());
    if (section_name == "search" || section_name == "bench") continue;  // of other commands; see trainer/trials
    GPUPS_REQUIRE(node.is_table(),
                  "{}: '{}' is outside of a section (every key belongs to a section): move it below {}", at.text,
                  section_name, keys.sections_with(section_name));
    keys.require_section(section_name, at);
    for (auto const& [key, value] : *node.as_table()) {
      Origin const origin{fmt::format("{}:{}", name, key.source().begin.line), folder};
      Field const* const field = keys.find(section_name, std::string(key.str()), origin);
      if (field != nullptr) set(config, *field, value, origin);
      given.push_back({section_name, std::string(key.str()), field, origin});
    }
  }
  return given;
}

constexpr std::size_t kConfigBytesMax = std::size_t{1} << 20;
constexpr std::size_t kTypedMost = 200;  // characters of an override in a message

// An override, split at its dot and its equals sign.
struct ParsedOverride {
  std::string section, key, value;
  Origin origin;
};

ParsedOverride split(SettingOverride const& override_) {
  auto const& [text, typed] = override_;
  Origin const origin{typed.size() <= kTypedMost ? typed : typed.substr(0, kTypedMost) + "...", fs::current_path()};
  GPUPS_REQUIRE(text.find_first_of("\r\n") == std::string::npos,
                "{}: a setting contains a line break (a setting is one key and one value): write section.key=value",
                trimmed(typed.substr(0, typed.find_first_of("\r\n"))));
  std::size_t const equals = text.find('='), dot = text.find('.');
  GPUPS_REQUIRE(equals != std::string::npos && dot < equals,
                "{}: this is not a setting (a setting is a key and a value): write section.key=value", origin.text);
  return {trimmed(text.substr(0, dot)), trimmed(text.substr(dot + 1, equals - dot - 1)),
          trimmed(text.substr(equals + 1)), origin};
}

// Applies an override. Its value is TOML, but strings need no quotes.
void set(Config& config, Field const& field, ParsedOverride const& given) {
  std::string const& value = given.value;
  bool const quoted = !value.empty() && (value[0] == '"' || value[0] == '\'');
  auto const number = finite_number(value);
  if (std::holds_alternative<std::string*>(field.pointer(config)) && !quoted) {
    return set(config, field, toml::value<std::string>(value), given.origin);
  }
  if (std::holds_alternative<double*>(field.pointer(config)) && number) {
    return set(config, field, toml::value<double>(*number), given.origin);  // .3 and 3. are valid here, not in TOML
  }
  toml::table parsed;
  try {
    parsed = toml::parse("value = " + value);
  } catch (toml::parse_error const&) {
    std::string const needed = type_of(field.pointer(config));
    throw Error(fmt::format("{}: {} is {} (the key needs {}): write {}", given.origin.text, field.name(),
                            value.empty() ? "empty" : fmt::format("'{}'", value), needed, needed));
  }
  set(config, field, *parsed.get("value"), given.origin);
}

Given read_overrides(Config& config, KnownKeys const& keys, std::vector<ParsedOverride> const& overrides) {
  Given given;
  for (ParsedOverride const& one : overrides) {
    Field const* const field = keys.find(one.section, one.key, one.origin);
    if (field != nullptr) set(config, *field, one);
    given.push_back({one.section, one.key, field, one.origin});
  }
  return given;
}

// Returns the kind with a reader, or the first if there is none: the check of data.reader then reports it.
TaskKind const& kind_or_first(TaskKinds kinds, std::string_view reader) {
  TaskKind const* const kind = kind_with_reader(kinds, reader);
  return kind != nullptr ? *kind : *kinds.front();
}

// Returns the value that overrides give data.reader, or that of `config`.
std::string reader_after(Config config, KnownKeys const& keys, std::vector<ParsedOverride> const& overrides) {
  for (ParsedOverride const& one : overrides) {
    if (one.section == "data" && one.key == "reader") set(config, *keys.find(one.section, one.key, one.origin), one);
  }
  return config.data.reader;
}

}  // namespace

Config default_config(std::string_view reader, TaskKinds kinds) {
  TaskKind const* const kind = kind_with_reader(kinds, reader);
  GPUPS_ASSERT(kind != nullptr);
  Config config = defaults_of(*kind, kinds);
  config.data.reader = reader;
  kind->set_defaults(config, {});
  return config;
}

Config parse_config(std::string const& text, std::string const& name, fs::path const& folder,
                    std::vector<SettingOverride> const& overrides, TaskKinds kinds) {
  GPUPS_ASSERT(!kinds.empty());
  // The file must be valid without the overrides.
  toml::table const table = parsed(kinds, text, name);
  std::optional<KnownKeys> keys;
  Config config;
  auto const select = [&](std::string_view reader) {
    keys.emplace(kind_or_first(kinds, reader), kinds);
    config = defaults_of(keys->kind(), kinds);
    return read_file(config, *keys, table, name, folder);
  };
  Given of_file = select(table["data"]["reader"].value_or(kinds.front()->readers().front()));
  set_defaults(config, keys->kind(), {&of_file});
  throw_if_unused(config, *keys, of_file);

  std::vector<ParsedOverride> parts;
  for (SettingOverride const& one : overrides) parts.push_back(split(one));
  std::string const reader = reader_after(config, *keys, parts);
  if (&kind_or_first(kinds, reader) != &keys->kind()) of_file = select(reader);
  Given const of_overrides = read_overrides(config, *keys, parts);
  set_defaults(config, keys->kind(), {&of_file, &of_overrides});
  throw_if_unused(config, *keys, of_overrides);
  GPUPS_ASSERT(kind_with_reader(kinds, config.data.reader) == config.task.kind);
  // As in resolved(): what overrides left without an effect has none on code that does not ask either.
  std::vector<Field const*> keys_of_file;
  for (GivenKey const& one : of_file) {
    if (one.field != nullptr) keys_of_file.push_back(one.field);
  }
  reset_unused(config, keys_of_file, default_config(config.data.reader, kinds));
  if (config.data.folder.empty()) config.data.folder = config.task.kind->default_folder(config);
  if (config.data.folder.empty()) config.data.folder = fs::weakly_canonical(folder).string();
  require_consistent(config, name);
  return config;
}

Config load_config(fs::path const& file, std::vector<SettingOverride> const& overrides, TaskKinds kinds) {
  std::error_code ignored;  // if this fails, opening the file fails too
  GPUPS_REQUIRE(!fs::is_directory(file, ignored),
                "{} is a folder (a run needs a configuration file): give the path of a file", file.string());
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  GPUPS_REQUIRE(in.good(), "{} cannot be read ({}; a run needs a configuration file): check the path", file.string(),
                std::strerror(errno));
  std::string text(kConfigBytesMax + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  GPUPS_REQUIRE(text.size() <= kConfigBytesMax,
                "{} is larger than 1 MiB (it cannot be a configuration): give a file of sections, keys and values",
                file.string());
  GPUPS_REQUIRE(text.find_first_not_of(" \t\r\n") != std::string::npos,
                "{} is empty (a run needs a configuration): see examples/configs for examples", file.string());
  return parse_config(text, file.string(), fs::absolute(file).parent_path(), overrides, kinds);
}

Config saved_config(Config const& saved, fs::path const& folder, std::vector<SettingOverride> const& overrides) {
  Config of_run = saved;
  of_run.run.ranks = 1;
  return parse_config(resolved(of_run), (folder / "checkpoint").string(), folder, overrides, saved.task.kinds);
}

}  // namespace gpups::trainer
