// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/entries.hpp"

#include <algorithm>

#include "kernels/base/hash.hpp"
#include "trainer/base/random.hpp"

namespace gpups::trainer {
namespace {

constexpr std::uint64_t kRareId = std::uint64_t{1} << 62;  // not the id of any value, see value_id()

// Returns the factor of a category's rows: 0 if it is dropped.
float kept_share(RowDropout const& dropout, std::size_t sample, std::size_t field) {
  std::uint64_t const bits = random_bits(dropout.seed, number(dropout.clock), dropout.sample_numbers[sample], field);
  bool const kept = static_cast<double>(bits >> 11) * 0x1p-53 >= dropout.rate;
  return kept ? static_cast<float>(1 / (1 - dropout.rate)) : 0.0F;
}

Key category_key(EntryPlan const& plan, EntryField const& field, std::uint64_t value_id) {
  Key const key = salted_key(field.salt, value_id);
  return plan.frequent == nullptr || plan.frequent->has(key) ? key : rare_key(field.salt);
}

Key bucket_key(EntryPlan const& plan, EntryField const& field, SampleBatch const& samples, std::size_t i) {
  return salted_key(field.salt, bucket_of_number(samples.numbers[i * plan.numbers + field.column], plan.buckets));
}

// For categories with one value each: entry k of a sample is of field k.
Entries single_entries(EntryPlan const& plan, SampleBatch const& samples, RowDropout const& dropout) {
  std::size_t const n = samples.samples, fields = plan.fields.size();
  Entries made;
  made.keys.resize(n * fields);
  made.sources.resize(n * fields);
  if (dropout.rate > 0) made.coefficients.resize(n * fields);
  for (std::size_t i = 0, e = 0; i < n; ++i) {
    auto const first_slot = static_cast<std::uint32_t>(i * plan.slots);
    for (EntryField const& field : plan.fields) {
      made.keys[e] = field.bucket ? bucket_key(plan, field, samples, i)
                                  : category_key(plan, field, samples.values[i * plan.categories + field.column]);
      made.sources[e] = first_slot + field.slot;
      if (dropout.rate > 0) made.coefficients[e] = kept_share(dropout, i, field.number);
      ++e;
    }
  }
  if (!plan.by_sample) {
    made.targets = made.sources;
    return made;
  }
  for (std::size_t i = 0; i <= n; ++i) made.offsets.push_back(static_cast<std::uint32_t>(i * fields));
  return made;
}

// For categories with any number of values each.
Entries listed_entries(EntryPlan const& plan, SampleBatch const& samples, RowDropout const& dropout) {
  bool const weighted = !samples.weights.empty() || plan.mean || dropout.rate > 0;
  Entries made;
  auto const add = [&](Key key, std::uint32_t source, float coefficient) {
    made.keys.push_back(key);
    made.sources.push_back(source);
    if (weighted) made.coefficients.push_back(coefficient);
  };
  auto const begin_bag = [&] { made.offsets.push_back(static_cast<std::uint32_t>(made.keys.size())); };
  for (std::size_t i = 0; i < samples.samples; ++i) {
    if (plan.by_sample) begin_bag();
    for (EntryField const& field : plan.fields) {
      auto const source = static_cast<std::uint32_t>(i * plan.slots + field.slot);
      float const kept = dropout.rate > 0 ? kept_share(dropout, i, field.number) : 1.0F;
      if (!plan.by_sample) {
        begin_bag();
        made.targets.push_back(source);
      }
      if (field.bucket) {
        add(bucket_key(plan, field, samples, i), source, kept);
        continue;
      }
      std::size_t const cell = i * plan.categories + field.column;
      std::size_t const first = samples.offsets[cell], last = samples.offsets[cell + 1];
      float const share = plan.mean ? kept / static_cast<float>(std::max<std::size_t>(last - first, 1)) : kept;
      for (std::size_t v = first; v < last; ++v) {
        float const weight = samples.weights.empty() ? 1.0F : samples.weights[v];
        add(category_key(plan, field, samples.values[v]), source, share * weight);
      }
    }
  }
  begin_bag();  // the end of the last bag
  return made;
}

}  // namespace

Key salted_key(std::uint64_t salt, std::uint64_t value_id) { return Key{kernels::mix(value_id ^ salt)}; }
Key rare_key(std::uint64_t salt) { return salted_key(salt, kRareId); }

Entries make_entries(EntryPlan const& plan, SampleBatch const& samples, RowDropout const& dropout) {
  return samples.offsets.empty() ? single_entries(plan, samples, dropout) : listed_entries(plan, samples, dropout);
}

}  // namespace gpups::trainer
