// SPDX-License-Identifier: Apache-2.0
// A sparse stream that has come from somewhere: its header and words are checked, and where its blocks lie is known.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/wire/stream_format.hpp"

namespace gpups::kernels {

// A block of a stream. What its bytes say is checked by who reads them.
struct StreamBlock {
  BlockWord word;
  std::uint32_t width;  // elements of the vector
  std::uint8_t const* values;
  std::uint8_t const* positions;
};

// Refers to the bytes, which must outlive it. They are on the host.
class StreamView {
 public:
  // Any bytes; where fault() says something they are not a stream.
  explicit StreamView(View<std::uint8_t const> bytes);
  // Blocks that this process has made, wherever their bytes are: data() is null.
  StreamView(StreamHeader const& header, std::vector<StreamBlock> blocks)
      : header_(header), data_(nullptr), bytes_(0), blocks_(std::move(blocks)) {}

  // What is wrong, or nothing. The rest REQUIRES that nothing is.
  std::string_view error() const { return error_; }
  StreamHeader const& header() const { return header_; }
  ValueForm form() const { return {header_.values, header_.grid_log2}; }
  std::uint8_t const* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  std::span<StreamBlock const> blocks() const { return blocks_; }

 private:
  std::string_view find_blocks(View<std::uint8_t const> bytes);

  std::string_view error_;
  StreamHeader header_{};
  std::uint8_t const* data_;
  std::size_t bytes_;
  std::vector<StreamBlock> blocks_;
};

// How long the stream says it is that these bytes begin with; 0 where they are too few to say so, or it is longer than
// any memory.
std::size_t stream_bytes(View<std::uint8_t const> bytes);

}  // namespace gpups::kernels
