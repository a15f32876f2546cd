// SPDX-License-Identifier: Apache-2.0
// Puts a stream together, block by block, by any threads: each block is written where it has room for the most that it
// may take, and then all are moved side by side. On the host.
#pragma once

#include <vector>

#include "kernels/wire/block_entries.hpp"
#include "kernels/wire/block_values.hpp"

namespace gpups::kernels {

class StreamWriter {
 public:
  // A stream of elements [first, first + size); block b will have most[b] of them or fewer.
  StreamWriter(ValueForm form, std::uint64_t first, std::uint64_t size, std::vector<std::uint32_t> const& most);

  // What a thread needs to write blocks.
  template <class T>
  struct Part {
    BlockValues<T> values;
    Array<T> dense{Device::host(), kStreamBlock}, sent{Device::host(), kStreamBlock};
  };
  // Once for each block, empty ones included; adds what its values lost on the way to residual[place], unless that is
  // null.
  template <class T>
  void write(std::size_t block, BlockEntries<T> const& entries, Part<T>& part, T* residual);

  // The stream, once all blocks are written.
  Array<std::uint8_t> finish(HostExec ex);

 private:
  struct Block {
    std::size_t value_at, place_at;  // where it has room
    BlockWord word;
    std::uint32_t value_bytes, place_bytes;
  };

  ValueForm form_;
  std::uint64_t first_, size_;
  std::vector<Block> blocks_;
  Array<std::uint8_t> values_, places_;
};

}  // namespace gpups::kernels
