// SPDX-License-Identifier: Apache-2.0
#include "kernels/wire/stream_places.hpp"

#include "kernels/arena.hpp"
#include "kernels/assert.hpp"

namespace gpups::kernels {
namespace {

// Bytes that vectors may write behind a block's.
constexpr std::size_t kSlack = 64;

// The form of places that takes fewest bytes, a dense block's further values included.
BlockWord best_word(BlockPlaces const& places, StreamValues values, unsigned width_log2, std::uint32_t width) {
  auto const count = static_cast<std::uint32_t>(places.count);
  std::size_t const sparse = value_bytes(values, count, width_log2), dense = value_bytes(values, width, width_log2);
  std::size_t const bitmap = (width + 7) / 8;
  auto const width_bits = static_cast<std::uint8_t>(width_log2);
  if (dense <= sparse + std::min<std::size_t>(bitmap, count)) return {width, 0, PlaceKind::kDense, width_bits};
  if (places.places == nullptr || bitmap <= count) return {count, 0, PlaceKind::kBitmap, width_bits};
  std::uint32_t const skips = skips_of(places.places, count);
  std::size_t const list = count + std::min(count, skips);
  if (bitmap <= list) return {count, 0, PlaceKind::kBitmap, width_bits};
  if (count <= skips) return {count, 0, PlaceKind::kOffsets, width_bits};
  return {count, skips, PlaceKind::kGaps, width_bits};
}

void write_places(PlaceKind kind, BlockPlaces const& places, std::uint32_t width, std::uint8_t* to) {
  switch (kind) {
    case PlaceKind::kGaps:
      write_gaps(places.places, places.count, to);
      return;
    case PlaceKind::kOffsets:
      std::memcpy(to, places.places, 2 * places.count);
      return;
    case PlaceKind::kDense:
      return;
    case PlaceKind::kBitmap:
      if (places.bits != nullptr) {
        std::memcpy(to, places.bits, (width + 7) / 8);
      } else {
        write_bitmap(places.places, places.count, width, to);
      }
  }
}

}  // namespace

StreamPlaces::StreamPlaces(ValueForm form, std::uint64_t first, std::uint64_t size,
                           std::vector<std::uint32_t> const& most)
    : form_(form), first_(first), size_(size) {
  GPUPS_ASSERT(most.size() == stream_blocks(size) && size <= kStreamElements && first <= kStreamElements - size);
  std::size_t place_at = 0;
  blocks_.reserve(most.size());
  for (std::size_t b = 0; b < most.size(); ++b) {
    std::uint32_t const width = block_width(size, b);
    GPUPS_ASSERT(most[b] <= width);
    blocks_.push_back({place_at, {}});
    if (most[b] > 0) place_at += (are_many(most[b], width) ? (width + 7) / 8 : std::size_t{2} * most[b]) + kSlack;
  }
  places_ = Array<std::uint8_t>(Device::host(), place_at);
}

BlockWord StreamPlaces::write(std::size_t block, BlockPlaces const& places, unsigned width_log2) {
  Block& b = blocks_[block];
  std::uint32_t const width = block_width(size_, block);
  b.word = best_word(places, form_.values, width_log2, width);
  write_places(b.word.kind, places, width, places_.data() + b.place_at);
  return b.word;
}

void StreamPlaces::keep(std::size_t block, BlockPlaces const& places) {
  Block& b = blocks_[block];
  auto const kind = places.places == nullptr ? PlaceKind::kBitmap : PlaceKind::kOffsets;
  b.word = {static_cast<std::uint32_t>(places.count), 0, kind, 0};
  write_places(kind, places, block_width(size_, block), places_.data() + b.place_at);
}

StreamHeader StreamPlaces::header() const {
  StreamHeader header{
      kStreamVersion, form_.values, static_cast<std::int16_t>(form_.grid_log2), 0, first_, size_, 0, 0, 0};
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    BlockWord const word = blocks_[b].word;
    if (word.count == 0) continue;
    header.count += word.count;
    header.value_bytes += value_bytes(form_.values, word.count, word.width_log2);
    header.place_bytes += place_bytes(word, block_width(size_, b));
  }
  return header;
}

std::vector<std::size_t> StreamPlaces::value_at() const {
  std::vector<std::size_t> at;
  at.reserve(blocks_.size());
  std::size_t next = stream_head_bytes(blocks_.size());
  for (Block const& b : blocks_) {
    at.push_back(next);
    next += value_bytes(form_.values, b.word.count, b.word.width_log2);
  }
  return at;
}

Array<std::uint8_t> StreamPlaces::stream(HostExec ex) const {
  StreamHeader const header = this->header();
  std::size_t const head = stream_head_bytes(blocks_.size());
  Array<std::uint8_t> stream(Device::host(), head + header.value_bytes + header.place_bytes);
  std::memcpy(stream.data(), &header, sizeof header);
  std::memset(stream.data() + sizeof header, 0, head - sizeof header);
  std::vector<std::size_t> place_at{head + header.value_bytes};
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    BlockWord const word = blocks_[b].word;
    std::uint32_t const bits = word.bits();
    std::memcpy(stream.data() + sizeof header + b * sizeof bits, &bits, sizeof bits);
    place_at.push_back(place_at[b] + (word.count == 0 ? 0 : place_bytes(word, block_width(size_, b))));
  }
  constexpr std::size_t kTogether = 16;
  ex.arena->blocks((blocks_.size() + kTogether - 1) / kTogether, [&](std::size_t part) {
    std::size_t const last = std::min((part + 1) * kTogether, blocks_.size());
    for (std::size_t b = part * kTogether; b < last; ++b) {
      std::size_t const bytes = place_at[b + 1] - place_at[b];
      if (bytes > 0) std::memcpy(stream.data() + place_at[b], places_.data() + blocks_[b].place_at, bytes);
    }
  });
  return stream;
}

StreamView StreamPlaces::view(float const* values) const {
  GPUPS_ASSERT(form_.values == StreamValues::kFloat);
  std::vector<StreamBlock> blocks;
  blocks.reserve(blocks_.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    auto const* const its = reinterpret_cast<std::uint8_t const*>(values);
    blocks.push_back({blocks_[b].word, block_width(size_, b), its, places_.data() + blocks_[b].place_at});
    values += blocks_[b].word.count;
  }
  return {header(), std::move(blocks)};
}

}  // namespace gpups::kernels
