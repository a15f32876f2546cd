// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/features.hpp"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/runtime/upload.hpp"
#include "trainer/tasks/click/click_kind.hpp"
#include "trainer/tasks/click/distinct_count.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kWidthMax = std::size_t{1} << 17;

std::uint64_t salt_of(std::string_view space) { return XXH3_64bits(space.data(), space.size()); }

// Returns the category with this name. Throws Error if there is none. setting: the setting that has the name.
std::size_t find_category(Layout const& layout, std::string_view name, std::string_view setting) {
  auto const& all = layout.categories;
  auto const found =
      std::find_if(all.begin(), all.end(), [name](CategoryField const& field) { return field.name == name; });
  GPUPS_REQUIRE(!all.empty(), "{} has '{}' (the data has no categories): remove the setting", setting, name);
  GPUPS_REQUIRE(found != all.end(), "{} has '{}' (the data has no category of this name): use one of {} to {}", setting,
                name, all.front().name, all.back().name);
  return static_cast<std::size_t>(found - all.begin());
}

// Returns the name from which the salt of each category is made. With "C1,C2", both have the name C1.
std::vector<std::string> spaces_of(Layout const& layout, std::vector<std::string> const& shared,
                                   std::vector<std::size_t> const& dims) {
  std::vector<std::string> spaces;
  for (CategoryField const& field : layout.categories) spaces.push_back(field.name);
  std::vector<bool> named(spaces.size());
  for (std::string const& set : shared) {
    GPUPS_REQUIRE(set.find(',') != std::string::npos,
                  "model.shared has '{}' (one category alone shares nothing): list two or more, as in \"C1,C2\"", set);
    std::size_t first = spaces.size();
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
      end = set.find(',', begin);
      std::size_t const category = find_category(layout, set.substr(begin, end - begin), "model.shared");
      GPUPS_REQUIRE(!named[category], "model.shared has '{}' twice (a category shares one set of rows): list it once",
                    layout.categories[category].name);
      named[category] = true;
      if (first == spaces.size()) first = category;
      GPUPS_REQUIRE(
          dims[category] == dims[first],
          "{} and {} share rows and have the dims {} and {} (a row has one dim): give them one dim in model.dims",
          layout.categories[first].name, layout.categories[category].name, dims[first], dims[category]);
      spaces[category] = layout.categories[first].name;
    }
  }
  return spaces;
}

// Returns the dim of each category's rows.
std::vector<std::size_t> dims_of(Layout const& layout, Config const& config) {
  std::vector<std::size_t> dims(layout.categories.size(), static_cast<std::size_t>(config.model.dim));
  std::vector<bool> named(dims.size());
  for (std::string const& setting : config.settings<ClickSettings>().dims) {
    std::size_t const colon = setting.find(':');
    std::size_t const category = find_category(layout, setting.substr(0, colon), "model.dims");
    std::size_t dim = 0;
    char const* const end = setting.data() + setting.size();
    auto const [stop, error] = colon == std::string::npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                                          : std::from_chars(setting.data() + colon + 1, end, dim);
    GPUPS_REQUIRE(
        error == std::errc() && stop == end && dim >= 1 && dim <= 65536,
        "model.dims has '{}' (an element is a category, a colon and the dim of its rows, from 1 to 65536): write "
        "it as in \"C3:32\"",
        setting);
    GPUPS_REQUIRE(!named[category], "model.dims has '{}' twice (its rows have one dim): list it once",
                  layout.categories[category].name);
    named[category] = true;
    dims[category] = dim;
  }
  return dims;
}

}  // namespace

Key click_key(std::string_view space, std::uint64_t value_id) { return salted_key(salt_of(space), value_id); }

Features::Features(Layout const& layout, Config const& config, FeatureNeeds const& needs,
                   SampleStatistics const& statistics)
    : needs_(needs),
      mean_(config.settings<ClickSettings>().pooling == "mean"),
      buckets_(static_cast<std::uint32_t>(config.settings<ClickSettings>().buckets)),
      layout_numbers_(layout.numbers.size()),
      layout_categories_(layout.categories.size()),
      statistics_(statistics) {
  ClickSettings const& settings = config.settings<ClickSettings>();
  statistics_.mean.resize(layout_numbers_, 0);
  statistics_.deviation.resize(layout_numbers_, 1);
  bool const floats = settings.numeric_features == "log" || settings.numeric_features == "both";
  bool const buckets = settings.numeric_features == "buckets" || settings.numeric_features == "both";
  numbers_ = needs.numbers && floats ? layout.numbers.size() : 0;

  std::vector<std::size_t> dims = dims_of(layout, config);
  auto const spaces = spaces_of(layout, settings.shared, dims);
  for (std::size_t c = 0; c < layout.categories.size(); ++c) {
    fields_.push_back({.salt = salt_of(spaces[c]), .column = 0, .number = c, .name = layout.categories[c].name});
  }
  for (std::size_t i = 0; buckets && i < layout.numbers.size(); ++i) {
    fields_.push_back(
        {.salt = salt_of(layout.numbers[i]), .column = 0, .number = i, .bucket = true, .name = layout.numbers[i]});
    dims.push_back(static_cast<std::size_t>(config.model.dim));
  }
  GPUPS_REQUIRE(!fields_.empty() || numbers_ > 0,
                "the model has no input (the data has no categories, and model.numeric_features is \"{}\"): set "
                "data.categorical_columns, or another model.numeric_features",
                settings.numeric_features);

  std::map<std::size_t, std::vector<std::size_t>> by_dim;
  for (std::size_t f = 0; f < fields_.size(); ++f) by_dim[dims[f]].push_back(f);
  if (needs.rows) {
    for (auto& [dim, fields] : by_dim) groups_.push_back({dim, std::move(fields)});
    place_groups(config.model.dim);
  }
  for (DimGroup const& group : groups_) tables_.push_back({fmt::format("rows_{}", group.dim), group.dim, false});
  if (needs.weights && !fields_.empty()) tables_.push_back({"weights", 1, true});
  for (std::size_t part = 0; part < tables_.size(); ++part) plans_.push_back(make_plan(part));
}

EntryPlan Features::make_plan(std::size_t part) const {
  std::size_t const stride = row_stride(tables_[part].dim);
  bool const weights = tables_[part].weights;
  EntryPlan plan{.fields = {}, .numbers = layout_numbers_, .categories = layout_categories_};
  plan.slots = weights ? 1 : static_cast<std::uint32_t>(width_ / stride);
  plan.by_sample = weights;
  plan.mean = mean_;
  plan.buckets = buckets_;
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    FieldPlace const& field = fields_[f];
    if (!weights && !groups_[part].has(f)) continue;
    auto const slot = weights ? 0 : static_cast<std::uint32_t>(field.column / stride);
    plan.fields.push_back({field.salt, field.number, field.bucket, f, slot});
  }
  return plan;
}

void Features::merge_rare_values(FrequentValues const& values) {
  for (EntryPlan& plan : plans_) plan.frequent = &values;
}

void Features::place_groups(std::int64_t dim) {
  std::size_t column = row_stride(needs_.head_of_rows ? static_cast<std::size_t>(dim) : numbers_), step = 16;
  for (DimGroup const& group : groups_) {
    std::size_t const stride = row_stride(group.dim);
    step = std::lcm(step, stride);
    column = (column + stride - 1) / stride * stride;
    for (std::size_t field : group.fields) {
      fields_[field].column = column;
      column += stride;
    }
  }
  width_ = (column + step - 1) / step * step;
  GPUPS_REQUIRE(
      width_ <= kWidthMax,
      "model.dims makes blocks of {} numbers for each sample (a block is a multiple of every dim): use dims that "
      "divide each other",
      width_);
}

std::vector<std::pair<std::string, std::size_t>> Features::columns() const {
  std::vector<std::pair<std::string, std::size_t>> columns;
  for (FieldPlace const& field : fields_) columns.emplace_back(field.name, field.column);
  std::sort(columns.begin(), columns.end(), [](auto const& a, auto const& b) { return a.second < b.second; });
  return columns;
}

void Features::add_numbers(std::vector<float>& numbers, SampleBatch const& samples) const {
  std::size_t const stride = row_stride(numbers_);
  for (std::size_t i = 0; i < samples.samples; ++i) {
    for (std::size_t j = 0; j < numbers_; ++j) {
      float const log = log_of_number(samples.numbers[i * layout_numbers_ + j]);
      numbers[i * stride + j] = (log - statistics_.mean[j]) / statistics_.deviation[j];
    }
  }
}

ClickInput Features::make(Stream& stream, SampleBatch const& samples, RowDropout const& dropout) const {
  ClickInput input;
  input.samples = samples.samples;
  input.labels = kernels::uploaded(stream, samples.labels);
  if (numbers_ > 0) {
    std::vector<float> numbers(samples.samples * row_stride(numbers_));
    add_numbers(numbers, samples);
    input.numbers = Matrix<float>(stream.device(), samples.samples, numbers_);
    kernels::upload<float>(stream, input.numbers.view().flat(), numbers);
  }
  for (std::size_t part = 0; part < tables_.size(); ++part) {
    input.parts.push_back(make_part(stream, samples, part, dropout));
  }
  return input;
}

ClickInput::InputPart Features::make_part(Stream& stream, SampleBatch const& samples, std::size_t part,
                                          RowDropout const& dropout) const {
  bool const weights = tables_[part].weights;
  GPUPS_REQUIRE(samples.samples * plans_[part].slots <= std::numeric_limits<std::uint32_t>::max(),
                "a rank has {} samples in a step, with {} rows each (numbers of rows have 32 bits): lower "
                "train.batch_size",
                samples.samples, plans_[part].slots);
  Entries const entries = make_entries(plans_[part], samples, weights ? RowDropout{} : dropout);
  return {.table = TableId{static_cast<std::uint32_t>(part)},
          .keys = kernels::uploaded(stream, entries.keys),
          .offsets = kernels::uploaded(stream, entries.offsets),
          .coefficients = kernels::uploaded(stream, entries.coefficients),
          .targets = kernels::uploaded(stream, entries.targets),
          .sources = kernels::uploaded(stream, entries.sources),
          .weights = weights};
}

// The number of distinct keys among more samples follows a power law (Heaps' law). Two points give its exponent: the
// distinct keys of all samples that are read, and of the first quarter to half of them.
std::vector<Features::KeyEstimate> Features::estimate_keys(Samples const& samples, std::uint64_t first,
                                                           std::uint64_t count, std::uint64_t batch) const {
  struct Seen {
    std::uint64_t samples;
    std::vector<double> keys;  // distinct keys of each table
  };
  std::vector<Seen> doublings;
  std::vector<KeyEstimate> estimates(plans_.size());
  std::vector<DistinctCount> distinct(plans_.size());
  auto const counts = [&] {
    std::vector<double> all;
    for (DistinctCount& one : distinct) all.push_back(one.count());
    return all;
  };
  std::vector<std::uint64_t> entries(plans_.size());
  std::uint64_t read = 0;
  std::optional<Seen> of_batch;
  each_measured(samples, first, count, kMeasured, [&](SampleBatch const& some) {
    read += some.samples;
    for (std::size_t p = 0; p < plans_.size(); ++p) {
      Entries const made = make_entries(plans_[p], some, {});
      entries[p] += made.keys.size();
      for (Key const key : made.keys) distinct[p].add(key);
      estimates[p].bags = !made.targets.empty();
      estimates[p].coefficients = !made.coefficients.empty();
    }
    if (!of_batch && read >= batch) of_batch = {read, counts()};
    if (doublings.empty() || read >= 2 * doublings.back().samples) doublings.push_back({read, counts()});
  });
  Seen const all{read, counts()};
  Seen const& before = doublings.size() > 1 ? *std::prev(doublings.end(), 2) : all;
  for (std::size_t p = 0; p < plans_.size(); ++p) {
    auto const grown = [&](std::uint64_t to) {
      double const times = static_cast<double>(read) / static_cast<double>(before.samples);
      double const power =
          times > 1 && before.keys[p] > 0 ? std::log(all.keys[p] / before.keys[p]) / std::log(times) : 1;
      return all.keys[p] * std::pow(static_cast<double>(to) / static_cast<double>(read), std::clamp(power, 0.0, 1.0));
    };
    KeyEstimate& estimate = estimates[p];
    estimate.entries_per_sample = static_cast<double>(entries[p]) / static_cast<double>(read);
    estimate.in_all = grown(count);
    estimate.in_batch =
        std::min(of_batch ? of_batch->keys[p] : grown(batch), estimate.entries_per_sample * static_cast<double>(batch));
  }
  return estimates;
}

std::vector<std::size_t> Features::value_sets() const {
  std::vector<std::size_t> first_with_rows(layout_categories_);
  for (std::size_t c = 0; c < layout_categories_; ++c) {
    while (fields_[first_with_rows[c]].salt != fields_[c].salt) ++first_with_rows[c];
  }
  return first_with_rows;
}

std::vector<bool> Features::wait_have_rows(Stream& stream, Store& store, std::size_t category,
                                           std::span<std::uint64_t const> values) const {
  std::vector<Key> keys;
  for (std::uint64_t const value : values) keys.push_back(salted_key(fields_[category].salt, value));
  std::vector<bool> have(keys.size());
  if (FrequentValues const* const frequent = plans_.front().frequent) {
    for (std::size_t i = 0; i < keys.size(); ++i) have[i] = frequent->has(keys[i]);
    return have;
  }
  std::size_t part = 0;
  while (!tables_[part].weights && !groups_[part].has(category)) ++part;
  Array<Key> const there = to_device(stream, keys);
  Matrix<float> rows(stream.device(), keys.size(), tables_[part].dim);
  Array<std::uint8_t> found(stream.device(), keys.size());
  store.lookup(stream, TableId{static_cast<std::uint32_t>(part)}, there, rows, found);
  std::vector<std::uint8_t> const here = to_host(stream, View<std::uint8_t const>(found));
  std::copy(here.begin(), here.end(), have.begin());
  return have;
}

FrequentValues Features::measure(Samples const& samples, std::uint64_t first, std::uint64_t count,
                                 std::uint32_t min_count, std::vector<ValueCounts>* of_categories) const {
  KeyCounts counts;
  std::vector<ValueCounts> of_each(layout_categories_);
  std::vector<std::size_t> const first_with_rows = value_sets();
  each_measured(samples, first, count, count, [&](SampleBatch const& batch) {
    std::size_t const cells = batch.samples * layout_categories_;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      std::uint64_t const salt = fields_[cell % layout_categories_].salt;
      ValueCounts& of_category = of_each[first_with_rows[cell % layout_categories_]];
      std::size_t const from = batch.offsets.empty() ? cell : batch.offsets[cell];
      std::size_t const to = batch.offsets.empty() ? cell + 1 : batch.offsets[cell + 1];
      for (std::size_t v = from; v < to; ++v) {
        std::uint32_t const added = counts.add(salted_key(salt, batch.values[v]));
        of_category.values += added == 1 ? 1 : 0;
        of_category.has_frequent = of_category.has_frequent || added >= min_count;
      }
    }
  });
  if (of_categories != nullptr) {
    for (std::size_t c = 0; c < layout_categories_; ++c) {
      of_each[c].has_frequent = of_each[first_with_rows[c]].has_frequent;
    }
    *of_categories = of_each;
  }
  return counts.at_least(min_count);
}

}  // namespace gpups::trainer
