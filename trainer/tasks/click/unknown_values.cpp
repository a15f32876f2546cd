// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/unknown_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "trainer/base/progress_reporter.hpp"

namespace gpups::trainer {
namespace {

constexpr std::uint64_t kComparedMost = 4096, kCellsCompared = std::uint64_t{1} << 18;  // of a split
constexpr std::uint64_t kTrainingCompared = std::uint64_t{1} << 18;                     // samples
constexpr std::uint64_t kUnknownMin = 3;                                                // samples
constexpr std::size_t kNamedMost = 10;                                                  // categories

// Calls use(i, values) for sample i = 0, 1, .. with its values of a category.
template <class Use>
void each_cell(SampleBatch const& batch, std::size_t categories, std::size_t category, Use use) {
  std::span<std::uint64_t const> const values = batch.values;
  for (std::size_t i = 0, cell = category; i < batch.samples; ++i, cell += categories) {
    std::size_t const from = batch.offsets.empty() ? cell : batch.offsets[cell];
    std::size_t const to = batch.offsets.empty() ? cell + 1 : batch.offsets[cell + 1];
    use(i, values.subspan(from, to - from));
  }
}

// Calls use(batch) with samples of evenly spaced blocks, about `most` in all, while it returns true. Returns how many
// it read.
template <class Use>
std::uint64_t read_spaced(Split const& split, std::uint64_t most, Use use) {
  std::uint64_t const pieces = (split.count + kSampleBlock - 1) / kSampleBlock;
  std::uint64_t const at_once = std::min(kSampleBlock, most);
  std::uint64_t const step = std::max<std::uint64_t>(1, (pieces * at_once + most - 1) / most);
  std::uint64_t read = 0;
  SampleBatch batch;
  for (std::uint64_t piece = 0; piece < pieces && read < most; piece += step) {
    std::uint64_t const begin = piece * kSampleBlock;
    split.samples.read(split.first + begin, std::min(at_once, split.count - begin), batch);
    read += batch.samples;
    if (!use(std::as_const(batch))) break;
  }
  return read;
}

// A category of a split's samples.
struct Compared {
  std::size_t category;
  std::uint64_t samples = 0;
  std::vector<bool> is_known{};  // of each sample: training has seen a value of it
  std::uint64_t known = 0;
  // The samples of each value that training has not yet shown.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> samples_of{};

  std::uint64_t unknown() const { return samples - known; }
  bool most_are_unknown() const { return unknown() >= kUnknownMin && 2 * unknown() >= samples; }

  void add(SampleBatch const& batch, std::size_t categories) {
    each_cell(batch, categories, category, [&](std::size_t, std::span<std::uint64_t const> values) {
      for (std::uint64_t const value : values) samples_of[value].push_back(static_cast<std::uint32_t>(samples));
      ++samples;
    });
    is_known.resize(samples);
  }
  void see(std::uint64_t value) {
    auto const found = samples_of.find(value);
    if (found == samples_of.end()) return;
    for (std::uint32_t const sample : found->second) {
      if (!is_known[sample]) ++known;
      is_known[sample] = true;
    }
    samples_of.erase(found);
  }
};

// Returns the share of new samples of the same kind that would have a value which `train` does not have: about that of
// the values that occur once (Good, "The population frequencies of species", 1953).
double expected_unknown(Split const& train, std::size_t category, std::span<std::size_t const> value_sets) {
  KeyCounts counts;
  std::uint64_t once = 0, all = 0;
  read_spaced(train, kTrainingCompared, [&](SampleBatch const& batch) {
    for (std::size_t c = 0; c < value_sets.size(); ++c) {
      if (value_sets[c] != value_sets[category]) continue;
      each_cell(batch, value_sets.size(), c, [&](std::size_t, std::span<std::uint64_t const> values) {
        for (std::uint64_t const value : values) {
          std::uint32_t const added = counts.add(Key{value});
          once += added == 1 ? 1 : 0;
          once -= added == 2 ? 1 : 0;
          ++all;
        }
      });
    }
    return true;
  });
  return static_cast<double>(once) / static_cast<double>(std::max<std::uint64_t>(all, 1));
}

// Returns the names of categories but the first, such as ", and many of C2, C3".
std::string and_others(std::vector<Compared> const& all, std::span<std::string const> labels) {
  if (all.size() < 2) return {};
  std::string text = ", and many of ";
  for (std::size_t i = 1; i < std::min(all.size(), kNamedMost + 1); ++i) {
    text += (i > 1 ? ", " : "") + labels[all[i].category];
  }
  if (all.size() > kNamedMost + 1) text += fmt::format(" and {} others", all.size() - kNamedMost - 1);
  return text;
}

void most_unknown_first(std::vector<Compared>& all) {
  std::stable_sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.unknown() > b.unknown(); });
}

constexpr char kAdvice[] =
    "if they should be the same values, write them alike and in the same columns: 105.0 is another value than 105";

}  // namespace

std::string column_label(SameColumns const& columns, std::size_t column, std::string const& name) {
  if (columns.empty() || !columns.first().heading || column >= columns.first().columns.size()) return name;
  std::size_t const place = columns.first().columns[column];
  auto const& names = columns.first().names;
  return place < names.size() && !names[place].empty() ? fmt::format("'{}'", names[place]) : name;
}

std::vector<std::string> category_labels(Layout const& layout, SameColumns const& columns) {
  std::vector<std::string> labels;
  for (std::size_t c = 0; c < layout.categories.size(); ++c) {
    labels.push_back(column_label(columns, 1 + layout.numbers.size() + c, layout.categories[c].name));
  }
  return labels;
}

void say_unknown_values(Split const& train, Split const& split, std::string_view name,
                        std::span<std::size_t const> value_sets, std::span<std::string const> labels,
                        std::vector<std::string>& notices) {
  std::size_t const categories = value_sets.size();
  if (categories == 0) return;
  std::vector<Compared> all;
  for (std::size_t c = 0; c < categories; ++c) all.push_back({.category = c});
  std::uint64_t const most = std::clamp<std::uint64_t>(kCellsCompared / categories, 1, kComparedMost);
  read_spaced(split, most, [&](SampleBatch const& batch) {
    for (Compared& one : all) one.add(batch, categories);
    return true;
  });
  std::uint64_t const seen = read_spaced(train, kTrainingCompared, [&](SampleBatch const& batch) {
    for (Compared& one : all) {
      for (std::size_t c = 0; c < categories; ++c) {
        if (value_sets[c] != value_sets[one.category]) continue;
        each_cell(batch, categories, c, [&](std::size_t, std::span<std::uint64_t const> values) {
          for (std::uint64_t const value : values) one.see(value);
        });
      }
    }
    std::erase_if(all, [](Compared const& one) { return !one.most_are_unknown(); });
    return !all.empty();
  });
  std::erase_if(all, [&](Compared const& one) {
    double const expected = expected_unknown(train, one.category, value_sets) * static_cast<double>(one.samples);
    return static_cast<double>(one.unknown()) < 2 * expected;
  });
  if (all.empty()) return;
  most_unknown_first(all);
  Compared const& first = all.front();
  bool const is_list = split.samples.layout().categories[first.category].kind != CategoryField::Kind::kOne;
  notices.push_back(fmt::format(
      "{} of {} of the {} have {} of {} that {} not seen{}: {}", first.unknown(), with_count(first.samples, "sample"),
      name, is_list ? "only values" : "a value", labels[first.category],
      seen == train.count ? std::string("training has")
                          : fmt::format("{} of the training samples, of {}, have", seen, train.count),
      and_others(all, labels), kAdvice));
}

void say_values_without_rows(Stream& stream, Store& store, Features const& features, SampleBatch const& samples,
                             std::span<std::string const> labels, std::vector<std::string>& notices) {
  std::vector<Compared> all;
  bool any_has_row = false;  // of all categories
  for (std::size_t c = 0; c < labels.size(); ++c) {
    std::vector<std::uint64_t> values;
    std::vector<std::size_t> sample_of;
    each_cell(samples, labels.size(), c, [&](std::size_t i, std::span<std::uint64_t const> of_sample) {
      values.insert(values.end(), of_sample.begin(), of_sample.end());
      sample_of.insert(sample_of.end(), of_sample.size(), i);
    });
    std::vector<bool> const have = features.wait_have_rows(stream, store, c, values);
    Compared one{.category = c, .samples = samples.samples, .is_known = std::vector<bool>(samples.samples)};
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (have[v] && !one.is_known[sample_of[v]]) ++one.known;
      if (have[v]) one.is_known[sample_of[v]] = true;
    }
    // Without the training data, a column of users, most of them new, cannot be told from values in another notation.
    any_has_row = any_has_row || one.known > 0;
    if (2 * one.unknown() >= one.samples && one.samples > 0) all.push_back(std::move(one));
  }
  // Some samples in which no category has a known value are unusual, however few they are.
  if (any_has_row) std::erase_if(all, [](Compared const& one) { return one.unknown() < kUnknownMin; });
  if (all.empty()) return;
  most_unknown_first(all);
  notices.push_back(
      fmt::format("{} of {} have no value of {} that has a row in the model{} (training has not seen them, or too "
                  "rarely): {}",
                  all.front().unknown(), with_count(all.front().samples, "sample"), labels[all.front().category],
                  and_others(all, labels), kAdvice));
}

}  // namespace gpups::trainer
