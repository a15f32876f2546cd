// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/config.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <type_traits>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/edit_distance.hpp"
#include "trainer/base/overloaded.hpp"
#include "trainer/config/config_consistency.hpp"
#include "trainer/config/config_defaults.hpp"
#include "trainer/config/config_fields.hpp"
#include "trainer/config/foreign_keys.hpp"
#include "trainer/config/retired_keys.hpp"
#include "trainer/tasks/task.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;

// The file and line, or the option, that gives a value: for messages and relative paths.
struct Origin {
  std::string text;  // "run.toml:3" or "--set model.dim=x"
  fs::path folder;
};

std::string type_of(FieldPointer pointer) {
  return std::visit(Overloaded{[](std::string*) { return "a string"; }, [](std::int64_t*) { return "an integer"; },
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

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (Field const& f : fields()) {
    if (names.empty() || names.back() != f.section) names.emplace_back(f.section);
  }
  return names;
}

Field const& find_field(std::string const& section, std::string const& key, Origin const& origin) {
  GPUPS_REQUIRE(section != "search" && section != "bench",
                "{}: [{}] is not of a run (a run would not use it): set it in the file", origin.text, section);
  throw_if_retired(section + "." + key, origin.text);
  throw_if_retired(section, origin.text);
  std::vector<std::string> keys;
  for (Field const& f : fields()) {
    if (f.section != section) continue;
    if (f.key == key) return f;
    keys.emplace_back(f.key);
  }
  auto const elsewhere = std::find_if(fields().begin(), fields().end(), [&](Field const& f) { return f.key == key; });
  GPUPS_REQUIRE(!keys.empty(), "{}: there is no section [{}] (it would have no effect): did you mean [{}]?",
                origin.text, section, nearest_word(section, section_names()));
  if (elsewhere == fields().end()) throw_if_foreign(section, key, origin.text);
  std::string const nearest = nearest_word(key, keys);
  constexpr std::size_t kTypos = 2;
  if (elsewhere != fields().end() && edit_distance(key, nearest) > kTypos) {
    throw Error(fmt::format("{}: there is no key '{}' in [{}] (it would have no effect): it is a key of [{}]",
                            origin.text, key, section, elsewhere->section));
  }
  throw Error(fmt::format("{}: there is no key '{}' in [{}] (it would have no effect): did you mean '{}'?", origin.text,
                          key, section, nearest));
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
  if (!field.choices.empty() && std::find(field.choices.begin(), field.choices.end(), value) == field.choices.end()) {
    throw Error(fmt::format("{}: {} is \"{}\" (unknown): use one of {}; did you mean \"{}\"?", origin.text,
                            field.name(), value, fmt::join(field.choices, ", "),
                            choice_for(value, field.choices).value_or(nearest_word(value, field.choices))));
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
      Overloaded{
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

using Given = std::vector<std::pair<Field const*, Origin>>;

void throw_if_unused(Config const& config, Given const& given) {
  for (auto const& [field, origin] : given) {
    GPUPS_REQUIRE(field->constraint.in(config), "{}: {} has no effect here ({}): remove it", origin.text, field->name(),
                  field->constraint.otherwise);
  }
}

bool is_given(Given const& given, std::string_view name) {
  return std::any_of(given.begin(), given.end(), [name](auto const& one) { return one.first->name() == name; });
}

// Sets the values of keys that are not given, where the default depends on the reader or the model.
void set_defaults(Config& config, Given const& given) {
  Config defaults = defaults_for(config.data.reader);
  auto const set_default = [&given](std::string_view name, auto& value, auto const& by_default) {
    if (!is_given(given, name)) value = by_default;
  };
  set_default("data.train", config.data.train, defaults.data.train);
  set_default("data.valid", config.data.valid, defaults.data.valid);
  set_default("data.test", config.data.test, defaults.data.test);
  set_default("data.valid_share", config.data.valid_share, defaults.data.valid_share);
  set_default("data.test_share", config.data.test_share, defaults.data.test_share);
  set_default("model.name", config.model.name, defaults.model.name);
  set_default("model.dim", config.model.dim, defaults.model.dim);
  set_default("model.biases", config.model.biases, defaults.model.biases);
  set_default("model.window", config.model.window, defaults.model.window);
  set_default("model.negatives", config.model.negatives, defaults.model.negatives);
  set_default("model.min_count", config.model.min_count, defaults.model.min_count);
  set_default("optimizer.l2", config.optimizer.l2, defaults.optimizer.l2);
  set_default("optimizer.learning_rate", config.optimizer.learning_rate, defaults.optimizer.learning_rate);
  set_default("train.batch_size", config.train.batch_size, defaults.train.batch_size);
  set_default("eval.hits", config.eval.hits, defaults.eval.hits);
  set_default("train.epochs", config.train.epochs, defaults.train.epochs);
  set_model_defaults(config.model, defaults.model);
  set_default("model.l2", config.model.l2, defaults.model.l2);
  set_default("model.init", config.model.init, defaults.model.init);
  set_default("model.init_scale", config.model.init_scale, defaults.model.init_scale);
}

// Throws Error if the line with this number is a string without quotes. This mistake is common, and the TOML parser's
// message does not say how to correct it.
void reject_unquoted(Config& config, std::string const& text, std::uint32_t number, std::string const& name) {
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
  for (Field const& field : fields()) {
    if (!is_bare || field.section != section || field.key != key) continue;
    GPUPS_REQUIRE(!std::holds_alternative<std::string*>(field.pointer(config)),
                  "{}:{}: {} is {} without quotes (the key needs a string): write {} = \"{}\"", name, number,
                  field.name(), value, key, value);
  }
}

Given read_file(Config& config, std::string const& text, std::string const& name, fs::path const& folder) {
  toml::table table;
  try {
    table = toml::parse(text, name);
  } catch (toml::parse_error const& error) {
    reject_unquoted(config, text, error.source().begin.line, name);
    throw Error(fmt::format("{}:{}: {} (the file is not TOML): correct the line", name, error.source().begin.line,
                            error.description()));
  }
  Given given;
  for (auto const& [section, node] : table) {
    Origin const at{fmt::format("{}:{}", name, section.source().begin.line), folder};
    std::string const section_name(section.str());
    if (section_name == "search" || section_name == "bench") continue;  // of other commands; see trainer/trials
    throw_if_retired(section_name, at.text);
    GPUPS_REQUIRE(node.is_table(),
                  "{}: '{}' is outside of a section (every key belongs to a section): move it below [{}]", at.text,
                  section_name, nearest_word(section_name, section_names()));
    auto const names = section_names();
    GPUPS_REQUIRE(std::find(names.begin(), names.end(), section_name) != names.end(),
                  "{}: there is no section [{}] (it would have no effect): did you mean [{}]?", at.text, section_name,
                  nearest_word(section_name, names));
    for (auto const& [key, value] : *node.as_table()) {
      Origin const origin{fmt::format("{}:{}", name, key.source().begin.line), folder};
      Field const& field = find_field(section_name, std::string(key.str()), origin);
      set(config, field, value, origin);
      given.emplace_back(&field, origin);
    }
  }
  set_defaults(config, given);
  throw_if_unused(config, given);
  return given;
}

constexpr std::size_t kConfigBytesMax = std::size_t{1} << 20;
constexpr std::size_t kTypedMost = 200;  // characters of an override in a message

// Applies overrides. Their values are TOML, but strings need no quotes.
void read_overrides(Config& config, Given given_before, std::vector<SettingOverride> const& overrides) {
  Given given;
  for (auto const& [text, typed] : overrides) {
    Origin const origin{typed.size() <= kTypedMost ? typed : typed.substr(0, kTypedMost) + "...", fs::current_path()};
    GPUPS_REQUIRE(text.find_first_of("\r\n") == std::string::npos,
                  "{}: a setting contains a line break (a setting is one key and one value): write section.key=value",
                  trimmed(typed.substr(0, typed.find_first_of("\r\n"))));
    std::size_t const equals = text.find('='), dot = text.find('.');
    GPUPS_REQUIRE(equals != std::string::npos && dot < equals,
                  "{}: this is not a setting (a setting is a key and a value): write section.key=value", origin.text);
    Field const& field =
        find_field(trimmed(text.substr(0, dot)), trimmed(text.substr(dot + 1, equals - dot - 1)), origin);
    std::string const value = trimmed(text.substr(equals + 1));
    bool const quoted = !value.empty() && (value[0] == '"' || value[0] == '\'');
    double number = 0;
    auto const [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    bool const is_number = error == std::errc() && stop == value.data() + value.size();
    if (std::holds_alternative<std::string*>(field.pointer(config)) && !quoted) {
      set(config, field, toml::value<std::string>(value), origin);
    } else if (std::holds_alternative<double*>(field.pointer(config)) && is_number) {
      set(config, field, toml::value<double>(number), origin);  // .3 and 3. are valid here, though not in TOML
    } else {
      toml::table parsed;
      try {
        parsed = toml::parse("value = " + value);
      } catch (toml::parse_error const&) {
        std::string const needed = type_of(field.pointer(config));
        throw Error(fmt::format("{}: {} is {} (the key needs {}): write {}", origin.text, field.name(),
                                value.empty() ? "empty" : fmt::format("'{}'", value), needed, needed));
      }
      set(config, field, *parsed.get("value"), origin);
    }
    given.emplace_back(&field, origin);
  }
  given_before.insert(given_before.end(), given.begin(), given.end());
  set_defaults(config, given_before);
  throw_if_unused(config, given);
}

}  // namespace

Config parse_config(std::string const& text, std::string const& name, fs::path const& folder,
                    std::vector<SettingOverride> const& overrides) {
  Config config;
  Given const given = read_file(config, text, name, folder);
  read_overrides(config, given, overrides);
  if (config.data.folder.empty()) {
    config.data.folder = config.data.reader == "wordnet" ? "/usr/share/wordnet" : fs::weakly_canonical(folder).string();
  }
  require_consistent(config, name);
  return config;
}

Config load_config(fs::path const& file, std::vector<SettingOverride> const& overrides) {
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
  return parse_config(text, file.string(), fs::absolute(file).parent_path(), overrides);
}

Config saved_config(Config const& saved, fs::path const& folder, std::vector<SettingOverride> const& overrides) {
  Config of_run = saved;
  of_run.run.ranks = 1;
  return parse_config(resolved(of_run), (folder / "checkpoint").string(), folder, overrides);
}

}  // namespace gpups::trainer
