// SPDX-License-Identifier: Apache-2.0
#include "trainer/batches.hpp"

#include <algorithm>

#include "kernels/check.hpp"

namespace gpups::trainer {
namespace {

// The first sample of microbatch m where `samples` are cut into `microbatches`: the least i with i * V / B >= m.
std::uint32_t first_sample(std::uint64_t m, std::uint64_t samples, std::uint64_t microbatches) {
  return static_cast<std::uint32_t>((m * samples + microbatches - 1) / microbatches);
}

}  // namespace

Batches::Batches(std::span<Triple const> triples, BatchOptions const& options)
    : triples_(triples),
      options_(options),
      steps_per_epoch_(static_cast<std::int64_t>((triples.size() + options.batch - 1) / options.batch)),
      order_({.samples = triples.size(), .seed = options.seed}) {
  GPUPS_ASSERT(!triples.empty() && options.batch > 0 && number(options.rank) < options.ranks);
  GPUPS_REQUIRE(
      options.ranks <= options.microbatches,
      "there are {} ranks and {} microbatches (a rank computes whole microbatches, and some would have none): "
      "use at most {} ranks, or start a run with train.microbatches={}",
      options.ranks, options.microbatches, options.microbatches, options.ranks);
}

std::uint32_t Batches::samples(Clock clock) const {
  std::uint64_t const first = static_cast<std::uint64_t>(number(clock) % steps_per_epoch_) * options_.batch;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(options_.batch, triples_.size() - first));
}

Batch Batches::make(Clock clock) {
  std::uint64_t const rank = number(options_.rank), ranks = options_.ranks, cuts = options_.microbatches;
  std::uint32_t const batch_samples = samples(clock);
  auto const begin = static_cast<std::uint32_t>(rank * cuts / ranks);
  auto const end = static_cast<std::uint32_t>((rank + 1) * cuts / ranks);
  std::uint32_t const first = first_sample(begin, batch_samples, cuts), last = first_sample(end, batch_samples, cuts);

  Batch batch;
  batch.clock = clock;
  batch.epoch = number(clock) / steps_per_epoch_;
  indices_.resize(last - first);
  order_.fill(static_cast<std::uint64_t>(batch.epoch),
              static_cast<std::uint64_t>(number(clock) % steps_per_epoch_) * options_.batch + first, indices_);
  batch.triples.reserve(indices_.size());
  batch.sample_numbers.reserve(indices_.size());
  for (std::uint32_t i = 0; i < indices_.size(); ++i) {
    batch.triples.push_back(triples_[indices_[i]]);
    batch.sample_numbers.push_back(first + i);
  }
  for (std::uint32_t m = begin; m < end; ++m) {
    std::uint32_t const from = first_sample(m, batch_samples, cuts), to = first_sample(m + 1, batch_samples, cuts);
    if (from < to) batch.microbatches.push_back({m, from - first, to - from});
  }
  return batch;
}

}  // namespace gpups::trainer
