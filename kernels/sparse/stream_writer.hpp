// SPDX-License-Identifier: Apache-2.0
// Writes a stream block by block when the sizes of blocks are not known beforehand. Any threads write blocks to
// separate memory with room for the largest encoding; then all are copied next to each other. On the host.
#pragma once

#include <vector>

#include "kernels/sparse/stream_positions.hpp"
#include "kernels/sparse/stream_values.hpp"

namespace gpups::kernels {

// See above. write() may be called by several threads for different blocks.
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
