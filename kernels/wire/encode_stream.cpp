// SPDX-License-Identifier: Apache-2.0
#include "kernels/wire/encode_stream.hpp"

#include <algorithm>
#include <atomic>

#include "kernels/assert.hpp"
#include "kernels/check.hpp"
#include "kernels/wire/over_blocks.hpp"
#include "kernels/wire/stream_writer.hpp"

namespace gpups::kernels {
namespace {

template <class T>
struct WriteMemory {
  EntryMemory<T> entries;
  StreamWriter::Part<T> part;
};

template <class T>
T* block_of(View<T> residual, std::size_t block) {
  return residual.empty() ? nullptr : residual.data() + block * kStreamBlock;
}

void check_ascending(bool ascending) {
  GPUPS_REQUIRE(ascending,
                "the indices of a sparse vector are not ascending, each once (what is sent are the gaps between them): "
                "sort them, and add up the values of equal ones");
}

// Writes the places of a block's indices; false where they are not ascending, or outside the block.
bool write_places(View<std::uint32_t const> indices, std::uint32_t base, std::uint32_t width, std::uint16_t* places) {
  if (indices.empty()) return true;
  std::uint32_t wrong = indices[0] < base || indices[indices.size() - 1] - base >= width ? 1 : 0;
  for (std::size_t i = 1; i < indices.size(); ++i) wrong |= indices[i] <= indices[i - 1] ? 1U : 0U;
  for (std::size_t i = 0; i < indices.size(); ++i) places[i] = static_cast<std::uint16_t>(indices[i] - base);
  return wrong == 0;
}

}  // namespace

template <class T>
Array<std::uint8_t> encode(Stream& stream, EncodeEntries<T> const& e) {
  GPUPS_ASSERT(stream.device().is_host() && e.indices.size() == e.values.size());
  GPUPS_ASSERT(e.residual.empty() || e.residual.size() == e.size);
  HostExec const ex = host_exec(stream);
  std::size_t const blocks = stream_blocks(e.size);
  auto const at = [&](std::uint64_t index) {
    return static_cast<std::size_t>(std::lower_bound(e.indices.begin(), e.indices.end(), index) - e.indices.begin());
  };
  std::vector<std::size_t> start{at(e.first)};
  std::vector<std::uint32_t> counts;
  for (std::size_t b = 0; b < blocks; ++b) {
    start.push_back(at(std::min(e.first + (b + 1) * kStreamBlock, e.first + e.size)));
    std::size_t const count = start[b + 1] - start[b];
    check_ascending(start[b] <= start[b + 1] && count <= block_width(e.size, b));
    counts.push_back(static_cast<std::uint32_t>(count));
  }
  StreamWriter writer(e.form, e.first, e.size, counts);
  std::atomic<bool> ascending = true;
  over_blocks<WriteMemory<T>>(ex, blocks, [&](WriteMemory<T>& memory, std::size_t b) {
    auto const base = static_cast<std::uint32_t>(e.first + b * kStreamBlock);
    std::uint16_t* const places = memory.entries.places.data();
    if (!write_places(e.indices.slice(start[b], counts[b]), base, block_width(e.size, b), places)) {
      ascending = false;
      return;
    }
    BlockEntries<T> const entries{counts[b], places, nullptr, e.values.data() + start[b]};
    writer.write(b, entries, memory.part, block_of(e.residual, b));
  });
  check_ascending(ascending);
  return writer.finish(ex);
}

template <class T>
Array<std::uint8_t> encode(Stream& stream, EncodeDense<T> const& e) {
  GPUPS_ASSERT(stream.device().is_host());
  GPUPS_ASSERT(e.residual.empty() || e.residual.size() == e.values.size());
  HostExec const ex = host_exec(stream);
  std::uint64_t const size = e.values.size();
  std::size_t const blocks = stream_blocks(size);
  std::vector<std::uint32_t> counts(blocks);
  ex.arena->blocks(blocks, [&](std::size_t b) {
    T const* const x = e.values.data() + b * kStreamBlock;
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < block_width(size, b); ++i) count += x[i] != 0 ? 1 : 0;
    counts[b] = count;
  });
  StreamWriter writer(e.form, e.first, size, counts);
  over_blocks<WriteMemory<T>>(ex, blocks, [&](WriteMemory<T>& memory, std::size_t b) {
    if (counts[b] == 0) return;
    T const* const x = e.values.data() + b * kStreamBlock;
    std::uint32_t const width = block_width(size, b);
    memory.entries.begin();
    memory.entries.find_many(x, 0, width);
    writer.write(b, memory.entries.many(width), memory.part, block_of(e.residual, b));
  });
  return writer.finish(ex);
}

template Array<std::uint8_t> encode(Stream&, EncodeEntries<float> const&);
template Array<std::uint8_t> encode(Stream&, EncodeEntries<std::int64_t> const&);
template Array<std::uint8_t> encode(Stream&, EncodeDense<float> const&);
template Array<std::uint8_t> encode(Stream&, EncodeDense<std::int64_t> const&);

}  // namespace gpups::kernels
