// SPDX-License-Identifier: Apache-2.0
// Under bounded staleness: the gradients of rows that other ranks own, until a batch sends them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/feedback/residual_file.hpp"
#include "gpups/table.hpp"
#include "kernels/index/key_index.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/sum/waiting_sums.hpp"

namespace gpups::cache {

// Sums of gradients of one table by key, in slots. Sums are integers, so nothing is lost or rounded. For the thread
// that makes progress. Functions with `wait` in their names block until `stream` is done; the others queue work.
class WaitingSums {
 public:
  WaitingSums(Device device, TableOptions const& table);

  // Write the slots of keys, for many tables at once. `find`: or kNoRow. `wait_insert`: keys have no slots; waits if an
  // index grows, or if keys may repeat.
  struct SlotsOfKeys {
    WaitingSums* sums;
    View<Key const> keys;
    View<std::uint32_t> slots;
    bool distinct = true;
  };
  static void find(Stream& stream, std::span<SlotsOfKeys const> lists);
  static void wait_insert(Stream& stream, std::span<SlotsOfKeys const> lists);
  // Erases the keys of slots whose sums were cleared. REQUIRES: all slots have keys.
  struct ClearedSlots {
    WaitingSums* sums;
    View<std::uint32_t const> slots;  // (n), distinct
  };
  static void erase(Stream& stream, std::span<ClearedSlots const> lists);
  // Returns the sums by slot.
  kernels::WaitingRows rows() const { return {sums_.ref(), marks_.ref()}; }

  // Drops the sums of these keys. Keys without sums are ignored.
  void wait_drop(Stream& stream, View<Key const> keys);
  // Returns the keys of all sums.
  std::vector<Key> wait_keys(Stream& stream) const;
  // Returns all sums, for a checkpoint; the caller sets `table` and `kind`.
  ResidualChunk wait_save(Stream& stream) const;
  // Throws Error, because the sum of a key exceeds 2^62 units.
  [[noreturn]] void throw_too_large(Key key) const;

  // Returns the bytes of memory for the sums of `rows` rows.
  static std::size_t bytes_for(TableOptions const& table, std::size_t rows);

 private:
  static constexpr kernels::Growth kGrowth = kernels::Growth::kByMoving;

  TableOptions table_;
  kernels::KeyIndex index_;  // a key's number in it is its slot
  kernels::RowStorage<std::uint32_t> marks_;
  kernels::RowStorage<std::int64_t> sums_;
};

}  // namespace gpups::cache
