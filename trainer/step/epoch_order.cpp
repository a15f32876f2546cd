// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/epoch_order.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/random.hpp"

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

}  // namespace gpups::trainer
