// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/stream_writer.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/arena.hpp"

namespace gpups::kernels {

StreamWriter::StreamWriter(ValueForm form, std::uint64_t first, std::uint64_t size,
                           std::vector<std::uint32_t> const& most)
    : form_(form), size_(size), positions_(form, first, size, most) {
  std::size_t value_at = 0;
  blocks_.reserve(most.size());
  for (std::size_t b = 0; b < most.size(); ++b) {
    blocks_.push_back({value_at, 0});
    // A dense block has values for all positions, but takes no more bytes than another encoding. Units count with 8
    // bytes.
    if (most[b] > 0) value_at += value_bytes(form.values, most[b], 3) + (block_width(size, b) + 7) / 8;
    value_at = (value_at + 7) / 8 * 8;
  }
  values_ = Array<std::uint8_t>(Device::host(), value_at);
}

template <class T>
void StreamWriter::write(std::size_t block, BlockEntries<T> const& entries, ValueWriter<T>& values, T* residual) {
  if (entries.count == 0) return;
  std::uint8_t const width_log2 = values.width_log2(form_, entries.values, entries.count);
  BlockWord const word = positions_.write(block, entries, width_log2);
  Values& b = blocks_[block];
  b.bytes = value_bytes(form_.values, word.count, word.width_log2);
  values.write(form_, entries, word, block_width(size_, block), values_.data() + b.at, residual);
}
template void StreamWriter::write(std::size_t, BlockEntries<float> const&, ValueWriter<float>&, float*);
template void StreamWriter::write(std::size_t, BlockEntries<std::int64_t> const&, ValueWriter<std::int64_t>&,
                                  std::int64_t*);

Array<std::uint8_t> StreamWriter::finish(HostExec ex) const {
  Array<std::uint8_t> stream = positions_.stream(ex);
  auto const at = positions_.value_at();
  ex.arena->blocks(blocks_.size(), [&](std::size_t b) {
    if (blocks_[b].bytes > 0) std::memcpy(stream.data() + at[b], values_.data() + blocks_[b].at, blocks_[b].bytes);
  });
  return stream;
}

}  // namespace gpups::kernels
