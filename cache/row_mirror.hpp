// SPDX-License-Identifier: Apache-2.0
// Copies that one rank has of another's rows of a table, as both of them know it: the owner sends what has changed, and
// both change their copies alike. Batches come in the order of their steps at both ends, so both forget the same rows.
//
// A section is a list of coded rows, those that are sent, in the batch's order, and a bit for each row of the batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cache/adaptive_threshold.hpp"
#include "cache/key_age_index.hpp"
#include "cache/residual_file.hpp"
#include "cache/table_shard.hpp"
#include "gpups/types.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::cache {

class RowMirror {
 public:
  // shard: this rank's of the table, for its options and initial values, which copies begin with.
  RowMirror(Device device, TableShard const& shard);

  // Of so many copies, at one end.
  static std::size_t bytes_for(TableOptions const& table, std::size_t rows) {
    return KeyAgeIndex::bytes_for(rows) +
           kernels::RowStorage<float>::bytes_for(rows, row_stride(table.dim), KeyAgeIndex::kGrowth);
  }
  // Of a section.
  static std::size_t bytes(TableOptions const& table, std::size_t sent, std::size_t n);

  // The owner's end: what to send of these rows, which the reader has announced for this step. all: each row that has
  // changed, whatever the filter says.
  struct Changes {
    std::size_t sent = 0;
    std::shared_ptr<Array<std::uint8_t>> bytes;
  };
  Changes wait_send(Stream& stream, Clock step, View<Key const> keys, MatrixView<float const> values, bool all = false);

  // The reader's end: out becomes the rows as far as the section tells. False where it has other rows than were said
  // to be sent.
  bool wait_read(Stream& stream, Clock step, View<Key const> keys, View<std::uint8_t const> section, std::size_t sent,
                 MatrixView<float> out);

  // Between steps, for a checkpoint: everything but the table and the reader. The owner's end; both go on with it. What
  // it had sent for the next step is not sent again then. Waits for `stream`.
  MirrorChunk wait_save(Stream& stream) const;
  // REQUIRES: there is no copy yet.
  void wait_load(Stream& stream, MirrorChunk const& chunk);

  // Has no copy of these rows any more. At both ends, in the same order among batches. Waits for `stream`.
  void wait_drop(Stream& stream, View<Key const> keys) {
    Array<std::uint32_t> const slots(stream.device(), keys.size());
    keys_.wait_find_or_insert(stream, keys, slots);
    keys_.wait_erase(stream, slots);
  }

 private:
  // The keys' slots; new ones have the initial values.
  Array<std::uint32_t> wait_slots(Stream& stream, View<Key const> keys);
  // Decodes rows and changes the copies in these slots.
  void wait_change(Stream& stream, View<std::uint8_t const> codes, View<std::uint32_t const> slots);
  void wait_evict_oldest(Stream& stream, Clock step);

  TableShard const& shard_;
  AdaptiveThreshold threshold_;          // the owner's
  Clock sent_step_{}, loaded_step_{-1};  // likewise: the last one that rows were sent for, and before it was loaded
  KeyAgeIndex keys_;
  kernels::RowStorage<float> mirror_;
};

}  // namespace gpups::cache
