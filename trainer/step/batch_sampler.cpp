// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/batch_sampler.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/base/random.hpp"
#include "trainer/placement/placement.hpp"

namespace gpups::trainer {
namespace {

constexpr std::uint64_t kBatches = 1;  // purpose of the random bits: the order of batches

// Returns the first sample of microbatch m when `samples` samples are cut into `microbatches` microbatches: the least i
// with i * V / B >= m.
std::uint32_t first_sample(std::uint64_t m, std::uint64_t samples, std::uint64_t microbatches) {
  return static_cast<std::uint32_t>((m * samples + microbatches - 1) / microbatches);
}

}  // namespace

BatchSampler::BatchSampler(std::uint64_t samples, BatchOptions const& options)
    : samples_(samples),
      options_(options),
      steps_per_epoch_(static_cast<std::int64_t>((samples + options.batch_size - 1) / options.batch_size)),
      order_({.samples = samples, .seed = options.seed, .block_samples = options.block_samples}),
      order_of_batches_({.samples = static_cast<std::uint64_t>(steps_per_epoch_),
                         .seed = random_bits(options.seed, kBatches),
                         .block_samples = 1}) {
  GPUPS_ASSERT(samples > 0 && options.batch_size > 0 && number(options.rank) < options.ranks);
  GPUPS_ASSERT(options.placement == nullptr || options.placement->parts() == options.microbatches);
  GPUPS_ASSERT(options.shuffled || (!options.same_batches && options.placement == nullptr));
  GPUPS_REQUIRE(
      options.ranks <= options.microbatches,
      "there are {} ranks and {} microbatches (a rank computes whole microbatches, and some ranks would have none): "
      "use at most {}, or start a run with train.microbatches={}",
      options.ranks, options.microbatches, with_count(options.microbatches, "rank"), options.ranks);
}

std::int64_t BatchSampler::batch_number(Clock clock) {
  std::int64_t const epoch = number(clock) / steps_per_epoch_, place = number(clock) % steps_per_epoch_;
  // The first epoch keeps the order in which batches are cut, so it reads the data as fast as without same_batches.
  if (!options_.same_batches || epoch == 0) return place;
  std::uint64_t batch = 0;
  order_of_batches_.fill(static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(place), {&batch, 1});
  return static_cast<std::int64_t>(batch);
}

std::uint32_t BatchSampler::samples(Clock clock) {
  std::uint64_t const first = static_cast<std::uint64_t>(batch_number(clock)) * options_.batch_size;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(options_.batch_size, samples_ - first));
}

std::vector<std::uint64_t> BatchSampler::samples_of(Clock clock, std::uint32_t first, std::uint32_t last) {
  std::uint64_t const epoch = options_.same_batches ? 0 : static_cast<std::uint64_t>(number(clock) / steps_per_epoch_);
  std::uint64_t const begin = static_cast<std::uint64_t>(batch_number(clock)) * options_.batch_size;
  if (options_.placement == nullptr) {
    std::vector<std::uint64_t> mine(last - first);
    if (options_.shuffled) {
      order_.fill(epoch, begin + first, mine);
    } else {
      std::iota(mine.begin(), mine.end(), begin + first);
    }
    return mine;
  }
  std::vector<std::uint64_t> all(samples(clock));
  order_.fill(epoch, begin, all);
  std::uint64_t const cuts = options_.microbatches;
  std::vector<std::uint32_t> sizes;
  for (std::uint64_t m = 0; m < cuts; ++m) {
    sizes.push_back(first_sample(m + 1, all.size(), cuts) - first_sample(m, all.size(), cuts));
  }
  std::vector<std::uint32_t> const order = options_.placement->assign(all, sizes);
  std::vector<std::uint64_t> mine;
  for (std::uint32_t i = first; i < last; ++i) mine.push_back(all[order[i]]);
  return mine;
}

Batch BatchSampler::make(Clock clock) {
  std::uint64_t const rank = number(options_.rank), ranks = options_.ranks, cuts = options_.microbatches;
  std::uint32_t const batch_samples = samples(clock);
  std::uint32_t const begin = first_microbatch(rank, ranks, cuts), end = first_microbatch(rank + 1, ranks, cuts);
  std::uint32_t const first = first_sample(begin, batch_samples, cuts), last = first_sample(end, batch_samples, cuts);

  Batch batch;
  batch.clock = clock;
  batch.batch_samples = batch_samples;
  batch.epoch = number(clock) / steps_per_epoch_;
  batch.samples = samples_of(clock, first, last);
  batch.sample_numbers.resize(last - first);
  std::iota(batch.sample_numbers.begin(), batch.sample_numbers.end(), first);
  for (std::uint32_t m = begin; m < end; ++m) {
    std::uint32_t const from = first_sample(m, batch_samples, cuts), to = first_sample(m + 1, batch_samples, cuts);
    if (from < to) batch.microbatches.push_back({m, from - first, to - from});
  }
  return batch;
}

}  // namespace gpups::trainer
