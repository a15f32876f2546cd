// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/encode_stream.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "kernels/base/assert.hpp"
#include "kernels/base/check.hpp"
#include "kernels/sparse/indexed_positions.hpp"
#include "kernels/sparse/parallel_blocks.hpp"
#include "kernels/sparse/stream_values.hpp"
#include "kernels/sparse/stream_writer.hpp"

namespace gpups::kernels {
namespace {

template <class T>
T* block_of(View<T> residual, std::size_t block) {
  return residual.empty() ? nullptr : residual.data() + block * kStreamBlock;
}

void check_ascending(bool ascending) {
  GPUPS_REQUIRE(ascending,
                "the indices of a sparse vector are not ascending or not distinct (the gaps between them are sent): "
                "sort them, and add up the values of equal indices");
}

// Returns the first of the indices in [first, last) that is not below `index`; it is expected near first + guess. Reads
// few cache lines.
std::size_t find_index(View<std::uint32_t const> indices, std::uint64_t index, std::size_t first, std::size_t last,
                       std::size_t guess) {
  std::size_t step = guess / 16 + 1, high = first + guess + step;
  if (high < last && guess > step && indices[high - 2 * step] < index) first = high - 2 * step;
  for (; high < last && indices[high] < index; step *= 2) {
    first = high;
    high += step;
  }
  auto const* const begin = indices.begin();
  return static_cast<std::size_t>(std::lower_bound(begin + first, begin + std::min(high, last), index) - begin);
}

// A list that is split at the blocks of a range.
template <class T>
class ListBlocks {
 public:
  // Throws Error if it finds that indices are not ascending.
  explicit ListBlocks(EncodeEntries<T> const& e) : e_(e) {
    // The end of this range and the beginning of the next one are the same position, even if indices are not ascending.
    auto const find = [&](std::uint64_t index) {
      return static_cast<std::size_t>(std::lower_bound(e.indices.begin(), e.indices.end(), index) - e.indices.begin());
    };
    std::size_t const blocks = stream_blocks(e.size), end = find(e.first + e.size);
    start_.push_back(find(e.first));
    check_ascending(start_[0] <= end);
    std::size_t const guess = (end - start_[0]) / std::max<std::size_t>(blocks, 1);
    for (std::size_t b = 0; b < blocks; ++b) {
      std::uint64_t const next = e.first + (b + 1) * kStreamBlock;
      start_.push_back(b + 1 == blocks ? end : find_index(e.indices, next, start_[b], end, guess));
      std::size_t const count = start_[b + 1] - start_[b];
      check_ascending(count <= width(b));
      counts_.push_back(static_cast<std::uint32_t>(count));
    }
  }

  std::vector<std::uint32_t> const& counts() const { return counts_; }
  std::uint32_t width(std::size_t b) const { return block_width(e_.size, b); }
  T const* values(std::size_t b) const { return e_.values.data() + start_[b]; }
  BlockIndices indices(std::size_t b) const { return {e_.indices.data() + start_[b], counts_[b], base(b), width(b)}; }
  ListedEntries<T> entries(std::size_t b) const {
    return {counts_[b], e_.indices.data() + start_[b], base(b), values(b)};
  }

 private:
  std::uint32_t base(std::size_t b) const { return static_cast<std::uint32_t>(e_.first + b * kStreamBlock); }

  EncodeEntries<T> const& e_;
  std::vector<std::size_t> start_;  // of each block in the list, then the end
  std::vector<std::uint32_t> counts_;
};

// Calls f(memory, block, positions) for the blocks that have elements. Throws Error if indices are not ascending.
template <class T, class F>
void each_block(HostExec ex, ListBlocks<T> const& list, F f) {
  struct Memory {
    IndexedPositions positions;
    ValueWriter<T> values;
  };
  std::atomic<bool> ascending = true;
  parallel_blocks<Memory>(ex, list.counts().size(), [&](Memory& memory, std::size_t b) {
    if (list.counts()[b] == 0) return;
    auto const found = memory.positions.find(list.indices(b));
    if (found) {
      f(memory, b, *found);
    } else {
      ascending = false;
    }
  });
  check_ascending(ascending);
}

template <class T>
StreamPositions write_places(HostExec ex, EncodeEntries<T> const& e, ListBlocks<T> const& list) {
  StreamPositions positions(e.form, e.first, e.size, list.counts());
  each_block(ex, list, [&](auto& memory, std::size_t b, BlockPositions const& found) {
    positions.write(b, found, memory.values.width_log2(e.form, list.values(b), list.counts()[b]));
  });
  return positions;
}

// Writes the position encodings of all blocks of an array.
template <class T>
StreamPositions write_places(HostExec ex, EncodeDense<T> const& e) {
  struct Memory {
    EntryMemory<T> entries;
    ValueWriter<T> values;
  };
  std::uint64_t const size = e.values.size();
  std::vector<std::uint32_t> widths;
  for (std::size_t b = 0; b < stream_blocks(size); ++b) widths.push_back(block_width(size, b));
  StreamPositions positions(e.form, e.first, size, widths);
  parallel_blocks<Memory>(ex, widths.size(), [&](Memory& memory, std::size_t b) {
    T const* const x = e.values.data() + b * kStreamBlock;
    if (e.form.values != StreamValues::kUnits) {
      BlockPositions const found = memory.entries.find_positions(x, widths[b]);
      if (found.count > 0) positions.write(b, found, 0);
      return;
    }
    memory.entries.begin();
    memory.entries.find_many(x, 0, widths[b]);
    BlockEntries<T> const found = memory.entries.many(widths[b]);
    if (found.count > 0) positions.write(b, found, memory.values.width_log2(e.form, found.values, found.count));
  });
  return positions;
}

// Writes the values of a block that are not 0, as floats, by pieces that stay in the first-level cache. Writes at most
// `count` values, for which there is room, even if another thread changes the array at the same time.
void write_nonzero(float const* x, std::uint32_t width, std::size_t count, std::uint8_t* to) {
  constexpr std::uint32_t kPiece = 4096;
  std::uint64_t marks[kPiece / 64];
  float values[kPiece + 64];
  for (std::uint32_t first = 0; first < width; first += kPiece) {
    std::uint32_t const size = std::min(kPiece, width - first);
    std::size_t const words = (size + 63) / 64;
    mark_nonzero(x + first, size, marks);
    compress(x + first, marks, words, values);
    std::size_t const found = std::min(bits_set(marks, words), count);
    std::memcpy(to, values, found * sizeof(float));
    to += found * sizeof(float);
    count -= found;
  }
}

}  // namespace

template <class T>
Array<std::uint8_t> run(HostExec ex, EncodeEntries<T> const& e) {
  GPUPS_ASSERT(e.indices.size() == e.values.size());
  GPUPS_ASSERT(e.residual.empty() || e.residual.size() == e.size);
  ListBlocks<T> const list(e);
  StreamPositions const positions = write_places(ex, e, list);
  Array<std::uint8_t> bytes = positions.stream(ex);
  auto const at = positions.value_at();
  parallel_blocks<ValueWriter<T>>(ex, at.size(), [&](ValueWriter<T>& values, std::size_t b) {
    if (list.counts()[b] == 0) return;
    values.write(e.form, list.entries(b), positions.word(b), list.width(b), bytes.data() + at[b],
                 block_of(e.residual, b));
  });
  return bytes;
}

template <class T>
Array<std::uint8_t> run(HostExec ex, EncodeDense<T> const& e) {
  GPUPS_ASSERT(e.residual.empty() || e.residual.size() == e.values.size());
  struct Memory {
    EntryMemory<T> entries;
    ValueWriter<T> values;
  };
  StreamPositions const positions = write_places(ex, e);
  Array<std::uint8_t> bytes = positions.stream(ex);
  auto const at = positions.value_at();
  parallel_blocks<Memory>(ex, at.size(), [&](Memory& memory, std::size_t b) {
    BlockWord const word = positions.word(b);
    if (word.count == 0) return;
    std::uint32_t const width = block_width(e.values.size(), b);
    T const* const x = e.values.data() + b * kStreamBlock;
    if constexpr (std::is_same_v<T, float>) {
      bool const go_as_they_are = e.form.values == StreamValues::kFloat && word.kind != PositionEncoding::kDense;
      if (go_as_they_are) return write_nonzero(x, width, word.count, bytes.data() + at[b]);
    }
    memory.entries.begin();
    memory.entries.find_many(x, 0, width);
    memory.values.write(e.form, memory.entries.many(width), word, width, bytes.data() + at[b], block_of(e.residual, b));
  });
  return bytes;
}

ListedStream run(HostExec ex, ViewEntries const& e) {
  GPUPS_ASSERT(e.indices.size() == e.values.size());
  EncodeEntries<float> const floats{e.indices, e.values, e.first, e.size, {}};
  ListBlocks<float> const list(floats);
  StreamPositions positions(floats.form, e.first, e.size, list.counts());
  each_block(ex, list, [&](auto&, std::size_t b, BlockPositions const& found) { positions.keep(b, found); });
  StreamView view = positions.view(list.values(0));
  return {std::move(positions).take(), std::move(view)};
}

StreamView view_in_place(View<float const> array, std::uint64_t first) {
  GPUPS_ASSERT(array.device().is_host());
  GPUPS_ASSERT(array.size() <= kStreamElements && first <= kStreamElements - array.size());
  StreamHeader const header{kStreamVersion, StreamValues::kFloat, 0, 0, first, array.size(),
                            array.size(),   array.bytes(),        0};
  std::vector<StreamBlock> blocks;
  for (std::size_t b = 0; b < stream_blocks(array.size()); ++b) {
    std::uint32_t const width = block_width(array.size(), b);
    auto const* const values = reinterpret_cast<std::uint8_t const*>(array.data() + b * kStreamBlock);
    blocks.push_back({{width, 0, PositionEncoding::kDense, 0}, width, values, nullptr});
  }
  return {header, std::move(blocks)};
}

template <class T>
Array<std::uint8_t> encode(Stream& stream, EncodeEntries<T> const& e) {
  return run_at_host_level<Array<std::uint8_t>>(host_exec(stream), e);
}
template <class T>
Array<std::uint8_t> encode(Stream& stream, EncodeDense<T> const& e) {
  return run_at_host_level<Array<std::uint8_t>>(host_exec(stream), e);
}
GPUPS_HOST_KERNEL_OF(Array<std::uint8_t>, encode, EncodeEntries<float>)
GPUPS_HOST_KERNEL_OF(Array<std::uint8_t>, encode, EncodeEntries<std::int64_t>)
GPUPS_HOST_KERNEL_OF(Array<std::uint8_t>, encode, EncodeDense<float>)
GPUPS_HOST_KERNEL_OF(Array<std::uint8_t>, encode, EncodeDense<std::int64_t>)
GPUPS_HOST_KERNEL(ListedStream, view_in_place, ViewEntries)

}  // namespace gpups::kernels
