// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/narrow.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/check.hpp"
#include "kernels/wire/narrow_words.hpp"

namespace gpups::comm {
namespace {

using kernels::kNarrowWordBlock;
using kernels::narrow_word_blocks;

// Bytes in front of the blocks, which begin at a multiple of 8.
std::size_t front_bytes(std::size_t words) { return (narrow_word_blocks(words) + 7) / 8 * 8; }

// Where the blocks of these widths lie.
struct Layout {
  std::vector<std::uint32_t> offsets;
  std::size_t bytes = 0;  // of all blocks
};
std::optional<Layout> layout_of(std::vector<std::uint8_t> const& widths, std::size_t words) {
  Layout layout;
  layout.offsets.reserve(widths.size());
  for (std::size_t b = 0; b < widths.size(); ++b) {
    if (widths[b] > kernels::kWordBytesMax) return std::nullopt;
    layout.offsets.push_back(static_cast<std::uint32_t>(layout.bytes));
    layout.bytes += widths[b] * std::min(kNarrowWordBlock, words - b * kNarrowWordBlock);
  }
  return layout;
}

// On the stream's device; on the host it is the vector itself.
template <class T>
Array<T> on_device(Stream& stream, std::vector<T> const& values) {
  Array<T> there(stream.device(), values.size());
  copy<T>(stream, there, View<T const>(values));
  return there;
}

}  // namespace

std::size_t narrow_bytes_max(std::size_t words) { return front_bytes(words) + words * kernels::kWordBytesMax; }

Task<Bytes> narrow(Mesh& mesh, Words words) {
  GPUPS_ASSERT(words.size() <= kNarrowWordsMax);
  auto& stream = mesh.stream();
  Array<std::uint8_t> const widths(stream.device(), narrow_word_blocks(words.size()));
  std::vector<std::uint8_t> known(widths.size());
  kernels::find_widths(stream, {.words = words, .widths = widths});
  copy<std::uint8_t>(stream, View<std::uint8_t>(known), widths);
  co_await mesh.caught_up();
  auto const layout = layout_of(known, words.size());
  auto const offsets = on_device(stream, layout->offsets);
  std::size_t const front = front_bytes(words.size());
  Bytes message(stream.device(), front + layout->bytes);
  memory::fill_bytes(stream, message.data(), 0, front);
  copy<std::uint8_t>(stream, message, widths);
  kernels::narrow_words(
      stream,
      {.words = words, .widths = widths, .offsets = offsets, .bytes = message.view().slice(front, layout->bytes)});
  co_await mesh.caught_up();  // the offsets go
  co_return message;
}

Task<> widen(Mesh& mesh, Rank from, Bytes const& message, Words into, Widen how) {
  auto& stream = mesh.stream();
  std::size_t const front = front_bytes(into.size());
  if (message.size() < front) mesh.refuse(from, "sent integers without their widths");
  auto const widths = message.view().slice(0, narrow_word_blocks(into.size()));
  std::vector<std::uint8_t> known(widths.size());
  copy<std::uint8_t>(stream, View<std::uint8_t>(known), widths);
  co_await mesh.caught_up();
  auto const layout = layout_of(known, into.size());
  if (!layout || front + layout->bytes != message.size()) mesh.refuse(from, "sent integers of impossible widths");
  auto const offsets = on_device(stream, layout->offsets);
  kernels::widen_words(stream, {.bytes = message.view().slice(front, layout->bytes),
                                .widths = widths,
                                .offsets = offsets,
                                .into = into,
                                .add = how == Widen::kAdd});
  co_await mesh.caught_up();  // the offsets go
}

}  // namespace gpups::comm
