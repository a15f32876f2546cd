// SPDX-License-Identifier: Apache-2.0
#include "trainer/trials/bench_plan.hpp"

#include <algorithm>

#include "trainer/base/edit_distance.hpp"
#include "trainer/trials/toml_file.hpp"

namespace gpups::trainer {
namespace {

// Returns the strings of a list.
std::vector<std::string> strings_of(TomlFile const& in, std::string const& name, toml::node const& node) {
  std::vector<std::string> all;
  toml::array const* const array = node.as_array();
  bool well = array != nullptr && !array->empty();
  for (std::size_t i = 0; well && i < array->size(); ++i) {
    auto const text = array->get(i)->value_exact<std::string>();
    well = text.has_value();
    all.push_back(text.value_or(""));
  }
  GPUPS_REQUIRE(well, "{}: {} is not a list of strings (it needs at least one): write [\"...\"]", in.at(node), name);
  return all;
}

std::vector<std::int64_t> seeds_of(TomlFile const& in, toml::node const& node) {
  std::vector<std::int64_t> seeds;
  toml::array const* const array = node.as_array();
  GPUPS_REQUIRE(array != nullptr && !array->empty(),
                "{}: bench.seeds is not a list (each seed is a run): write [1, 2, 3]", in.at(node));
  for (toml::node const& seed : *array) seeds.push_back(in.count("bench.seeds", seed, 0, std::int64_t{1} << 53));
  std::vector<std::int64_t> sorted = seeds;
  std::sort(sorted.begin(), sorted.end());
  GPUPS_REQUIRE(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
                "{}: bench.seeds has a seed twice (it would count twice): write it once", in.at(node));
  return seeds;
}

std::vector<PublishedResult> published_of(TomlFile const& in, toml::node const& node,
                                          std::vector<std::string> const& metrics) {
  std::vector<PublishedResult> all;
  GPUPS_REQUIRE(node.is_table(),
                "{}: bench.published is not a section (it has a line for each result): write "
                "[bench.published]",
                in.at(node));
  for (auto const& [source, result] : *node.as_table()) {
    PublishedResult published{.source = std::string(source.str()), .metrics = {}};
    GPUPS_REQUIRE(result.is_table(),
                  "{}: the result of {} has no metrics (they are printed beside ours): write {{{} = 0.5}}",
                  in.at(result), published.source, metrics.front());
    for (auto const& [metric, value] : *result.as_table()) {
      auto const number = value.value<double>();
      bool const known = std::find(metrics.begin(), metrics.end(), metric.str()) != metrics.end();
      GPUPS_REQUIRE(number && known, "{}: '{}' is not a number of bench.metrics (it could not be compared): use {}",
                    in.at(value), std::string(metric.str()), fmt::join(metrics, ", "));
      published.metrics[std::string(metric.str())] = *number;
    }
    all.push_back(published);
  }
  return all;
}

}  // namespace

BenchPlan load_bench_plan(std::filesystem::path const& file) {
  TomlFile const in{file.string()};
  toml::table const table = in.parse();
  toml::table const* const section = table["bench"].as_table();
  GPUPS_REQUIRE(section != nullptr,
                "{} has no section [bench] (it says what to measure): add it; docs/bench.md has an example",
                file.string());
  std::vector<std::string> const keys{"data", "metrics", "seeds", "folds", "published"};
  for (auto const& [key, node] : *section) {
    std::string const name(key.str());
    GPUPS_REQUIRE(std::find(keys.begin(), keys.end(), name) != keys.end(),
                  "{}: there is no key '{}' in [bench] (it would have no effect): {}", in.at(node), name,
                  suggestion(name, keys, "its keys are"));
  }
  for (char const* key : {"data", "metrics"}) {
    GPUPS_REQUIRE(section->contains(key), "{}: bench.{} is missing (a benchmark needs it): add it", in.at(*section),
                  key);
  }
  BenchPlan plan;
  auto const data = (*section)["data"].value_exact<std::string>();
  GPUPS_REQUIRE(data.has_value(), "{}: bench.data is not a string (it says where the data comes from): write one",
                in.at(*section->get("data")));
  plan.data = *data;
  plan.metrics = strings_of(in, "bench.metrics", *section->get("metrics"));
  if (toml::node const* const seeds = section->get("seeds")) plan.seeds = seeds_of(in, *seeds);
  if (toml::node const* const folds = section->get("folds")) {
    GPUPS_REQUIRE(folds->is_array() && !folds->as_array()->empty(),
                  "{}: bench.folds is not a list (each fold is a list of settings): write [[\"data.train=u1.base\"]]",
                  in.at(*folds));
    plan.folds.clear();
    for (toml::node const& fold : *folds->as_array()) plan.folds.push_back(strings_of(in, "a fold", fold));
  }
  if (toml::node const* const published = section->get("published")) {
    plan.published = published_of(in, *published, plan.metrics);
  }
  return plan;
}

}  // namespace gpups::trainer
