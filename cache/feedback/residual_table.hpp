// SPDX-License-Identifier: Apache-2.0
// The residuals of a rank's gradients for the rows of one table that other ranks own: rounding errors of the codec,
// columns that top_k left out, and rows that the filter delays. Source: error feedback (Seide et al., Interspeech 2014;
// Karimireddy et al., ICML 2019).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cache/feedback/adaptive_threshold.hpp"
#include "cache/feedback/key_age_index.hpp"
#include "cache/feedback/residual_file.hpp"
#include "cache/wire/gradient_section.hpp"
#include "gpups/types.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::cache {

// Adds residuals to the gradients of a step, selects and encodes the rows to send, and keeps the rest. Sums are
// integers, so the sent sums and the residuals add up exactly to the sum of all gradients. For the thread that makes
// progress. Functions with `wait` in their names block until `stream` is done.
//
//   auto const section = residuals.wait_compress(stream, step, keys, sums, order);  // for each part of the batch
//   auto const flushed = residuals.wait_take_flushed(stream, step, false, ranks_for);  // after all parts
//   residuals.wait_end_step(stream, rejected);
class ResidualTable {
 public:
  // table: the options of a table with gradient compression.
  ResidualTable(Device device, TableOptions const& table);

  // An encoded GradientSection, and the number of its rows.
  struct Compressed {
    std::size_t sent = 0;
    std::shared_ptr<kernels::PackedBytes> bytes;
  };
  // Adds a step's sums to the residuals, encodes the rows to send, and keeps the remainders as residuals. keys: (n),
  // distinct; row order[i] of `sums` belongs to keys[i]. `sums` and `order` must not change until wait_end_step().
  // Throws Error if a residual exceeds 2^62 units.
  Compressed wait_compress(Stream& stream, Clock step, View<Key const> keys, MatrixView<std::int64_t const> sums,
                           View<std::uint32_t const> order);

  // Flushed rows for one rank, encoded by RowCoder. exact: whole sums, not in the table's codec.
  struct FlushedRows {
    Rank to{};
    bool exact = false;
    std::vector<Key> keys;  // ascending
    std::shared_ptr<kernels::PackedBytes> bytes;
  };
  // Returns the ranks to which the rows of these keys are sent.
  using RanksFor = std::function<std::vector<Rank>(std::vector<Key> const&)>;
  // Returns the rows that must be sent in this step in addition to those of its batch: rows that reached the filter's
  // age; and, exactly, the least recently used rows beyond capacity_rows, those of send_early(), or all rows if `all`
  // is true. Call it after wait_compress() of all parts.
  std::vector<FlushedRows> wait_take_flushed(Stream& stream, Clock step, bool all, RanksFor const& ranks_for);
  // Makes the next step that is not rejected send the residuals of these rows exactly.
  void send_early(std::span<Key const> keys) { early_.insert(early_.end(), keys.begin(), keys.end()); }

  // Takes the residuals of the rows of these keys out of the table: those that are not 0. keys: distinct. Call it
  // between steps.
  struct TakenRows {
    Array<Key> keys;
    Matrix<std::int64_t> sums;
  };
  TakenRows wait_take(Stream& stream, View<Key const> keys);

  // Ends a step. rejected: restores the residuals of before the step.
  void wait_end_step(Stream& stream, bool rejected);

  // Drops the residuals of these keys. Call it between steps.
  void wait_drop(Stream& stream, View<Key const> keys);
  // Returns the keys of all residuals. Call it between steps.
  std::vector<Key> wait_keys(Stream& stream) const;
  // Returns all residuals for a checkpoint: those of send_early(), if there are some, are a chunk of their own, after
  // the others. The caller sets `table`. Call it between steps.
  std::vector<ResidualChunk> wait_save(Stream& stream) const;
  // Loads residuals of a checkpoint. REQUIRES: these rows have none yet. The threshold is that of the first chunk.
  void wait_load(Stream& stream, ResidualChunk const& chunk);

  // Returns the bytes of memory for residuals of `rows` rows.
  static std::size_t bytes_for(TableOptions const& table, std::size_t rows);
  // Returns the number of rows that have a slot.
  std::size_t rows() const { return keys_.size(); }

 private:
  // What is needed to restore rows if the step is rejected. For a part: sent rows get back their residuals of before
  // they were encoded, and the step's sums are subtracted from all rows. For flushed rows: their residuals are
  // restored.
  struct UndoRecord {
    Array<Key> keys;
    Array<std::uint32_t> marks;           // (n, kResidualMarks)
    Matrix<std::int64_t> residuals = {};  // of a part: (sent, dim); of flushed rows: (n, dim)
    // For a part only:
    Array<std::uint32_t> sent = {};  // (sent), indices of keys
    MatrixView<std::int64_t const> added = {};
    View<std::uint32_t const> order = {};  // (n), rows of `added`
  };
  // Returns the slots of keys; new keys get a slot with a residual of 0.
  Array<std::uint32_t> list_slots(Stream& stream, View<Key const> keys);
  Array<std::uint32_t> marks_of(Stream& stream, View<std::uint32_t const> slots) const;
  // Adds a record with the keys and the current marks.
  UndoRecord& remember(Stream& stream, View<std::uint32_t const> slots, View<Key const> keys);
  // The rows that a step flushes.
  struct Flush {
    RanksFor const& ranks_for;
    std::vector<FlushedRows> rows{};
  };
  void wait_encode(Stream& stream, View<std::uint32_t const> unordered, bool exact, Flush& flush);
  void wait_flush_nonzero(Stream& stream, View<std::uint32_t const> slots, bool exact, Flush& flush);
  void wait_evict(Stream& stream, View<std::uint32_t const> slots, Flush& flush);
  void wait_flush_aged(Stream& stream, View<std::uint32_t const> slots, Flush& flush);
  void wait_forget(Stream& stream, View<std::uint32_t const> slots);
  ResidualChunk wait_save(Stream& stream, View<std::uint32_t const> slots) const;
  // Returns the distinct slots of those keys that have one.
  Array<std::uint32_t> wait_known(Stream& stream, View<Key const> keys) const;
  // Returns the slots whose residual is not 0. residuals: of `slots`.
  Array<std::uint32_t> wait_nonzero(Stream& stream, View<std::uint32_t const> slots,
                                    MatrixView<std::int64_t const> residuals) const;
  void wait_undo(Stream& stream, UndoRecord const& before);
  void throw_if_bad_row(Stream& stream, View<std::uint32_t const> bad_row, View<Key const> keys) const;

  // Returns true if rows are flushed exactly at the filter's age, because columns that are never among the top k would
  // otherwise stay in the residual forever.
  bool flushes_unsent_columns() const {
    return table_.gradient_compression.top_k > 0 && table_.gradient_compression.filter.age_max > 0;
  }

  TableOptions table_;
  GradientSection section_;
  AdaptiveThreshold threshold_;
  KeyAgeIndex keys_;
  kernels::RowStorage<std::int64_t> residuals_;
  std::vector<Key> early_;
  // For the current step.
  std::vector<UndoRecord> before_;
  std::size_t rows_named_ = 0, rows_sent_ = 0;
  std::vector<float> largest_;  // while there is no threshold yet
};

}  // namespace gpups::cache
