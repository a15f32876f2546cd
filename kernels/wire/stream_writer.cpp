// SPDX-License-Identifier: Apache-2.0
#include "kernels/wire/stream_writer.hpp"

#include "kernels/arena.hpp"
#include "kernels/assert.hpp"

namespace gpups::kernels {
namespace {

// Bytes that vectors may write behind a block's.
constexpr std::size_t kSlack = 64;

// The form of places that takes fewest bytes, a dense block's further values included.
template <class T>
BlockWord best_word(BlockEntries<T> const& entries, StreamValues values, unsigned width_log2, std::uint32_t width) {
  auto const count = static_cast<std::uint32_t>(entries.count);
  std::size_t const sparse = value_bytes(values, count, width_log2), dense = value_bytes(values, width, width_log2);
  std::size_t const bitmap = (width + 7) / 8;
  auto const width_bits = static_cast<std::uint8_t>(width_log2);
  if (dense <= sparse + std::min<std::size_t>(bitmap, count)) return {width, 0, PlaceKind::kDense, width_bits};
  if (entries.places == nullptr || bitmap <= count) return {count, 0, PlaceKind::kBitmap, width_bits};
  std::uint32_t const skips = skips_of(entries.places, count);
  std::size_t const list = count + std::min(count, skips);
  if (bitmap <= list) return {count, 0, PlaceKind::kBitmap, width_bits};
  if (count <= skips) return {count, 0, PlaceKind::kOffsets, width_bits};
  return {count, skips, PlaceKind::kGaps, width_bits};
}

template <class T>
void spread(BlockEntries<T> const& entries, std::uint32_t width, T* to) {
  if (entries.places == nullptr) return expand(entries.values, entries.bits, (width + 63) / 64, to);
  std::memset(to, 0, width * sizeof(T));
  for (std::size_t i = 0; i < entries.count; ++i) to[entries.places[i]] = entries.values[i];
}

template <class T>
void write_places(BlockWord word, BlockEntries<T> const& entries, std::uint32_t width, std::uint8_t* to) {
  switch (word.kind) {
    case PlaceKind::kDense:
      return;
    case PlaceKind::kGaps:
      write_gaps(entries.places, entries.count, to);
      return;
    case PlaceKind::kOffsets:
      std::memcpy(to, entries.places, 2 * entries.count);
      return;
    case PlaceKind::kBitmap:
      if (entries.bits != nullptr) {
        std::memcpy(to, entries.bits, (width + 7) / 8);
      } else {
        write_bitmap(entries.places, entries.count, width, to);
      }
  }
}

// The bytes of blocks that lie apart, side by side.
template <class Blocks, class From>
void gather(HostExec ex, Blocks const& blocks, From from, std::uint8_t* to) {
  std::vector<std::size_t> start{0};
  for (auto const& block : blocks) start.push_back(start.back() + from(block).size());
  constexpr std::size_t kTogether = 16;
  ex.arena->blocks((blocks.size() + kTogether - 1) / kTogether, [&](std::size_t part) {
    std::size_t const last = std::min((part + 1) * kTogether, blocks.size());
    for (std::size_t b = part * kTogether; b < last; ++b) {
      View<std::uint8_t const> const bytes = from(blocks[b]);
      if (!bytes.empty()) std::memcpy(to + start[b], bytes.data(), bytes.size());
    }
  });
}

}  // namespace

StreamWriter::StreamWriter(ValueForm form, std::uint64_t first, std::uint64_t size,
                           std::vector<std::uint32_t> const& most)
    : form_(form), first_(first), size_(size) {
  GPUPS_ASSERT(most.size() == stream_blocks(size) && size <= kStreamElements && first <= kStreamElements - size);
  std::size_t value_at = 0, place_at = 0;
  for (std::size_t b = 0; b < most.size(); ++b) {
    std::uint32_t const width = block_width(size, b);
    GPUPS_ASSERT(most[b] <= width);
    blocks_.push_back({value_at, place_at, {}, 0, 0});
    if (most[b] == 0) continue;
    // A dense block has the values of all places, but takes no more bytes than another form would. Forms: widest first.
    std::size_t const bitmap = (width + 7) / 8;
    std::size_t const list = std::min<std::size_t>(std::size_t{2} * most[b], bitmap);
    value_at += value_bytes(form.values, most[b], 3) + bitmap + kSlack;
    place_at += list + kSlack;
  }
  values_ = Array<std::uint8_t>(Device::host(), value_at);
  places_ = Array<std::uint8_t>(Device::host(), place_at);
}

template <class T>
void StreamWriter::write(std::size_t block, BlockEntries<T> const& entries, Part<T>& part, T* residual) {
  if (entries.count == 0) return;
  Block& b = blocks_[block];
  std::uint32_t const width = block_width(size_, block);
  std::uint8_t* const to = values_.data() + b.value_at;
  std::uint8_t width_log2 = part.values.write(form_, entries.values, entries.count, to);
  b.word = best_word(entries, form_.values, width_log2, width);
  if (residual != nullptr) {
    part.values.read(form_, to, entries.count, width_log2, part.sent.data());
    T const* const sent = part.sent.data();
    each_place(entries, [&](std::size_t i, std::uint32_t place) { residual[place] += entries.values[i] - sent[i]; });
  }
  if (b.word.kind == PlaceKind::kDense) {
    spread(entries, width, part.dense.data());
    width_log2 = part.values.write(form_, part.dense.data(), width, to);
  }
  write_places(b.word, entries, width, places_.data() + b.place_at);
  b.value_bytes = static_cast<std::uint32_t>(value_bytes(form_.values, b.word.count, width_log2));
  b.place_bytes = static_cast<std::uint32_t>(place_bytes(b.word, width));
}
template void StreamWriter::write(std::size_t, BlockEntries<float> const&, Part<float>&, float*);
template void StreamWriter::write(std::size_t, BlockEntries<std::int64_t> const&, Part<std::int64_t>&, std::int64_t*);

Array<std::uint8_t> StreamWriter::finish(HostExec ex) {
  StreamHeader header{
      kStreamVersion, form_.values, static_cast<std::int16_t>(form_.grid_log2), 0, first_, size_, 0, 0, 0};
  for (Block const& b : blocks_) {
    header.count += b.word.count;
    header.value_bytes += b.value_bytes;
    header.place_bytes += b.place_bytes;
  }
  std::size_t const head = stream_head_bytes(blocks_.size());
  Array<std::uint8_t> stream(Device::host(), head + header.value_bytes + header.place_bytes);
  std::memcpy(stream.data(), &header, sizeof header);
  std::memset(stream.data() + sizeof header, 0, head - sizeof header);
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    std::uint32_t const word = blocks_[b].word.bits();
    std::memcpy(stream.data() + sizeof header + b * sizeof word, &word, sizeof word);
  }
  std::uint8_t* const values = stream.data() + head;
  gather(
      ex, blocks_, [&](Block const& b) { return View<std::uint8_t const>(values_.data() + b.value_at, b.value_bytes); },
      values);
  gather(
      ex, blocks_, [&](Block const& b) { return View<std::uint8_t const>(places_.data() + b.place_at, b.place_bytes); },
      values + header.value_bytes);
  return stream;
}

}  // namespace gpups::kernels
