// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/allreduce/packed_integers.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/base/check.hpp"
#include "kernels/sparse/pack_words.hpp"

namespace gpups::comm {
namespace {

using kernels::kPackedWordBlock;
using kernels::packed_word_blocks;

// Returns the bytes of the widths, after which the blocks begin: a multiple of 8.
std::size_t header_bytes(std::size_t words) { return (packed_word_blocks(words) + 7) / 8 * 8; }

// The offsets of blocks whose widths are known.
struct Layout {
  std::vector<std::uint32_t> offsets;
  std::size_t bytes = 0;  // of all blocks
};
// Returns nullopt if a width is too large.
std::optional<Layout> layout_of(std::vector<std::uint8_t> const& widths, std::size_t words) {
  Layout layout;
  layout.offsets.reserve(widths.size());
  for (std::size_t b = 0; b < widths.size(); ++b) {
    if (widths[b] > kernels::kWordBytesMax) return std::nullopt;
    layout.offsets.push_back(static_cast<std::uint32_t>(layout.bytes));
    layout.bytes += widths[b] * std::min(kPackedWordBlock, words - b * kPackedWordBlock);
  }
  return layout;
}

// Returns a copy on the stream's device.
template <class T>
Array<T> on_device(Stream& stream, std::vector<T> const& values) {
  Array<T> there(stream.device(), values.size());
  copy<T>(stream, there, View<T const>(values));
  return there;
}

}  // namespace

std::size_t packed_bytes_max(std::size_t words) { return header_bytes(words) + words * kernels::kWordBytesMax; }

CoTask<Bytes> pack_integers(Communicator& comm, IntegerView words) {
  GPUPS_ASSERT(words.size() <= kPackedIntegersMax);
  auto& stream = comm.stream();
  Array<std::uint8_t> const widths(stream.device(), packed_word_blocks(words.size()));
  std::vector<std::uint8_t> known(widths.size());
  kernels::find_widths(stream, {.words = words, .widths = widths});
  copy<std::uint8_t>(stream, View<std::uint8_t>(known), widths);
  co_await comm.stream_done();
  auto const layout = layout_of(known, words.size());
  auto const offsets = on_device(stream, layout->offsets);
  std::size_t const header = header_bytes(words.size());
  Bytes message(stream.device(), header + layout->bytes);
  memory::fill_bytes(stream, message.data(), 0, header);
  copy<std::uint8_t>(stream, message, widths);
  kernels::pack_words(
      stream,
      {.words = words, .widths = widths, .offsets = offsets, .bytes = message.view().slice(header, layout->bytes)});
  co_await comm.stream_done();  // before `offsets` is freed
  co_return message;
}

CoTask<> unpack_integers(Communicator& comm, Rank from, Bytes const& message, IntegerView into, Unpack how) {
  auto& stream = comm.stream();
  std::size_t const header = header_bytes(into.size());
  if (message.size() < header) comm.throw_peer_error(from, "sent packed integers without their widths");
  auto const widths = message.view().slice(0, packed_word_blocks(into.size()));
  std::vector<std::uint8_t> known(widths.size());
  copy<std::uint8_t>(stream, View<std::uint8_t>(known), widths);
  co_await comm.stream_done();
  auto const layout = layout_of(known, into.size());
  if (!layout || header + layout->bytes != message.size())
    comm.throw_peer_error(from, "sent packed integers with invalid widths");
  auto const offsets = on_device(stream, layout->offsets);
  kernels::unpack_words(stream, {.bytes = message.view().slice(header, layout->bytes),
                                 .widths = widths,
                                 .offsets = offsets,
                                 .into = into,
                                 .add = how == Unpack::kAdd});
  co_await comm.stream_done();  // before `offsets` is freed
}

}  // namespace gpups::comm
