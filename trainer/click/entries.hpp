// SPDX-License-Identifier: Apache-2.0
// The entries of one table's part of a batch: which keys, and where the rows behind them go.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "gpups/types.hpp"
#include "trainer/click/frequent_values.hpp"
#include "trainer/click/samples.hpp"

namespace gpups::trainer {

// Leaves categories out of samples at random, with their rows: a function of seed, step, sample and category. The rows
// of those that stay count 1 / (1 - rate) times. Rows of one number are not left out.
struct RowDropout {
  double rate = 0;  // 0: off
  std::uint64_t seed = 0;
  Clock clock{};
  std::span<std::uint32_t const> sample_numbers{};  // (n) in the global batch
};

// A category, or a number's bucket, as a part has it.
struct EntryField {
  std::uint64_t salt;      // of its keys
  std::size_t column;      // of the category, or of the number
  bool bucket;             // it is a number's bucket
  std::size_t number;      // among all fields
  std::uint32_t slot = 0;  // its place in a sample's block, in rows of the table's width
};

// How a part is made of a batch.
struct EntryPlan {
  std::vector<EntryField> fields;
  std::size_t numbers, categories;           // columns of the batch
  std::uint32_t slots = 1;                   // of a block, in rows of the table's width
  std::uint32_t buckets = 1;                 // of numbers, from each to its double
  bool by_sample = false;                    // a bag for each sample; else one for each sample and field
  bool mean = false;                         // of a bag's rows; else their sum
  FrequentValues const* frequent = nullptr;  // null: all values are told apart
};

// Arrays as ClickInput::InputPart has them.
struct Entries {
  std::vector<Key> keys;
  std::vector<std::uint32_t> offsets, targets, sources;
  std::vector<float> coefficients;
};

// The id of its bucket, as of a category's value. From 1 on there are `each_doubling` buckets from a number to its
// double; below, numbers that have the same floor share one; missing ones have the first.
inline std::uint64_t bucket_of_number(float x, std::uint32_t each_doubling) {
  if (std::isnan(x)) return 0;
  if (x >= 1)
    return 1 + static_cast<std::uint64_t>(each_doubling * std::min(std::log2(static_cast<double>(x)), 1024.0));
  auto const floor = static_cast<std::int32_t>(std::max(std::floor(x), -2e9F));
  return std::uint64_t{1} << 32 | static_cast<std::uint32_t>(floor);
}

Key salted_key(std::uint64_t salt, std::uint64_t value_id);
// That of all rare values of a category.
Key rare_key(std::uint64_t salt);

Entries make_entries(EntryPlan const& plan, SampleBatch const& samples, RowDropout const& dropout);

}  // namespace gpups::trainer
