// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/samples.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/base/checksum.hpp"
#include "trainer/tasks/click/sample_storage.hpp"

namespace gpups::trainer {
namespace {

// How many runs ahead data is prefetched.
constexpr std::size_t kRunsAhead = 4;

// Samples that are contiguous both in a block and in the batch.
struct Run {
  BlockView block;
  std::size_t row, count;
  std::size_t at;  // in the batch
};

void copy_labels(Run const& run, SampleBatch& out) {
  for (std::size_t i = 0; i < run.count; ++i) out.labels[run.at + i] = run.block.label(run.row + i);
}

void copy_numbers(Run const& run, std::size_t numbers, SampleBatch& out) {
  for (std::size_t f = 0; f < numbers; ++f) {
    float const* const from = run.block.number(f).data() + run.row;
    float* const to = out.numbers.data() + run.at * numbers + f;
    for (std::size_t i = 0; i < run.count; ++i) to[i * numbers] = from[i];
  }
}

// Copies the values of a layout whose categories have one value each.
void copy_single_values(Run const& run, std::size_t categories, SampleBatch& out) {
  for (std::size_t f = 0; f < categories; ++f) {
    IdColumn const ids = run.block.ids(f);
    std::uint64_t* const to = out.values.data() + run.at * categories + f;
    ids.each(run.row, run.count, [&](std::size_t i, std::uint64_t id) { to[i * categories] = id; });
  }
}

// Returns where the values of a sample in category `f` begin and end in the block.
std::pair<std::size_t, std::size_t> cell(BlockShape const& shape, BlockView const& block, std::size_t f,
                                         std::size_t row) {
  if (shape.categories[f].kind == CategoryField::Kind::kOne) return {row, row + 1};
  auto const offsets = block.offsets(f);
  return {offsets[row], offsets[row + 1]};
}

// Fills in the offsets of a run, before which there are `before` values. Returns the number of values up to its end.
std::uint64_t count_values(BlockShape const& shape, Run const& run, std::uint64_t before, SampleBatch& out) {
  std::size_t const categories = shape.categories.size();
  for (std::size_t i = 0; i < run.count; ++i) {
    for (std::size_t f = 0; f < categories; ++f) {
      auto const [begin, end] = cell(shape, run.block, f, run.row + i);
      before += end - begin;
      out.offsets[(run.at + i) * categories + f + 1] = static_cast<std::uint32_t>(before);
    }
  }
  return before;
}

void copy_lists(BlockShape const& shape, Run const& run, SampleBatch& out) {
  std::size_t const categories = shape.categories.size();
  for (std::size_t f = 0; f < categories; ++f) {
    IdColumn const ids = run.block.ids(f);
    bool const weighted = shape.categories[f].kind == CategoryField::Kind::kWeighted;
    for (std::size_t i = 0; i < run.count; ++i) {
      auto const [begin, end] = cell(shape, run.block, f, run.row + i);
      std::size_t to = out.offsets[(run.at + i) * categories + f];
      for (std::size_t v = begin; v < end; ++v, ++to) {
        out.values[to] = ids[v];
        if (weighted) out.weights[to] = run.block.weights(f)[v];
      }
    }
  }
}

// Resizes offsets, values and weights for all runs, and fills in the offsets.
template <class EachRun>
void make_lists(BlockShape const& shape, EachRun const& each_run, SampleBatch& out) {
  out.offsets.assign(out.samples * shape.categories.size() + 1, 0);
  std::uint64_t values = 0;
  each_run([&](Run const& run) { values = count_values(shape, run, values, out); });
  GPUPS_REQUIRE(values <= std::numeric_limits<std::uint32_t>::max(),
                "a batch of {} samples has {} values (its offsets have 32 bits): use a smaller batch", out.samples,
                values);
  out.values.resize(values);
  if (shape.weighted) out.weights.assign(values, 1.0F);
}

// Fills a batch with samples. each_run(f) calls f(run) for each run of the batch, and may be called more than once.
template <class EachRun>
void fill(BlockShape const& shape, std::size_t samples, EachRun const& each_run, SampleBatch& out) {
  out.samples = samples;
  out.labels.resize(samples);
  out.numbers.resize(samples * shape.numbers);
  out.offsets.clear();
  out.weights.clear();
  if (shape.lists) {
    make_lists(shape, each_run, out);
  } else {
    out.values.resize(samples * shape.categories.size());
  }
  each_run([&](Run const& run) {
    copy_labels(run, out);
    copy_numbers(run, shape.numbers, out);
    shape.lists ? copy_lists(shape, run, out) : copy_single_values(run, shape.categories.size(), out);
  });
}

}  // namespace

std::uint64_t Samples::size() const { return storage_->samples(); }
Layout const& Samples::layout() const { return storage_->layout(); }
std::vector<std::string> const& Samples::names() const { return storage_->names(); }

std::uint64_t Samples::digest() const {
  std::string const text = layout_text(layout());
  std::uint64_t hash = kernels::checksum(std::as_bytes(std::span(text)), size());
  for (BlockEntry const& entry : storage_->entries()) {
    hash = kernels::checksum(std::as_bytes(std::span(&entry.xxh3, 1)), hash);
  }
  return hash;
}

bool Samples::in_memory() const { return storage_->in_memory(); }

std::uint64_t Samples::bytes() const {
  std::uint64_t sum = 0;
  for (BlockEntry const& entry : storage_->entries()) sum += entry.bytes;
  return sum;
}

void Samples::gather(std::span<std::uint64_t const> indices, SampleBatch& out) const {
  std::unordered_map<std::uint64_t, SampleBlock> blocks;
  std::vector<Run> runs;
  runs.reserve(indices.size());
  for (std::size_t at = 0, count = 0; at < indices.size(); at += count) {
    std::uint64_t const first = indices[at], row = first % kSampleBlock;
    GPUPS_ASSERT(first < size());
    count = 1;
    while (at + count < indices.size() && row + count < kSampleBlock && indices[at + count] == first + count) ++count;
    std::uint64_t const number = first / kSampleBlock;
    auto found = blocks.find(number);
    if (found == blocks.end()) found = blocks.emplace(number, storage_->read_and_keep(number)).first;
    runs.push_back({found->second.view, row, count, at});
  }
  auto const each_run = [&](auto const& use) {
    for (std::size_t r = 0; r < runs.size(); ++r) {
      // In a random order, each column of a sample is in another cache line.
      if (r + kRunsAhead < runs.size()) runs[r + kRunsAhead].block.prefetch(runs[r + kRunsAhead].row);
      use(runs[r]);
    }
  };
  fill(storage_->shape(), indices.size(), each_run, out);
}

void Samples::read(std::uint64_t first, std::uint64_t count, SampleBatch& out) const {
  GPUPS_ASSERT(first <= size() && count <= size() - first);
  std::vector<SampleBlock> blocks;
  std::uint64_t const first_block = first / kSampleBlock;
  for (std::uint64_t b = first_block; b * kSampleBlock < first + count; ++b) blocks.push_back(storage_->read(b));
  auto const each_run = [&](auto const& use) {
    for (std::uint64_t at = 0, part = 0; at < count; at += part) {
      std::uint64_t const row = (first + at) % kSampleBlock;
      part = std::min(count - at, kSampleBlock - row);
      use(Run{blocks[(first + at) / kSampleBlock - first_block].view, row, part, at});
    }
  };
  fill(storage_->shape(), count, each_run, out);
}

Samples open_samples(std::filesystem::path const& path) { return Samples(std::make_shared<SampleStorage const>(path)); }

}  // namespace gpups::trainer
