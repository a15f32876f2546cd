// SPDX-License-Identifier: Apache-2.0
// The entries of a part of a batch: their keys, and the places of the blocks into which their rows are pooled.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "gpups/types.hpp"
#include "trainer/tasks/click/frequent_values.hpp"
#include "trainer/tasks/click/samples.hpp"

namespace gpups::trainer {

// Drops categories of samples at random, with all their rows: a function of seed, step, sample and category. The rows
// of the other categories are multiplied by 1 / (1 - rate). The weights of the linear part are not dropped.
struct RowDropout {
  double rate = 0;  // 0: off
  std::uint64_t seed = 0;
  Clock clock{};
  std::span<std::uint32_t const> sample_numbers{};  // (n): numbers in the global batch
};

// A category, or the bucket of a number, in a part.
struct EntryField {
  std::uint64_t salt;      // of its keys
  std::size_t column;      // of the category, or of the number
  bool bucket;             // it is the bucket of a number
  std::size_t number;      // its number among all fields
  std::uint32_t slot = 0;  // its place in a sample's block, counted in rows of the table
};

// How the entries of a part are made from a batch.
struct EntryPlan {
  std::vector<EntryField> fields;
  std::size_t numbers, categories;           // columns of the batch
  std::uint32_t slots = 1;                   // rows of the table in a block
  std::uint32_t buckets = 1;                 // of numbers, from a number to its double
  bool by_sample = false;                    // one bag for each sample; else one for each sample and field
  bool mean = false;                         // a bag is the mean of its rows; else their sum
  FrequentValues const* frequent = nullptr;  // null: every value has its own row
};

// The arrays of a ClickInput::InputPart.
struct Entries {
  std::vector<Key> keys;
  std::vector<std::uint32_t> offsets, targets, sources;
  std::vector<float> coefficients;
};

// Returns the id of a number's bucket, which is used like the id of a category's value. From 1 on there are
// `each_doubling` buckets from a number to its double. Numbers below 1 share a bucket if they have the same floor.
// Missing numbers (NaN) have bucket 0.
inline std::uint64_t bucket_of_number(float x, std::uint32_t each_doubling) {
  if (std::isnan(x)) return 0;
  if (x >= 1)
    return 1 + static_cast<std::uint64_t>(each_doubling * std::min(std::log2(static_cast<double>(x)), 1024.0));
  auto const floor = static_cast<std::int32_t>(std::max(std::floor(x), -2e9F));
  return std::uint64_t{1} << 32 | static_cast<std::uint32_t>(floor);
}

// Returns the key of a value of the category with this salt.
Key salted_key(std::uint64_t salt, std::uint64_t value_id);
// Returns the key that all rare values of a category share.
Key rare_key(std::uint64_t salt);

// Returns the entries of a part.
Entries make_entries(EntryPlan const& plan, SampleBatch const& samples, RowDropout const& dropout);

}  // namespace gpups::trainer
