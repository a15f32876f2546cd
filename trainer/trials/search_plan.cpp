// SPDX-License-Identifier: Apache-2.0
#include "trainer/trials/search_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

#include "kernels/base/check.hpp"
#include "trainer/base/edit_distance.hpp"
#include "trainer/base/finite_number.hpp"
#include "trainer/base/random.hpp"
#include "trainer/config/fields.hpp"
#include "trainer/config/task_kind.hpp"
#include "trainer/trials/toml_file.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;

// A key that a search may vary, and the kind of task that has it.
struct SearchedField {
  Field field;
  TaskKind const* kind;
};

SearchedField searched_field(TomlFile const& in, toml::node const& node, std::string const& name, TaskKinds kinds) {
  std::vector<std::string> names;
  for (TaskKind const* const kind : kinds) {
    for (Field const& field : fields_of(*kind, kinds)) {
      names.push_back(field.name());
      if (field.name() != name) continue;
      bool const is_common = field.is_same_in_trials || field.section == "run" || field.section == "cluster" ||
                             field.section == "data" || field.section == "eval";
      GPUPS_REQUIRE(!is_common,
                    "{}: {} cannot be searched (all trials have the same samples, time and validation): remove it",
                    in.at(node), name);
      return {field, kind};
    }
  }
  auto const close = close_word(name, names);
  throw Error(fmt::format("{}: there is no setting '{}' (a trial could not set it): {}", in.at(node), name,
                          close ? fmt::format("did you mean '{}'?", *close) : "see the settings of the configuration"));
}

SearchedSetting read_range(TomlFile const& in, Field const& field, Config config, toml::table const& table) {
  SearchedSetting setting{.name = field.name()};
  setting.whole = std::holds_alternative<std::int64_t*>(field.pointer(config));
  GPUPS_REQUIRE(setting.whole || std::holds_alternative<double*>(field.pointer(config)),
                "{}: {} is not a number (a range has numbers): list its values, [\"a\", \"b\"]", in.at(table),
                setting.name);
  for (auto const& [key, value] : table) {
    GPUPS_REQUIRE(key == "from" || key == "to" || key == "log",
                  "{}: a range has no '{}' (it would have no effect): use from, to and log", in.at(value),
                  std::string(key.str()));
  }
  auto const low = table["from"].value<double>(), high = table["to"].value<double>();
  toml::node const* const log = table.get("log");
  GPUPS_REQUIRE(log == nullptr || log->is_boolean(), "{}: log is {} (it is true or false): write log = true",
                in.at(*log), toml_text(*log));
  bool const logarithmic = table["log"].value_or(false);
  GPUPS_REQUIRE(low && high && *low < *high && *low >= field.least && *high <= field.most,
                "{}: the range of {} needs from and to (numbers, the first below the second, from {} to {}): write "
                "{{from = 0.01, to = 1}}",
                in.at(table), setting.name, field.least, field.most);
  GPUPS_REQUIRE(!logarithmic || *low > 0,
                "{}: the range of {} begins at {} and has log = true (equal factors need numbers above 0): raise from, "
                "or remove log",
                in.at(table), setting.name, *low);
  setting.low = *low;
  setting.high = *high;
  setting.logarithmic = logarithmic;
  return setting;
}

SearchedSetting read_setting(TomlFile const& in, std::string const& name, toml::node const& node, TaskKinds kinds) {
  auto const [field, kind] = searched_field(in, node, name, kinds);
  if (toml::table const* const table = node.as_table()) {
    return read_range(in, field, default_config(kind->readers().front(), kinds), *table);
  }
  toml::array const* const array = node.as_array();
  GPUPS_REQUIRE(array != nullptr && array->size() >= 2,
                "{}: {} has fewer than two values (a search needs several): write a list, or {{from = ..., to = ...}}",
                in.at(node), name);
  SearchedSetting setting{.name = name};
  for (toml::node const& choice : *array) setting.choices.push_back(toml_text(choice));
  return setting;
}

// Returns a number as text, rounded to three digits, or to a whole number.
std::string number_between(SearchedSetting const& setting, double share) {
  double const value = setting.logarithmic ? setting.low * std::pow(setting.high / setting.low, share)
                                           : setting.low + (setting.high - setting.low) * share;
  if (setting.whole) return fmt::format("{}", static_cast<std::int64_t>(std::llround(value)));
  double const rounded = std::clamp(*finite_number(fmt::format("{:.3g}", value)), setting.low, setting.high);
  return fmt::format("{}", rounded);
}

}  // namespace

std::vector<std::string> SearchPlan::settings_of(std::int64_t trial) const {
  std::vector<std::string> all;
  if (trial == 0) return all;
  RandomBits const random(static_cast<std::uint64_t>(seed), trial);
  for (std::size_t s = 0; s < settings.size(); ++s) {
    SearchedSetting const& setting = settings[s];
    std::uint64_t const bits = random(s);
    all.push_back(setting.name + "=" +
                  (setting.choices.empty() ? number_between(setting, static_cast<double>(bits >> 11) * 0x1p-53)
                                           : setting.choices[below(setting.choices.size(), bits)]));
  }
  return all;
}

SearchPlan load_search_plan(fs::path const& file, TaskKinds kinds) {
  TomlFile const in{file.string()};
  toml::table const table = in.parse();
  toml::table const* const section = table["search"].as_table();
  GPUPS_REQUIRE(section != nullptr,
                "{} has no section [search] (it says what to search): add it; docs/search.md has an example",
                file.string());
  SearchPlan plan;
  toml::table results = *section;
  results.erase("concurrent");
  plan.text = toml_text(results);
  for (auto const& [key, node] : *section) {
    std::string const name(key.str());
    if (name == "settings") continue;
    if (name == "trials")
      plan.trials = in.count("search." + name, node, 1, 100'000);
    else if (name == "reduction")
      plan.reduction = in.count("search." + name, node, 2, 100);
    else if (name == "concurrent")
      plan.concurrent = in.count("search." + name, node, 1, 1024);
    else if (name == "seed")
      plan.seed = in.count("search." + name, node, 0, std::int64_t{1} << 53);
    else
      throw Error(
          fmt::format("{}: there is no key '{}' in [search] (it would have no effect): {}", in.at(node), name,
                      suggestion(name, {"trials", "reduction", "concurrent", "seed", "settings"}, "its keys are")));
  }
  toml::table const* const settings = (*section)["settings"].as_table();
  GPUPS_REQUIRE(settings != nullptr && !settings->empty(),
                "{}: [search.settings] is missing or empty (there is nothing to search): add a line such as "
                "optimizer.learning_rate = {{from = 0.01, to = 1, log = true}}",
                in.at(*section));
  for (auto const& [of_section, node] : *settings) {
    GPUPS_REQUIRE(node.is_table(), "{}: '{}' is not a setting (a setting has a section and a key): write section.key",
                  in.at(node), std::string(of_section.str()));
    for (auto const& [key, value] : *node.as_table()) {
      plan.settings.push_back(read_setting(in, fmt::format("{}.{}", of_section.str(), key.str()), value, kinds));
    }
  }
  return plan;
}

std::vector<SearchStage> stages_of(std::int64_t trials, std::int64_t reduction, std::int64_t budget) {
  // From the last stage back, as long as it has fewer trials than the first and a budget that can be divided.
  std::vector<std::int64_t> counts{trials}, budgets{budget};
  while (counts.back() / reduction >= 1) counts.push_back(counts.back() / reduction);
  for (std::int64_t divisor = reduction; budgets.size() < counts.size() && budget / divisor >= 1;
       divisor *= reduction) {
    budgets.push_back((budget + divisor - 1) / divisor);
  }
  std::vector<SearchStage> stages;
  for (std::size_t i = 0; i < budgets.size(); ++i) stages.push_back({counts[i], budgets[budgets.size() - 1 - i]});
  return stages;
}

}  // namespace gpups::trainer
