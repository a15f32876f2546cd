// SPDX-License-Identifier: Apache-2.0
// The shard of a table: the rows that this rank owns, and replicas of rows that other ranks own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/wire/received_sums.hpp"
#include "gpups/array.hpp"
#include "gpups/stats.hpp"
#include "gpups/table.hpp"
#include "gpups/types.hpp"
#include "kernels/index/key_index.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/rows/init_rows.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/rows/selected_rows.hpp"
#include "kernels/runtime/host_reads.hpp"
#include "kernels/sum/sum_gradients.hpp"
#include "kernels/update/update_rows.hpp"

namespace gpups::cache {

// Summed gradients of distinct rows of a shard. The sums are in `sums`, or packed in `received`. The number of
// occurrences of row ids[i] is offsets[i + 1] - offsets[i], or counts[i]; it is needed only for tables with admission.
struct RowSums {
  View<std::uint32_t const> ids;           // (n), row numbers
  MatrixView<std::int64_t> sums;           // (n, dim); with `marked`: (number of marked rows, dim)
  ReceivedSums const* received = nullptr;  // (n, dim)
  View<std::uint32_t const> offsets{};     // (n + 1)
  View<std::int64_t const> counts{};       // (n)
  // Bitmap, (kernels::bitmap_words(n)): which rows have sums; the sums of the others are 0. Empty: all rows have sums.
  View<std::uint32_t const> marked{};
  View<std::uint32_t const> positions{};  // (n) or empty: the sums of row i are sums[positions[i]]
};

// An index from keys to row numbers, and columns with values, optimizer state and lifecycle of each row.
//
// A row is reserved when its key is first announced. It exists from the step that first updates it, which is the step
// of its admission_count-th occurrence, or from an assign. Sizes, hashes and scans do not include rows that are only
// reserved.
//
// A replica is a copy of a row that another rank owns, for steps of this rank. It has a row number and a value like an
// owned row, so that batches read both in the same way; it is not part of sizes, hashes and scans either. Replicas keep
// their row numbers between steps while the budget of the table lasts.
//
// Threads: for the thread that makes progress. gather() may be called by another thread for rows that do not change
// meanwhile. Functions with `wait` in their names block until `stream` is done.
class TableShard {
 public:
  // seed: of the store. expected_rows: on this rank. replica_fraction: see StoreOptions. Allocates no memory.
  TableShard(TableOptions const& options, std::uint64_t seed, std::size_t expected_rows, double replica_fraction = 0);

  // Allocates the index for the expected rows. Call it once, before the functions below.
  void allocate(Device device);

  TableOptions const& options() const { return options_; }
  std::size_t dim() const { return options_.dim; }
  // Returns true if owners need the number of occurrences of each row, for admission.
  bool counts_occurrences() const { return options_.admission_count > 1; }

  // Returns true if readers receive changes against mirrors instead of whole values.
  bool sends_deltas() const { return options_.refresh_compression.enabled(); }

  // Writes the row number of keys[i] to ids[i], and reserves rows with initial values for new keys. Keys may repeat.
  // Throws Error if there is no memory for new rows.
  void wait_resolve(Stream& stream, View<Key const> keys, View<std::uint32_t> ids);
  // The same for several lists of keys, with the result of separate calls in this order. Lists may be of the same
  // table. Cost on a GPU: one launch and one wait; additional ones only for tables with new keys.
  struct ShardKeys {
    TableShard* shard;
    View<Key const> keys;     // (n)
    View<std::uint32_t> ids;  // (n)
    bool distinct = false;    // no key is there twice
  };
  static void wait_resolve(Stream& stream, std::span<ShardKeys const> parts);
  // The same in two halves, so that its wait can be any later one: find_missing() is queued on `stream`, and the host
  // gets `missing` with `reads`. In between, the row numbers are undefined, and `rows` must stay where it is. REQUIRES
  // of wait_add_missing(): the reads are done, and no row of the tables was added or removed since find_missing().
  struct SoughtRows {
    std::vector<ShardKeys> parts{};
    Array<std::uint32_t> missing_there{};
    std::vector<std::uint32_t> missing{};  // of each part, the number of keys without rows
  };
  static void find_missing(Stream& stream, SoughtRows& rows, kernels::HostReads& reads);
  static void wait_add_missing(Stream& stream, SoughtRows const& rows);
  // The same for lists in which a key should not repeat. Each table has one part, with its lists one after another:
  // list k ends before keys[ends[k]]. repeated: for each list, set to a row that it has twice, or to kNoRow; queued on
  // `stream`. also: other results that the host reads, with the same wait.
  struct ShardLists : ShardKeys {
    std::vector<std::size_t> ends;
  };
  static void wait_resolve_lists(Stream& stream, std::span<ShardLists const> parts, View<std::uint32_t> repeated,
                                 kernels::HostReads& also);
  // Returns a key that a list has twice; nullopt if there is none. repeated: the contents of the array.
  struct RepeatedKey {
    std::size_t part, list;
    Key key;
  };
  static std::optional<RepeatedKey> wait_repeated_key(Stream& stream, std::span<ShardLists const> parts,
                                                      std::vector<std::uint32_t> const& repeated);

  // Copies the value of row ids[i] to out.row(i), as floats; undefined for kNoRow. Queued on `stream`.
  void gather(Stream& stream, View<std::uint32_t const> ids, MatrixView<float> out) const;

  // The same for several tables, in one launch for each data type.
  struct ShardRows {
    TableShard const* shard;
    View<std::uint32_t const> ids;
    MatrixView<float> out;
  };
  static void gather(Stream& stream, std::span<ShardRows const> parts);

  // Returns the `rows` rows that begin at `bytes`, in the table's data type.
  kernels::NumberView numbers_at(View<std::uint8_t const> bytes, std::size_t rows) const {
    auto* const data = reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(bytes.data()));
    return {data, rows, options_.dim, options_.value_type, bytes.device()};
  }
  // Returns arguments that copy row ids[i] to row i of `out` in the table's data type, without padding.
  kernels::GatherNumbers gather_numbers(View<std::uint32_t const> ids, kernels::NumberView out) const {
    return {.rows = values_.const_ref(), .ids = ids, .out = out};
  }

  // Returns the values of all rows, for kernels that read rows by number. The rules of gather() apply.
  kernels::TypedRows values() const { return values_.const_ref(); }

  // -- replicas --

  // Writes the row numbers of rows that other ranks own to `ids`, and marks them as used by step `clock`. Replicas that
  // are new have undefined values. tables: one list for each table, which may have keys several times. also: as for
  // wait_resolve_lists().
  static void wait_place_replicas(Stream& stream, std::span<ShardKeys const> tables, Clock clock,
                                  kernels::HostReads& also);
  // Return arguments that set replicas to received numbers, (n, dim), or to initial values.
  kernels::ScatterNumbers scatter_numbers(kernels::NumberView from, View<std::uint32_t const> ids) {
    return {.from = from, .ids = ids, .rows = values_.ref()};
  }
  kernels::InitRows init_values(View<std::uint32_t const> ids);
  // Sets the values of replicas to floats, (n, dim), which are rounded to the table's data type. Queued on `stream`.
  void set_replicas(Stream& stream, View<std::uint32_t const> ids, MatrixView<float const> values);

  // Drops replicas that no announced step uses, in tables that have more of them than their budget: first those whose
  // last use is the longest ago. step: the last complete step.
  static void wait_limit_replicas(Stream& stream, std::span<std::unique_ptr<TableShard> const> tables, Clock step);
  // Drops all replicas that are not pinned until a step after `step`. REQUIRES: no batch uses them.
  void wait_drop_replicas(Stream& stream, Clock step);
  // Returns the most replicas that are kept for later steps.
  std::size_t replica_budget() const;
  // Returns the most of these that may be pinned, if a step uses up to `step_rows` rows of other ranks. Depends on
  // options alone.
  std::size_t pin_budget(std::size_t step_rows = 0) const;

  // Keeps replicas until step `clock`, whatever the budget. Rows among them that this rank owns do not change. Queued
  // on `stream`.
  struct Pin {
    TableShard* shard;
    View<std::uint32_t const> ids;  // (n), or kNoRow
  };
  static void pin_replicas(Stream& stream, std::span<Pin const> pins, Clock clock);
  // Copies the words of rows and replicas (kernels/rows/replicas.hpp) to `words`. Queued on `stream`.
  struct UsesOfRows {
    TableShard* shard;
    View<std::uint32_t const> ids;  // (n)
    View<std::uint32_t> words;      // (n)
  };
  static void read_uses(Stream& stream, std::span<UsesOfRows const> lists);
  // Writes the row numbers of keys that have rows or replicas to `ids`. Queued on `stream`.
  static void find(Stream& stream, std::span<ShardKeys const> parts);

  // Sets the bits of the owned rows that exist. The others have initial values.
  kernels::MarkExisting mark_existing(View<std::uint32_t const> ids, View<std::uint32_t> bitmap) const {
    return {.lifecycle = lifecycle_.const_ref(), .ids = ids, .bitmap = bitmap};
  }

  // -- rows that move between ranks, while training --

  // Columns of rows that move, in contiguous memory.
  struct MovedColumns {
    kernels::NumberView values;     // (n, dim)
    View<float> state;              // (n, state_columns())
    View<std::uint32_t> lifecycle;  // (n, kLifecycleWords)
  };
  // Sets the bits of the owned rows that exist or wait for admission: of the others nothing moves.
  kernels::MarkExisting mark_moved(View<std::uint32_t const> ids, View<std::uint32_t> bitmap) const {
    return {.lifecycle = lifecycle_.const_ref(), .ids = ids, .bitmap = bitmap, .or_wait = true};
  }
  // Rows of one table, and their columns. All functions below queue their work on `stream`, for many lists at once.
  // ids: (n), distinct.
  struct ShardIds {
    TableShard* shard;
    View<std::uint32_t const> ids;
    MovedColumns columns{};
  };
  // Copies the columns of rows.
  static void read_columns(Stream& stream, std::span<ShardIds const> lists);
  // Makes owned rows replicas whose last use is in step `clock`.
  static void make_replicas(Stream& stream, std::span<ShardIds const> lists, Clock clock);
  // Makes replicas owned rows, whose columns follow.
  static void make_owned(Stream& stream, std::span<ShardIds const> lists);
  // Sets values and states of owned rows that do not exist to initial ones.
  static void reset_columns(Stream& stream, std::span<ShardIds const> lists);
  // Sets the columns of owned rows.
  static void write_columns(Stream& stream, std::span<ShardIds const> lists);

  // -- rows that move between ranks, between steps --

  // Copies rows and drops them from this shard. found: (n), 1 for rows that exist or wait for admission. values: (n,
  // dim), undefined for other rows. words: first the optimizer state of all rows, (n, state_columns()), then their
  // lifecycles, (n, kLifecycleWords). REQUIRES: no batch uses the rows.
  void wait_take(Stream& stream, View<Key const> keys, MatrixView<float> values, View<std::uint8_t> found,
                 View<std::uint32_t> words);
  // Adds those of the rows that were found. REQUIRES: they have no rows here.
  void wait_put(Stream& stream, View<Key const> keys, MatrixView<float const> values, View<std::uint8_t const> found,
                View<std::uint32_t const> words);

  // Applies a step to several tables: sums the gradients of each row over all lists, and updates each row once, if its
  // occurrences have reached admission_count. samples: of the step over all ranks; the sums are divided by it. Queued
  // on `stream`. Returns an element for each table, for check_applied().
  struct TableStep {
    TableShard* shard;
    std::vector<RowSums> lists;  // empty lists are removed
    std::size_t samples;
  };
  static Array<std::uint32_t> apply(Stream& stream, std::span<TableStep> tables, Clock clock);
  // Throws Error with the key if a sum has overflowed 64 bits or a new value is not finite. bad_rows: the contents of
  // the result of apply().
  static void check_applied(Stream& stream, std::span<TableStep const> tables,
                            std::vector<std::uint32_t> const& bad_rows);

  // The same in one pass for a group of one rank: sums the gradients of row r of `gradients` and updates row ids[r].
  // Queued on `stream`. bad_row: (1), must be kNoRow; set to the number of a row whose new value is not finite, for
  // throw_bad_row(). REQUIRES: kernels::can_sum_and_update(), and no sum can overflow.
  void sum_and_apply(Stream& stream, View<std::uint32_t const> ids, kernels::SumGradients const& gradients, Clock clock,
                     std::size_t samples, View<std::uint32_t> bad_row);
  // Throws the Error of check_applied() for row `id`.
  [[noreturn]] void throw_bad_row(Stream& stream, std::uint32_t id) const;

  // Writes the values of keys to `out`, (keys, dim): initial values for keys whose row does not exist. found: (keys) or
  // empty; set to 1 for rows that exist, else to 0.
  void wait_lookup(Stream& stream, View<Key const> keys, MatrixView<float> out, View<std::uint8_t> found) const;

  // Writes the initial values of keys to `out`, (keys, dim), rounded to the table's data type. Queued on `stream`.
  void initial_values(Stream& stream, View<Key const> keys, MatrixView<float> out) const;

  // Sets the values of rows, and their last update to step `clock`. Creates missing rows with initial optimizer state;
  // the state of other rows stays, except FTRL's z, which follows from the value.
  // 16-bit types round to the nearest.
  void wait_assign(Stream& stream, View<Key const> keys, MatrixView<float const> values, Clock clock);

  // Marks the rows of these keys as erased. wait_reclaim() must follow.
  void wait_mark_erased(Stream& stream, View<Key const> keys);
  // Marks the rows as erased whose last update, or last occurrence before admission, is more than `age` steps before
  // `now`. Returns how many of them existed.
  std::size_t wait_expire(Stream& stream, Clock now, std::uint32_t age);
  // Returns the keys of erased rows, of replicas and of rows that are only reserved.
  std::vector<Key> wait_unused_keys(Stream& stream) const;
  // Removes the keys of erased rows, of replicas and of rows that are only reserved from the index. Their row numbers
  // are reused for new keys. REQUIRES: no announced batch has row numbers.
  void wait_reclaim(Stream& stream);

  // Returns a hash of the existing rows, which does not depend on their order, and their number.
  struct Digest {
    std::uint64_t hash, rows;
  };
  Digest wait_digest(Stream& stream) const;

  // Returns the number of row numbers in use; all row numbers are below it.
  std::size_t rows_reserved() const { return index_.ids_end(); }
  // Returns the number of rows that this rank owns, of those that are reserved.
  std::size_t rows_owned() const { return index_.size() - replicas_; }
  std::size_t growths() const { return index_.growths(); }

  // Rows as dense arrays, for a scan, a checkpoint or an export.
  struct RowChunk {
    Array<Key> keys;  // (n)
    // (n, dim), as floats for every data type; empty for rows that wait for admission, which have initial values.
    Matrix<float> values;
    Array<float> state;              // (n, state_columns()); empty for rows that wait for admission
    Array<std::uint32_t> lifecycle;  // (n, kLifecycleWords)
    std::size_t rows() const { return keys.size(); }
  };
  // Returns the numbers of the rows of a kind in [first, last), ascending.
  Array<std::uint32_t> wait_select(Stream& stream, std::uint32_t first, std::uint32_t last,
                                   kernels::RowStatus kind) const;
  enum class Columns { kKeysAndValues, kKeysAndLifecycle, kAll };
  // Returns the keys of rows.
  Array<Key> wait_keys_of(Stream& stream, View<std::uint32_t const> ids) const;
  // Copies columns of rows.
  RowChunk wait_read(Stream& stream, View<std::uint32_t const> ids, Columns columns) const;
  // Adds the rows of a chunk. REQUIRES: the keys have no rows yet.
  void wait_write(Stream& stream, RowChunk const& chunk);

  std::size_t state_columns() const { return state_columns_; }

 private:
  // A list of keys of which `count` entries have no row; their ids are kNoRow.
  struct MissingKeys {
    ShardKeys of;
    std::size_t count;
  };
  static std::vector<kernels::KeyIndex::Search> searches_of(std::span<ShardKeys const> parts);
  static void queue_repeated(Stream& stream, std::span<ShardLists const> parts, View<std::uint32_t> repeated);
  static void wait_drop_replicas(Stream& stream, std::span<TableShard* const> tables,
                                 std::span<std::uint32_t const> ages, std::span<std::size_t const> counts, Clock step);
  static std::vector<std::uint32_t> wait_replica_ages(Stream& stream, std::span<TableShard* const> tables, Clock step);
  // Reserves rows for the missing keys, and returns their numbers for each shard. The caller writes all columns: new
  // rows have undefined values and states. tables: one list for each shard.
  static std::vector<Array<std::uint32_t>> wait_insert(Stream& stream, std::span<MissingKeys const> tables);
  // The same with initial values and states.
  static void wait_reserve(Stream& stream, std::span<MissingKeys const> tables);
  // Returns arguments that set rows to initial values and states.
  kernels::InitRows init_new_rows(View<std::uint32_t const> ids);
  // Makes room for all row numbers of the index.
  void wait_make_room(Stream& stream);
  // Queued on `stream`.
  Array<Key> keys_of(Stream& stream, View<std::uint32_t const> ids) const;
  kernels::CountOccurrences occurrences_of(RowSums const& rows, Clock clock) const;
  void forget_linear_terms(Stream& stream, View<std::uint32_t const> ids);
  // Returns an epoch that no mark has.
  std::uint32_t next_epoch(Stream& stream);
  // Returns the arguments of an optimizer step, without the sums.
  kernels::UpdateRows update(View<std::uint32_t const> ids, Clock clock, std::size_t samples,
                             View<std::uint32_t> bad_row) const;

  TableOptions options_;
  std::uint64_t seed_;
  std::size_t expected_rows_;
  std::size_t state_columns_;
  kernels::KeyIndex index_;
  kernels::ValueStorage values_;
  kernels::RowStorage<float> state_;
  kernels::RowStorage<std::uint32_t> lifecycle_;  // see kernels/rows/row_lifecycle.hpp
  kernels::RowStorage<std::uint32_t> uses_;       // see kernels/rows/replicas.hpp
  kernels::RowStorage<std::uint64_t> mark_;       // position of a row in a merged list, or presence in a list
  std::uint32_t epoch_ = 0;                       // the epoch of current marks
  double replica_fraction_;
  std::size_t replicas_ = 0, step_replicas_ = 0;  // now, and the most that a step has used
};

// The shards of all tables, by TableId.
using TableShards = std::vector<std::unique_ptr<TableShard>>;

}  // namespace gpups::cache
