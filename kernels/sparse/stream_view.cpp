// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/stream_view.hpp"

#include <cstring>

namespace gpups::kernels {
namespace {

std::string_view error_of(StreamHeader const& h, std::size_t bytes) {
  if (h.version != kStreamVersion) return "its version is unknown";
  if (h.values > StreamValues::kUnits) return "its values have an unknown format";
  if (h.zero != 0) return "its reserved bytes are not 0";
  if (h.grid_log2 < -200 || h.grid_log2 > 200) return "its grid is out of range";
  if (h.size > kStreamElements || h.first > kStreamElements - h.size) return "its range is too long";
  std::size_t const head = stream_head_bytes(stream_blocks(h.size));
  if (bytes < head || h.value_bytes > bytes - head || h.position_bytes != bytes - head - h.value_bytes) {
    return "its length differs from that in its header";
  }
  return {};
}

std::string_view error_of(BlockWord word, std::uint32_t width) {
  if (word.count == 0 && word.bits() != 0) return "the word of an empty block is not 0";
  if (word.count > width) return "a block has more elements than positions";
  if (word.skips > width / 255 || (word.skips != 0 && word.kind != PositionEncoding::kGaps))
    return "a block has a wrong number of skips";
  if (word.kind == PositionEncoding::kDense && word.count != width) return "a dense block is not full";
  return {};
}

}  // namespace

StreamView::StreamView(View<std::uint8_t const> bytes) : data_(bytes.data()), bytes_(bytes.size()) {
  if (bytes.size() < sizeof header_) {
    error_ = "it is shorter than a header";
    return;
  }
  std::memcpy(&header_, bytes.data(), sizeof header_);
  error_ = error_of(header_, bytes.size());
  if (error_.empty()) error_ = find_blocks(bytes);
}

std::string_view StreamView::find_blocks(View<std::uint8_t const> bytes) {
  std::size_t const blocks = stream_blocks(header_.size);
  std::size_t value_at = stream_head_bytes(blocks), position_at = value_at + header_.value_bytes;
  std::size_t const place_begin = position_at;
  std::uint64_t count = 0;
  blocks_.reserve(blocks);
  for (std::size_t b = 0; b < blocks; ++b) {
    std::uint32_t bits;
    std::memcpy(&bits, bytes.data() + sizeof header_ + b * sizeof bits, sizeof bits);
    BlockWord const word = BlockWord::of(bits);
    std::uint32_t const width = block_width(header_.size, b);
    if (word.bits() != bits) return "the word of a block has unknown bits";
    if (word.width_log2 != 0 && header_.values != StreamValues::kUnits)
      return "a block has a width of units, but the stream has no units";
    if (auto const error = error_of(word, width); !error.empty()) return error;
    blocks_.push_back({word, width, bytes.data() + value_at, bytes.data() + position_at});
    value_at += value_bytes(header_.values, word.count, word.width_log2);
    position_at += word.count == 0 ? 0 : position_bytes(word, width);
    count += word.count;
    if (value_at > place_begin || position_at > bytes.size()) return "its blocks need more bytes than it has";
  }
  if (value_at != place_begin || position_at != bytes.size()) return "its blocks need fewer bytes than it has";
  return count == header_.count ? std::string_view{}
                                : "the number of elements of its blocks differs from that in its header";
}

std::size_t stream_bytes(View<std::uint8_t const> bytes) {
  constexpr std::uint64_t kTooMany = std::uint64_t{1} << 48;
  StreamHeader header;
  if (bytes.size() < sizeof header) return 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.size > kStreamElements || header.value_bytes > kTooMany || header.position_bytes > kTooMany) return 0;
  return stream_head_bytes(stream_blocks(header.size)) + header.value_bytes + header.position_bytes;
}

}  // namespace gpups::kernels
