// SPDX-License-Identifier: Apache-2.0
#include "kernels/wire/encode_stream.hpp"

#include "kernels/assert.hpp"
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
    counts.push_back(static_cast<std::uint32_t>(start[b + 1] - start[b]));
  }
  StreamWriter writer(e.form, e.first, e.size, counts);
  over_blocks<WriteMemory<T>>(ex, blocks, [&](WriteMemory<T>& memory, std::size_t b) {
    std::uint32_t const* const indices = e.indices.data() + start[b];
    auto const base = static_cast<std::uint32_t>(e.first + b * kStreamBlock);
    std::uint16_t* const places = memory.entries.places.data();
    for (std::size_t i = 0; i < counts[b]; ++i) places[i] = static_cast<std::uint16_t>(indices[i] - base);
    BlockEntries<T> const entries{counts[b], places, nullptr, e.values.data() + start[b]};
    writer.write(b, entries, memory.part, block_of(e.residual, b));
  });
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
    std::memset(memory.entries.bits.data(), 0, memory.entries.bits.bytes());
    mark_nonzero(x, width, memory.entries.bits.data());
    writer.write(b, memory.entries.marked(x, width), memory.part, block_of(e.residual, b));
  });
  return writer.finish(ex);
}

template Array<std::uint8_t> encode(Stream&, EncodeEntries<float> const&);
template Array<std::uint8_t> encode(Stream&, EncodeEntries<std::int64_t> const&);
template Array<std::uint8_t> encode(Stream&, EncodeDense<float> const&);
template Array<std::uint8_t> encode(Stream&, EncodeDense<std::int64_t> const&);

}  // namespace gpups::kernels
