// SPDX-License-Identifier: Apache-2.0
// The words and places of a stream's blocks: written by any threads where each has room for the most that it may take,
// and then moved side by side into the stream. On the host.
#pragma once

#include <utility>
#include <vector>

#include "kernels/wire/block_entries.hpp"
#include "kernels/wire/stream_view.hpp"

namespace gpups::kernels {

class StreamPositions {
 public:
  // Of a stream of elements [first, first + size); block b will have most[b] of them or fewer.
  StreamPositions(ValueForm form, std::uint64_t first, std::uint64_t size, std::vector<std::uint32_t> const& most);

  // Once for each block that has elements. Returns its word, which says what form its values have.
  BlockWord write(std::size_t block, BlockPositions const& positions, unsigned width_log2);

  // The stream, once all blocks are written; its values are still to be, block b's at value_at()[b].
  Array<std::uint8_t> stream(HostExec ex) const;
  std::vector<std::size_t> value_at() const;
  BlockWord word(std::size_t block) const { return blocks_[block].word; }

  // Instead of write() and stream(), for sums in this process: the places in the form that is read soonest, and a view
  // of blocks whose values stay where they are, as floats, `values` being the first one's. It holds while take() and
  // the values are there. REQUIRES: of kFloat, and that blocks have as many elements as was said.
  void keep(std::size_t block, BlockPositions const& positions);
  StreamView view(float const* values) const;
  Array<std::uint8_t> take() && { return std::move(positions_); }

 private:
  struct Block {
    std::size_t position_at;  // where it has room
    BlockWord word;
  };

  StreamHeader header() const;

  ValueForm form_;
  std::uint64_t first_, size_;
  std::vector<Block> blocks_;
  Array<std::uint8_t> positions_;
};

}  // namespace gpups::kernels
