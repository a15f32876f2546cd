// SPDX-License-Identifier: Apache-2.0
// A view of a sparse stream that may come from anywhere: checks its header and words, and finds its blocks.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/sparse/stream_format.hpp"

namespace gpups::kernels {

// A block of a stream. Its values and positions are not checked; their reader does that.
struct StreamBlock {
  BlockWord word;
  std::uint32_t width;  // elements of the vector
  std::uint8_t const* values;
  std::uint8_t const* positions;
};

// Refers to the bytes of a stream on the host, which must outlive it.
class StreamView {
 public:
  // Accepts any bytes; error() is not empty if they are not a stream.
  explicit StreamView(View<std::uint8_t const> bytes);
  // For blocks that this process has made, whose bytes may be in different places: data() is null.
  StreamView(StreamHeader const& header, std::vector<StreamBlock> blocks)
      : header_(header), data_(nullptr), bytes_(0), blocks_(std::move(blocks)) {}

  // Returns an error, or an empty string. The other functions REQUIRE that there is no error.
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

// Returns the length of the stream that begins with these bytes, as its header states it. Returns 0 if the header is
// incomplete or the length exceeds any memory.
std::size_t stream_bytes(View<std::uint8_t const> bytes);

}  // namespace gpups::kernels
