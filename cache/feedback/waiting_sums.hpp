// SPDX-License-Identifier: Apache-2.0
// Under bounded staleness: the gradients of rows that other ranks own, until a batch sends them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/feedback/key_age_index.hpp"
#include "cache/feedback/residual_file.hpp"
#include "gpups/table.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::cache {

// Sums of gradients of one table by key. Sums are integers, so nothing is lost or rounded. For the thread that makes
// progress. Functions with `wait` in their names block until `stream` is done.
class WaitingSums {
 public:
  WaitingSums(Device device, TableOptions const& table);

  // Adds row positions[i] of `sums` to the sum of keys[i]. keys: (n), distinct. Throws Error if a sum exceeds 2^62
  // units.
  void wait_add(Stream& stream, Clock step, View<Key const> keys, MatrixView<std::int64_t const> sums,
                View<std::uint32_t const> positions);
  // Adds the sums of these keys to the rows of `into`, (n, dim), and keeps them. Returns the keys that have sums. keys:
  // (n), distinct. bad_row: as for kernels::merge_sums().
  std::vector<Key> wait_read(Stream& stream, View<Key const> keys, MatrixView<std::int64_t> into,
                             View<std::uint32_t> bad_row) const;
  // Drops the sums of these keys. Keys without sums are ignored.
  void wait_drop(Stream& stream, View<Key const> keys);
  // Returns the keys of all sums.
  std::vector<Key> wait_keys(Stream& stream) const;
  // Returns all sums, for a checkpoint; the caller sets `table` and `peer`.
  ResidualChunk wait_save(Stream& stream) const;

  // Returns the bytes of memory for the sums of `rows` rows.
  static std::size_t bytes_for(TableOptions const& table, std::size_t rows);

 private:
  // Those of the keys that have slots: their places in the list, and the slots.
  struct Slots {
    std::vector<std::uint32_t> places;
    Array<std::uint32_t> slots;
  };
  Slots wait_find(Stream& stream, View<Key const> keys) const;
  Matrix<std::int64_t> read(Stream& stream, View<std::uint32_t const> slots) const;

  TableOptions table_;
  KeyAgeIndex keys_;
  kernels::RowStorage<std::int64_t> sums_;
};

}  // namespace gpups::cache
