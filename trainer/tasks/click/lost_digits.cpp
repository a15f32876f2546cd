// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/lost_digits.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <string_view>
#include <unordered_set>

#include "trainer/tasks/click/unknown_values.hpp"

namespace gpups::trainer {
namespace {

constexpr std::uint64_t kLookedAt = std::uint64_t{1} << 16;  // samples
constexpr std::size_t kLogarithmsMost = 127;
constexpr float kExactMost = 0x1p24F;  // whole numbers above it have others beside them that are not kept apart

constexpr std::string_view kSevenDigits =
    "numbers and their logarithms have 32 bits, about seven digits: subtract the smallest number from all, as in days "
    "or seconds since the first, or make the column a category";

// The different numbers of a column.
struct DifferentNumbers {
  std::unordered_set<float> numbers{}, logarithms{};
  std::uint64_t count = 0;

  bool has_many() const { return logarithms.size() > kLogarithmsMost; }
  void add(float number) {
    if (std::isnan(number) || has_many()) return;
    ++count;
    if (numbers.insert(number).second) logarithms.insert(log_of_number(number));
  }
  // Returns what is wrong with the column, or nothing.
  std::string lost(std::string_view label) const {
    if (numbers.size() >= 2 * logarithms.size() && !has_many() && !numbers.empty()) {
      return fmt::format(
          "the numbers of {} have {} different values, and {}, which the model reads", label, numbers.size(),
          logarithms.size() == 1 ? "one logarithm" : fmt::format("{} different logarithms", logarithms.size()));
    }
    if (numbers.size() == 1 && count > 1 && std::fabs(*numbers.begin()) > kExactMost) {
      return fmt::format("all numbers of {} are {:.7g}", label, *numbers.begin());
    }
    return {};
  }
};

}  // namespace

void say_lost_digits(Split const& train, SameColumns const& columns, std::vector<std::string>& notices) {
  Layout const& layout = train.samples.layout();
  std::vector<DifferentNumbers> of_column(layout.numbers.size());
  if (of_column.empty()) return;
  each_measured(train.samples, train.first, train.count, kLookedAt, [&](SampleBatch const& batch) {
    for (std::size_t i = 0; i < batch.numbers.size(); ++i) of_column[i % of_column.size()].add(batch.numbers[i]);
  });
  for (std::size_t j = 0; j < of_column.size(); ++j) {
    std::string const lost = of_column[j].lost(column_label(columns, 1 + j, layout.numbers[j]));
    if (!lost.empty()) notices.push_back(fmt::format("{} ({})", lost, kSevenDigits));
  }
}

}  // namespace gpups::trainer
