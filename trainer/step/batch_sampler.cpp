// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/batch_sampler.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/base/random.hpp"
#include "trainer/placement/placement.hpp"

namespace gpups::trainer {

namespace {

// Purposes of random bits.
constexpr std::uint64_t kBlocks = 1, kSamples = 2;

}  // namespace

EpochOrder::EpochOrder(EpochOrderOptions const& options)
    : options_(options),
      blocks_((options.samples + options.block_samples - 1) / options.block_samples),
      windows_((blocks_ + options.window_blocks - 1) / options.window_blocks) {
  GPUPS_ASSERT(options.block_samples > 0 && options.window_blocks > 0);
  while ((std::uint64_t{1} << (2 * half_bits_)) < blocks_) ++half_bits_;
}

void EpochOrder::fill(std::uint64_t epoch, std::uint64_t first, std::span<std::uint64_t> indices) {
  GPUPS_ASSERT(first + indices.size() <= options_.samples);
  if (!loaded_ || epoch != epoch_) load_epoch(epoch);
  for (std::uint64_t done = 0; done < indices.size();) {
    std::uint64_t const position = first + done;
    // If an earlier window has the short block, windows begin earlier, so the position may be in the next window.
    std::uint64_t window = position / (options_.block_samples * options_.window_blocks);
    if (window + 1 < windows_ && position >= window_begin(window + 1)) ++window;
    if (window_order_.empty() || window != window_) load_window(window);
    std::uint64_t const within = position - window_first_;
    std::uint64_t const count = std::min(window_order_.size() - within, indices.size() - done);
    std::copy_n(window_order_.begin() + static_cast<std::ptrdiff_t>(within), count,
                indices.begin() + static_cast<std::ptrdiff_t>(done));
    done += count;
  }
}

// A Feistel network on pairs of half_bits_ bits permutes a domain of at most 4 * blocks_ numbers. Results that are not
// valid blocks pass through the network again (cycle walking).
std::uint64_t EpochOrder::block_at(std::uint64_t place) const {
  std::uint64_t const mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t x = place;
  do {
    std::uint64_t left = x >> half_bits_, right = x & mask;
    for (std::uint64_t round = 0; round < 6; ++round) {
      left ^= random_bits(options_.seed, kBlocks, epoch_, round, right) & mask;
      std::swap(left, right);
    }
    x = left << half_bits_ | right;
  } while (x >= blocks_);
  return x;
}

std::uint64_t EpochOrder::window_begin(std::uint64_t window) const {
  std::uint64_t const first_block = window * options_.window_blocks;
  std::uint64_t const missing = blocks_ * options_.block_samples - options_.samples;
  return first_block * options_.block_samples - (first_block > short_place_ ? missing : 0);
}

void EpochOrder::load_epoch(std::uint64_t epoch) {
  epoch_ = epoch;
  loaded_ = true;
  window_order_.clear();
  short_place_ = 0;
  while (block_at(short_place_) != blocks_ - 1) ++short_place_;
}

void EpochOrder::load_window(std::uint64_t window) {
  window_ = window;
  window_first_ = window_begin(window);
  window_order_.clear();
  std::uint64_t const last = std::min((window + 1) * options_.window_blocks, blocks_);
  for (std::uint64_t place = window * options_.window_blocks; place < last; ++place) {
    std::uint64_t const begin = block_at(place) * options_.block_samples;
    std::uint64_t const end = std::min(begin + options_.block_samples, options_.samples);
    for (std::uint64_t i = begin; i < end; ++i) window_order_.push_back(i);
  }
  RandomBits const bits(options_.seed, kSamples, epoch_, window);
  for (std::uint64_t i = window_order_.size(); i > 1; --i) {
    std::uint64_t const other = below(i, bits(i));
    std::swap(window_order_[i - 1], window_order_[other]);
  }
}

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

std::uint64_t BatchSampler::first_sample_of(std::uint64_t batch) const {
  if (!options_.shuffled) return std::min<std::uint64_t>(batch * options_.batch_size, samples_);
  auto const batches = static_cast<std::uint64_t>(steps_per_epoch_);
  return batch * (samples_ / batches) + std::min(batch, samples_ % batches);
}

std::uint32_t BatchSampler::samples(Clock clock) {
  auto const batch = static_cast<std::uint64_t>(batch_number(clock));
  return static_cast<std::uint32_t>(first_sample_of(batch + 1) - first_sample_of(batch));
}

std::vector<std::uint64_t> BatchSampler::samples_of(Clock clock, std::uint32_t first, std::uint32_t last) {
  std::uint64_t const epoch = options_.same_batches ? 0 : static_cast<std::uint64_t>(number(clock) / steps_per_epoch_);
  std::uint64_t const begin = first_sample_of(static_cast<std::uint64_t>(batch_number(clock)));
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
