// SPDX-License-Identifier: Apache-2.0
// Mirrors of the rows that one rank reads from another rank, for tables with refresh compression.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cache/feedback/adaptive_threshold.hpp"
#include "cache/feedback/key_age_index.hpp"
#include "cache/feedback/residual_file.hpp"
#include "cache/rows/table_shard.hpp"
#include "gpups/types.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::cache {

// One end of the mirrors of an owner and a reader, for one table. Both ends have equal mirrors: the owner sends the
// changes of rows against their mirrors, and both ends apply these. Both ends process batches in the order of their
// steps, so they evict the same mirrors. A new mirror has the row's initial value.
//
// A section has the sent rows in the order of the batch, encoded, and then a bitmap with one bit for each row of the
// batch.
//
// For the thread that makes progress. Functions with `wait` in their names block until `stream` is done.
class RowMirror {
 public:
  // shard: of this rank, for the table's options and initial values. It must outlive this object.
  RowMirror(Device device, TableShard const& shard);

  // Returns the bytes of memory for `rows` mirrors at one end.
  static std::size_t bytes_for(TableOptions const& table, std::size_t rows) {
    return KeyAgeIndex::bytes_for(rows) +
           kernels::RowStorage<float>::bytes_for(rows, row_stride(table.dim), KeyAgeIndex::kGrowth);
  }
  // Returns the size in bytes of a section that sends `sent` of `n` rows.
  static std::size_t bytes(TableOptions const& table, std::size_t sent, std::size_t n);

  // An encoded section, and the number of rows that it sends.
  struct Changes {
    std::size_t sent = 0;
    std::shared_ptr<Array<std::uint8_t>> bytes;
  };
  // The owner's end: encodes the changes of the rows that the reader has announced for `step`, and updates the mirrors.
  // keys: (n), distinct. values: (n, dim), the current values. all: send every changed row, ignoring the filter.
  Changes wait_send(Stream& stream, Clock step, View<Key const> keys, MatrixView<float const> values, bool all = false);

  // The reader's end: decodes a section, updates the mirrors, and writes the mirrors of `keys` to `out`, (n, dim).
  // sent: number of rows in the message. Returns false if the section has another number of rows.
  bool wait_read(Stream& stream, Clock step, View<Key const> keys, View<std::uint8_t const> section, std::size_t sent,
                 MatrixView<float> out);

  // The owner's end: returns all mirrors for a checkpoint; the caller sets `table` and `reader`. Both ends load it.
  // Changes that were sent for the next step are part of the mirrors. Call it between steps.
  MirrorChunk wait_save(Stream& stream) const;
  // Loads the mirrors of a checkpoint. REQUIRES: there are no mirrors yet.
  void wait_load(Stream& stream, MirrorChunk const& chunk);

  // Drops the mirrors of erased rows. Both ends must call it between the same batches.
  void wait_drop(Stream& stream, View<Key const> keys) {
    Array<std::uint32_t> const slots(stream.device(), keys.size());
    keys_.wait_find_or_insert(stream, keys, slots);
    keys_.wait_erase(stream, slots);
  }

 private:
  // Returns the slots of keys; new keys get a mirror with the initial value.
  Array<std::uint32_t> list_slots(Stream& stream, View<Key const> keys);
  // Decodes rows and updates the mirrors in these slots.
  void wait_change(Stream& stream, View<std::uint8_t const> codes, View<std::uint32_t const> slots);
  void wait_evict_oldest(Stream& stream, Clock step);

  TableShard const& shard_;
  AdaptiveThreshold threshold_;          // the owner's end only, as the next two
  Clock sent_step_{}, loaded_step_{-1};  // the last step for which rows were sent; the same in the loaded checkpoint
  KeyAgeIndex keys_;
  kernels::RowStorage<float> mirror_;
};

}  // namespace gpups::cache
