// SPDX-License-Identifier: Apache-2.0
// Writes the blocks of a stream. Any threads write blocks to separate memory with room for the largest encoding; then
// all are copied next to each other into the stream. On the host.
#pragma once

#include <utility>
#include <vector>

#include "kernels/sparse/block_entries.hpp"
#include "kernels/sparse/stream_values.hpp"
#include "kernels/sparse/stream_view.hpp"

namespace gpups::kernels {

// Encodes the words and positions of blocks. write() may be called by several threads for different blocks.
class StreamPositions {
 public:
  // For a stream of elements [first, first + size), whose block b will have at most most[b] elements.
  StreamPositions(ValueForm form, std::uint64_t first, std::uint64_t size, std::vector<std::uint32_t> const& most);

  // Encodes a block; call it once for each block that has elements. Returns its word, which determines the size of
  // its values.
  BlockWord write(std::size_t block, BlockPositions const& positions, unsigned width_log2);

  // Returns the stream when all blocks are written, without values: the caller writes those of block b at
  // value_at()[b].
  Array<std::uint8_t> stream(HostExec ex) const;
  std::vector<std::size_t> value_at() const;
  BlockWord word(std::size_t block) const { return blocks_[block].word; }

  // A variant of write() and stream() for sums in this process. keep() writes positions in the encoding that is fastest
  // to read, and view() makes a view of blocks whose values, as floats, are not copied; `values` is the first value of
  // the first block. The view is valid as long as the values and the result of take() exist. REQUIRES: form kFloat, and
  // block b has exactly most[b] elements.
  void keep(std::size_t block, BlockPositions const& positions);
  StreamView view(float const* values) const;
  Array<std::uint8_t> take() && { return std::move(positions_); }

 private:
  struct Block {
    std::size_t position_at;  // where the block has room
    BlockWord word;
  };

  StreamHeader header() const;

  ValueForm form_;
  std::uint64_t first_, size_;
  std::vector<Block> blocks_;
  Array<std::uint8_t> positions_;
};

// Writes whole blocks, if their sizes are not known beforehand. write() may be called by several threads for different
// blocks.
class StreamWriter {
 public:
  // For a stream of elements [first, first + size), whose block b will have at most most[b] elements.
  StreamWriter(ValueForm form, std::uint64_t first, std::uint64_t size, std::vector<std::uint32_t> const& most);

  // Writes a block; call it once for each block that has elements. If residual is not null, adds the errors of the
  // values to residual[position].
  template <class T>
  void write(std::size_t block, BlockEntries<T> const& entries, ValueWriter<T>& values, T* residual);

  // Returns the stream when all blocks are written.
  Array<std::uint8_t> finish(HostExec ex) const;

 private:
  struct Values {
    std::size_t at, bytes;  // where the values have room, and their size
  };

  ValueForm form_;
  std::uint64_t size_;
  StreamPositions positions_;
  std::vector<Values> blocks_;
  Array<std::uint8_t> values_;
};

}  // namespace gpups::kernels
