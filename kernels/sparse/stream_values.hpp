// SPDX-License-Identifier: Apache-2.0
// Encodes the values of a block for a stream: those of its elements, or of all positions if the block is dense. On the
// host.
#pragma once

#include "kernels/sparse/block_entries.hpp"
#include "kernels/sparse/block_values.hpp"
#include "kernels/sparse/unit_values.hpp"

namespace gpups::kernels {

// The elements of a block as a part of a caller's list.
template <class T>
struct ListedEntries {
  std::size_t count;
  std::uint32_t const* indices;  // (count)
  std::uint32_t base;            // the index of position 0
  T const* values;               // (count)
};
template <class T, class F>
void each_position(ListedEntries<T> const& entries, F f) {
  for (std::size_t i = 0; i < entries.count; ++i) f(i, entries.indices[i] - entries.base);
}

// Writes values, with memory that is reused for the next block; one for each thread.
template <class T>
class ValueWriter {
 public:
  // Writes the values to `to`, which has room for value_bytes() of the word. If residual is not null, adds the errors
  // of the values to residual[position]. Entries: BlockEntries or ListedEntries.
  template <class Entries>
  void write(ValueForm form, Entries const& entries, BlockWord word, std::uint32_t width, std::uint8_t* to,
             T* residual) {
    bool const dense = word.kind == PositionEncoding::kDense;
    if (!dense || residual != nullptr) values_.write(form, entries.values, entries.count, to);
    if (residual != nullptr) keep_loss(form, entries, word, to, residual);
    if (!dense) return;
    T* const all = scratch();
    std::memset(all, 0, width * sizeof(T));
    each_position(entries, [&](std::size_t i, std::uint32_t position) { all[position] = entries.values[i]; });
    values_.write(form, all, width, to);
  }
  // Returns log2 of the bytes per value for units; 0 for other forms.
  std::uint8_t width_log2(ValueForm form, T const* x, std::size_t n) { return values_.width_log2(form, x, n); }

 private:
  template <class Entries>
  void keep_loss(ValueForm form, Entries const& entries, BlockWord word, std::uint8_t const* written, T* residual) {
    T* const sent = scratch();
    values_.read(form, written, entries.count, word.width_log2, sent);
    each_position(entries, [&](std::size_t i, std::uint32_t position) {
      residual[position] = plus(residual[position], minus(entries.values[i], sent[i]));
    });
  }
  T* scratch() {
    if (scratch_.size() == 0) scratch_ = Array<T>(Device::host(), kStreamBlock);
    return scratch_.data();
  }

  BlockValues<T> values_;
  Array<T> scratch_;
};

}  // namespace gpups::kernels
