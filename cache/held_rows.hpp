// SPDX-License-Identifier: Apache-2.0
// What a rank holds back of its gradients for the rows of one table that one other rank owns: what a codec has rounded
// off, and what a filter lets wait. Sums are integers, so what has been sent and what is held back are together the sum
// of all gradients, exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/gradient_section.hpp"
#include "cache/held_file.hpp"
#include "cache/marked_keys.hpp"
#include "cache/send_bound.hpp"
#include "gpups/types.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::cache {

class HeldRows {
 public:
  HeldRows(Device device, TableOptions const& table);

  // A section of a message: so many rows of a part, see GradientSection.
  struct Part {
    std::size_t sent = 0;
    std::shared_ptr<kernels::NarrowBytes> bytes;
  };
  // What is to be sent of a step's sums for these distinct keys, sums.row(order[i]) being that of keys[i], and of what
  // is held back of them; the rest is held back now. REQUIRES: `sums` and `order` stay as they are until the step's
  // end. Waits for `stream`. Throws Error, naming the key, where a sum is too large.
  Part wait_take(Stream& stream, Clock step, View<Key const> keys, MatrixView<std::int64_t const> sums,
                 View<std::uint32_t const> order);

  // Rows that a step sends although no batch of it need name them, see RowCoder.
  struct Late {
    bool exact = false;
    std::vector<Key> keys;  // ascending
    std::shared_ptr<kernels::NarrowBytes> bytes;
  };
  // Those that have waited as long as they may, and, exactly, the longest unused of more rows than are remembered, or
  // all where `all` says so. After the step's parts. Waits for `stream`.
  std::vector<Late> wait_take_late(Stream& stream, Clock step, bool all);

  // A step is over. refused: everything is to be as it was before. Waits for `stream`.
  void wait_end_step(Stream& stream, bool refused);

  // Nothing is held back of these rows any more. Between steps. Waits for `stream`.
  void wait_drop(Stream& stream, View<Key const> keys);
  // Between steps, for a checkpoint: everything but the table and the owner. Waits for `stream`.
  HeldPiece wait_save(Stream& stream) const;
  // REQUIRES: nothing is held back yet.
  void wait_load(Stream& stream, HeldPiece const& piece);

  // Of so many rows that are remembered.
  static std::size_t bytes_for(TableOptions const& table, std::size_t rows);
  // Rows that are remembered.
  std::size_t rows() const { return keys_.size(); }

 private:
  // How to make rows what they were before a step. Those of a part that have sent something get back what they held
  // then, and all of them give back what the step had added to that; rows that were sent late get back what they held.
  struct Before {
    Array<Key> keys;
    Array<std::uint32_t> marks;      // (n, kHeldMarks)
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
  Before& remember(Stream& stream, View<std::uint32_t const> slots, View<Key const> keys);
  Late wait_send(Stream& stream, View<std::uint32_t const> unordered, bool exact);
  void wait_send_filled(Stream& stream, View<std::uint32_t const> slots, bool exact, std::vector<Late>& late);
  void wait_forget(Stream& stream, View<std::uint32_t const> slots, std::vector<Late>& late);
  void wait_send_aged(Stream& stream, View<std::uint32_t const> slots, std::vector<Late>& late);
  void wait_undo(Stream& stream, Before const& before);
  void throw_if_fault(Stream& stream, View<std::uint32_t const> fault, View<Key const> keys) const;

  // Whole columns that are never among the largest would wait forever: what has waited for its age goes exactly.
  bool sends_rest() const { return table_.gradients.top_k > 0 && table_.gradients.filter.age_max > 0; }

  TableOptions table_;
  GradientSection section_;
  SendBound bound_;
  MarkedKeys keys_;
  kernels::RowStorage<std::int64_t> held_;
  // Of the step that is under way.
  std::vector<Before> before_;
  std::size_t rows_named_ = 0, rows_sent_ = 0;
  std::vector<float> largest_;  // while there is no bound yet
};

}  // namespace gpups::cache
