// SPDX-License-Identifier: Apache-2.0
// What a rank holds back of its gradients for the rows of one table that one other rank owns: what a codec has rounded
// off, and what a filter lets wait. Sums are integers, so what has been sent and what is held back are together the sum
// of all gradients, exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/adaptive_threshold.hpp"
#include "cache/gradient_section.hpp"
#include "cache/key_age_index.hpp"
#include "cache/residual_file.hpp"
#include "gpups/types.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::cache {

class ResidualTable {
 public:
  ResidualTable(Device device, TableOptions const& table);

  // A section of a message: so many rows of a part, see GradientSection.
  struct Compressed {
    std::size_t sent = 0;
    std::shared_ptr<kernels::PackedBytes> bytes;
  };
  // What is to be sent of a step's sums for these distinct keys, sums.row(order[i]) being that of keys[i], and of what
  // is held back of them; the rest is held back now. REQUIRES: `sums` and `order` stay as they are until the step's
  // end. Waits for `stream`. Throws Error, naming the key, where a sum is too large.
  Compressed wait_compress(Stream& stream, Clock step, View<Key const> keys, MatrixView<std::int64_t const> sums,
                           View<std::uint32_t const> order);

  // Rows that a step sends although no batch of it need name them, see RowCoder.
  struct FlushedRows {
    bool exact = false;
    std::vector<Key> keys;  // ascending
    std::shared_ptr<kernels::PackedBytes> bytes;
  };
  // Those that have waited as long as they may, and, exactly, the longest unused of more rows than are remembered, or
  // all where `all` says so. After the step's parts. Waits for `stream`.
  std::vector<FlushedRows> wait_take_flushed(Stream& stream, Clock step, bool all);

  // A step is over. rejected: everything is to be as it was before. Waits for `stream`.
  void wait_end_step(Stream& stream, bool rejected);

  // Nothing is held back of these rows any more. Between steps. Waits for `stream`.
  void wait_drop(Stream& stream, View<Key const> keys);
  // Between steps, for a checkpoint: everything but the table and the owner. Waits for `stream`.
  ResidualChunk wait_save(Stream& stream) const;
  // REQUIRES: nothing is held back yet.
  void wait_load(Stream& stream, ResidualChunk const& chunk);

  // Of so many rows that are remembered.
  static std::size_t bytes_for(TableOptions const& table, std::size_t rows);
  // Rows that are remembered.
  std::size_t rows() const { return keys_.size(); }

 private:
  // How to make rows what they were before a step. Those of a part that have sent something get back what they held
  // then, and all of them give back what the step had added to that; rows that were sent late get back what they held.
  struct UndoRecord {
    Array<Key> keys;
    Array<std::uint32_t> marks;      // (n, kResidualMarks)
    Matrix<std::int64_t> held = {};  // (sent, dim), or of late rows (n, dim)
    // Of a part, or empty:
    Array<std::uint32_t> sent = {};  // numbers of keys
    MatrixView<std::int64_t const> added = {};
    View<std::uint32_t const> order = {};  // (n), of `added`
  };
  // The keys' slots, with room for what is held back of them.
  Array<std::uint32_t> wait_slots(Stream& stream, View<Key const> keys);
  Array<std::uint32_t> marks_of(Stream& stream, View<std::uint32_t const> slots) const;
  // Begins to remember what rows were.
  UndoRecord& remember(Stream& stream, View<std::uint32_t const> slots, View<Key const> keys);
  FlushedRows wait_send(Stream& stream, View<std::uint32_t const> unordered, bool exact);
  void wait_flush_nonzero(Stream& stream, View<std::uint32_t const> slots, bool exact,
                          std::vector<FlushedRows>& flushed);
  void wait_evict(Stream& stream, View<std::uint32_t const> slots, std::vector<FlushedRows>& flushed);
  void wait_flush_aged(Stream& stream, View<std::uint32_t const> slots, std::vector<FlushedRows>& flushed);
  void wait_undo(Stream& stream, UndoRecord const& before);
  void throw_if_bad_row(Stream& stream, View<std::uint32_t const> bad_row, View<Key const> keys) const;

  // Whole columns that are never among the largest would wait forever: what has waited for its age goes exactly.
  bool flushes_unsent_columns() const {
    return table_.gradient_compression.top_k > 0 && table_.gradient_compression.filter.age_max > 0;
  }

  TableOptions table_;
  GradientSection section_;
  AdaptiveThreshold threshold_;
  KeyAgeIndex keys_;
  kernels::RowStorage<std::int64_t> held_;
  // Of the step that is under way.
  std::vector<UndoRecord> before_;
  std::size_t rows_named_ = 0, rows_sent_ = 0;
  std::vector<float> largest_;  // while there is no bound yet
};

}  // namespace gpups::cache
