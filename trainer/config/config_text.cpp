// SPDX-License-Identifier: Apache-2.0
// Writes a configuration as TOML, and compares two configurations by their TOML text.
#include <fmt/format.h>

#include <toml++/toml.h>
#include <sstream>
#include <utility>

#include "trainer/config/config.hpp"
#include "trainer/config/fields.hpp"
#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {
namespace {

std::string toml_string(std::string const& text) {
  std::ostringstream out;
  out << toml::value<std::string>(text);
  return out.str();
}

std::string toml_text(FieldPointer pointer) {
  return std::visit(
      kernels::Overloaded{[](std::string* s) { return toml_string(*s); },
                          [](std::int64_t* i) { return fmt::format("{}", *i); },
                          [](double* d) {
                            std::string text = fmt::format("{}", *d);
                            return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
                          },
                          [](bool* b) { return fmt::format("{}", *b); },
                          [](std::vector<std::int64_t>* v) { return fmt::format("[{}]", fmt::join(*v, ", ")); },
                          [](std::vector<std::string>* v) {
                            std::vector<std::string> quoted;
                            for (std::string const& text : *v) quoted.push_back(toml_string(text));
                            return fmt::format("[{}]", fmt::join(quoted, ", "));
                          }},
      pointer);
}

std::vector<Field> fields_of(Config const& config) { return fields_of(*config.task.kind, config.task.kinds); }

}  // namespace

std::string resolved(Config const& config) {
  Config copy = config;
  std::string text;
  std::string_view section;
  for (Field const& f : fields_of(config)) {
    if (!f.is_used(config)) continue;
    if (f.section != section) text += fmt::format("{}[{}]\n", section.empty() ? "" : "\n", f.section);
    section = f.section;
    std::string const line = fmt::format("{} = {}", f.key, toml_text(f.pointer(copy)));
    text += f.doc.empty() ? line + "\n" : fmt::format("{:<32}  # {}\n", line, f.doc);
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> common_settings(Config const& config) {
  Config copy = config;
  std::vector<std::pair<std::string, std::string>> settings;
  for (Field const& f : fields_of(config)) {
    bool const own = f.path || f.section == "run" || f.section == "cluster";
    if (!own && f.is_used(config)) settings.emplace_back(f.name(), toml_text(f.pointer(copy)));
  }
  return settings;
}

std::vector<Difference> resume_differences(Config const& a, Config const& b) {
  Config left = a, right = b;
  // Kinds have different keys. Their readers differ, too.
  if (a.task.kind != b.task.kind) return {{"data.reader", toml_string(a.data.reader), toml_string(b.data.reader)}};
  std::vector<Difference> found;
  for (Field const& f : fields_of(a)) {
    if (!f.is_fixed_on_resume || !(f.is_used(a) || f.is_used(b))) continue;
    std::string const in_a = toml_text(f.pointer(left)), in_b = toml_text(f.pointer(right));
    if (in_a != in_b) found.push_back({f.name(), in_a, in_b});
  }
  return found;
}

}  // namespace gpups::trainer
