// SPDX-License-Identifier: Apache-2.0
// Puts a stream together of blocks whose sizes nobody knows before they are made: they are written by any threads, each
// where it has room for the most that it may take, and then all are moved side by side. On the host.
#pragma once

#include <vector>

#include "kernels/wire/stream_positions.hpp"
#include "kernels/wire/stream_values.hpp"

namespace gpups::kernels {

class StreamWriter {
 public:
  // A stream of elements [first, first + size); block b will have most[b] of them or fewer.
  StreamWriter(ValueForm form, std::uint64_t first, std::uint64_t size, std::vector<std::uint32_t> const& most);

  // Once for each block that has elements; adds what its values lost on the way to residual[place], unless that is
  // null.
  template <class T>
  void write(std::size_t block, BlockEntries<T> const& entries, ValueWriter<T>& values, T* residual);

  // The stream, once all blocks are written.
  Array<std::uint8_t> finish(HostExec ex) const;

 private:
  struct Values {
    std::size_t at, bytes;  // where they have room, and how many they are
  };

  ValueForm form_;
  std::uint64_t size_;
  StreamPositions positions_;
  std::vector<Values> blocks_;
  Array<std::uint8_t> values_;
};

}  // namespace gpups::kernels
