// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/stream_writer.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/arena.hpp"

namespace gpups::kernels {

namespace {

// Bytes that vector stores may write behind a block.
constexpr std::size_t kSlack = 64;

// Returns the word with the position encoding that takes the fewest bytes, including the additional values of a dense
// block.
BlockWord best_word(BlockPositions const& positions, StreamValues values, unsigned width_log2, std::uint32_t width) {
  auto const count = static_cast<std::uint32_t>(positions.count);
  std::size_t const sparse = value_bytes(values, count, width_log2), dense = value_bytes(values, width, width_log2);
  std::size_t const bitmap = (width + 7) / 8;
  auto const width_bits = static_cast<std::uint8_t>(width_log2);
  if (dense <= sparse + std::min<std::size_t>(bitmap, count)) return {width, 0, PositionEncoding::kDense, width_bits};
  if (positions.positions == nullptr || bitmap <= count) return {count, 0, PositionEncoding::kBitmap, width_bits};
  std::uint32_t const skips = skips_of(positions.positions, count);
  std::size_t const list = count + std::min(count, skips);
  if (bitmap <= list) return {count, 0, PositionEncoding::kBitmap, width_bits};
  if (count <= skips) return {count, 0, PositionEncoding::kOffsets, width_bits};
  return {count, skips, PositionEncoding::kGaps, width_bits};
}

void write_places(PositionEncoding kind, BlockPositions const& positions, std::uint32_t width, std::uint8_t* to) {
  switch (kind) {
    case PositionEncoding::kGaps:
      write_gaps(positions.positions, positions.count, to);
      return;
    case PositionEncoding::kOffsets:
      std::memcpy(to, positions.positions, 2 * positions.count);
      return;
    case PositionEncoding::kDense:
      return;
    case PositionEncoding::kBitmap:
      if (positions.bits != nullptr) {
        std::memcpy(to, positions.bits, (width + 7) / 8);
      } else {
        write_bitmap(positions.positions, positions.count, width, to);
      }
  }
}

}  // namespace

StreamPositions::StreamPositions(ValueForm form, std::uint64_t first, std::uint64_t size,
                                 std::vector<std::uint32_t> const& most)
    : form_(form), first_(first), size_(size) {
  GPUPS_ASSERT(most.size() == stream_blocks(size) && size <= kStreamElements && first <= kStreamElements - size);
  std::size_t position_at = 0;
  blocks_.reserve(most.size());
  for (std::size_t b = 0; b < most.size(); ++b) {
    std::uint32_t const width = block_width(size, b);
    GPUPS_ASSERT(most[b] <= width);
    blocks_.push_back({position_at, {}});
    if (most[b] > 0) position_at += (are_many(most[b], width) ? (width + 7) / 8 : std::size_t{2} * most[b]) + kSlack;
  }
  positions_ = Array<std::uint8_t>(Device::host(), position_at);
}

BlockWord StreamPositions::write(std::size_t block, BlockPositions const& positions, unsigned width_log2) {
  Block& b = blocks_[block];
  std::uint32_t const width = block_width(size_, block);
  b.word = best_word(positions, form_.values, width_log2, width);
  write_places(b.word.kind, positions, width, positions_.data() + b.position_at);
  return b.word;
}

void StreamPositions::keep(std::size_t block, BlockPositions const& positions) {
  Block& b = blocks_[block];
  auto const kind = positions.positions == nullptr ? PositionEncoding::kBitmap : PositionEncoding::kOffsets;
  b.word = {static_cast<std::uint32_t>(positions.count), 0, kind, 0};
  write_places(kind, positions, block_width(size_, block), positions_.data() + b.position_at);
}

StreamHeader StreamPositions::header() const {
  StreamHeader header{
      kStreamVersion, form_.values, static_cast<std::int16_t>(form_.grid_log2), 0, first_, size_, 0, 0, 0};
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    BlockWord const word = blocks_[b].word;
    if (word.count == 0) continue;
    header.count += word.count;
    header.value_bytes += value_bytes(form_.values, word.count, word.width_log2);
    header.position_bytes += position_bytes(word, block_width(size_, b));
  }
  return header;
}

std::vector<std::size_t> StreamPositions::value_at() const {
  std::vector<std::size_t> at;
  at.reserve(blocks_.size());
  std::size_t next = stream_head_bytes(blocks_.size());
  for (Block const& b : blocks_) {
    at.push_back(next);
    next += value_bytes(form_.values, b.word.count, b.word.width_log2);
  }
  return at;
}

Array<std::uint8_t> StreamPositions::stream(HostExec ex) const {
  StreamHeader const header = this->header();
  std::size_t const head = stream_head_bytes(blocks_.size());
  Array<std::uint8_t> stream(Device::host(), head + header.value_bytes + header.position_bytes);
  std::memcpy(stream.data(), &header, sizeof header);
  std::memset(stream.data() + sizeof header, 0, head - sizeof header);
  std::vector<std::size_t> position_at{head + header.value_bytes};
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    BlockWord const word = blocks_[b].word;
    std::uint32_t const bits = word.bits();
    std::memcpy(stream.data() + sizeof header + b * sizeof bits, &bits, sizeof bits);
    position_at.push_back(position_at[b] + (word.count == 0 ? 0 : position_bytes(word, block_width(size_, b))));
  }
  constexpr std::size_t kTogether = 16;
  ex.arena->blocks((blocks_.size() + kTogether - 1) / kTogether, [&](std::size_t part) {
    std::size_t const last = std::min((part + 1) * kTogether, blocks_.size());
    for (std::size_t b = part * kTogether; b < last; ++b) {
      std::size_t const bytes = position_at[b + 1] - position_at[b];
      if (bytes > 0) std::memcpy(stream.data() + position_at[b], positions_.data() + blocks_[b].position_at, bytes);
    }
  });
  return stream;
}

StreamView StreamPositions::view(float const* values) const {
  GPUPS_ASSERT(form_.values == StreamValues::kFloat);
  std::vector<StreamBlock> blocks;
  blocks.reserve(blocks_.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    auto const* const its = reinterpret_cast<std::uint8_t const*>(values);
    blocks.push_back({blocks_[b].word, block_width(size_, b), its, positions_.data() + blocks_[b].position_at});
    values += blocks_[b].word.count;
  }
  return {header(), std::move(blocks)};
}

StreamWriter::StreamWriter(ValueForm form, std::uint64_t first, std::uint64_t size,
                           std::vector<std::uint32_t> const& most)
    : form_(form), size_(size), positions_(form, first, size, most) {
  std::size_t value_at = 0;
  blocks_.reserve(most.size());
  for (std::size_t b = 0; b < most.size(); ++b) {
    blocks_.push_back({value_at, 0});
    // A dense block has values for all positions, but takes no more bytes than another encoding. Units count with 8
    // bytes.
    if (most[b] > 0) value_at += value_bytes(form.values, most[b], 3) + (block_width(size, b) + 7) / 8;
    value_at = (value_at + 7) / 8 * 8;
  }
  values_ = Array<std::uint8_t>(Device::host(), value_at);
}

template <class T>
void StreamWriter::write(std::size_t block, BlockEntries<T> const& entries, ValueWriter<T>& values, T* residual) {
  if (entries.count == 0) return;
  std::uint8_t const width_log2 = values.width_log2(form_, entries.values, entries.count);
  BlockWord const word = positions_.write(block, entries, width_log2);
  Values& b = blocks_[block];
  b.bytes = value_bytes(form_.values, word.count, word.width_log2);
  values.write(form_, entries, word, block_width(size_, block), values_.data() + b.at, residual);
}
template void StreamWriter::write(std::size_t, BlockEntries<float> const&, ValueWriter<float>&, float*);
template void StreamWriter::write(std::size_t, BlockEntries<std::int64_t> const&, ValueWriter<std::int64_t>&,
                                  std::int64_t*);

Array<std::uint8_t> StreamWriter::finish(HostExec ex) const {
  Array<std::uint8_t> stream = positions_.stream(ex);
  auto const at = positions_.value_at();
  ex.arena->blocks(blocks_.size(), [&](std::size_t b) {
    if (blocks_[b].bytes > 0) std::memcpy(stream.data() + at[b], values_.data() + blocks_[b].at, blocks_[b].bytes);
  });
  return stream;
}

}  // namespace gpups::kernels
