// SPDX-License-Identifier: Apache-2.0
// The rows of one table that this rank owns: the index from keys to row numbers, and the columns behind it.
//
// A row is reserved when a key is first announced and exists from the step of its n-th occurrence (or an assign), which
// is the first that updates it; until then it is in no count, hash or scan. Only the thread that turns the round calls
// anything here but gather(), which may run beside it for rows that stay as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/received_sums.hpp"
#include "gpups/array.hpp"
#include "gpups/stats.hpp"
#include "gpups/table.hpp"
#include "gpups/types.hpp"
#include "kernels/key_index.hpp"
#include "kernels/number_matrix.hpp"
#include "kernels/row_storage.hpp"
#include "kernels/select_rows.hpp"
#include "kernels/sum_gradients.hpp"
#include "kernels/update_rows.hpp"
#include "kernels/value_storage.hpp"

namespace gpups::cache {

// Summed gradients of distinct rows of a shard: element i is for row ids[i], and of offsets[i + 1] - offsets[i]
// entries, or counts[i]. Neither is used where rows are admitted at their first occurrence.
struct RowSums {
  View<std::uint32_t const> ids;           // (n)
  MatrixView<std::int64_t> sums;           // (n, dim), or fewer where some are marked, or
  ReceivedSums const* received = nullptr;  // what came from another rank
  View<std::uint32_t const> offsets{};     // (n + 1), or
  View<std::int64_t const> counts{};       // (n)
  // (kernels::bitmap_words(n)), or empty: of which ids these are the sums; the others' are 0.
  View<std::uint32_t const> marked{};
};

class TableShard {
 public:
  // seed: of the store; expected_rows: on this rank. Allocates nothing.
  TableShard(TableOptions const& options, std::uint64_t seed, std::size_t expected_rows);

  // Makes room for the expected rows in the index. Once, before anything below.
  void allocate(Device device);

  TableOptions const& options() const { return options_; }
  std::size_t dim() const { return options_.dim; }
  // Whether owners must hear how many entries name a row.
  bool counts_occurrences() const { return options_.admission_count > 1; }

  // Whether readers are sent changes of what they have, which makes floats of numbers of any type.
  bool sends_deltas() const { return options_.refresh_compression.enabled(); }

  // ids[i] becomes the row of keys[i], reserved with its initial value if it is new. A key may be named many times.
  // Waits for `stream`.
  void wait_resolve(Stream& stream, View<Key const> keys, View<std::uint32_t> ids);
  // The same for several lists of keys, as if one after the other; tables may repeat. They are searched together: on a
  // GPU with one launch for 32 of them and one wait; only tables that lack keys take more. Throws Error that names the
  // table whose rows find no room.
  struct ShardKeys {
    TableShard* shard;
    View<Key const> keys;     // (n)
    View<std::uint32_t> ids;  // (n)
  };
  static void wait_resolve(Stream& stream, std::span<ShardKeys const> parts);
  // A key that a list names twice, as the ids of its rows tell. Waits for `stream`, once.
  struct RepeatedKey {
    std::size_t part;
    Key key;
  };
  static std::optional<RepeatedKey> wait_find_repeated(Stream& stream, std::span<ShardKeys const> parts);

  // out.row(i) = value of row ids[i]; undefined where that is kNoRow. Queued on `stream`.
  void gather(Stream& stream, View<std::uint32_t const> ids, MatrixView<float> out) const;

  // Room for so many rows as they are kept, and sent.
  kernels::NumberMatrix numbers(Device device, std::size_t rows) const {
    return {device, rows, options_.dim, sends_deltas() ? DataType::kFloat : options_.value_type};
  }
  // out.row(i) = row ids[i] as it is kept, without padding; it exists. Queued on `stream`.
  void gather_numbers(Stream& stream, View<std::uint32_t const> ids, kernels::NumberView out) const;

  // The values of rows by number, for kernels that read them where they are; as long as gather() might.
  kernels::TypedRows values() const { return values_.const_ref(); }

  // Sums the lists' gradients of each row, and updates each row that is in any of them once, if it has been sighted
  // often enough with this step. Waits for `stream`. Throws Error, naming the row, where a sum leaves the range of 64
  // bits or a new value is not finite.
  void wait_apply(Stream& stream, std::span<RowSums const> lists, Clock clock, std::size_t samples);

  // Sums the gradients of row gradients' r into row ids[r] and updates it, in one pass; only where no other rank adds
  // to these rows. Queued on `stream`. fault: (1), kNoRow before; after it as UpdateRows has it, for throw_fault().
  // REQUIRES: kernels::can_sum_and_update(), and sums that cannot leave their range.
  void sum_and_apply(Stream& stream, View<std::uint32_t const> ids, kernels::SumGradients const& gradients, Clock clock,
                     std::size_t samples, View<std::uint32_t> bad_row);
  // Throws Error, naming the key of row `id`.
  [[noreturn]] void throw_bad_row(Stream& stream, std::uint32_t id) const;

  // Which of these keys have a row, one that is only reserved too; forgotten ones have none. Waits for `stream`.
  std::vector<bool> wait_known(Stream& stream, View<Key const> keys) const;

  // Values of keys wherever a row exists, initial values elsewhere; found[i] says which; `found` may be empty.
  void wait_lookup(Stream& stream, View<Key const> keys, MatrixView<float> out, View<std::uint8_t> found) const;

  // Initial values of keys, as numbers of the table's type are. Queued on `stream`.
  void initial_values(Stream& stream, View<Key const> keys, MatrixView<float> out) const;

  // Sets rows' values, as of step `clock`; rows that do not exist begin to, with initial optimizer state. Numbers of 16
  // bits become the nearest.
  void wait_assign(Stream& stream, View<Key const> keys, MatrixView<float const> values, Clock clock);

  // Rows of these keys are as if nobody had ever named them. Waits for `stream`.
  void wait_mark_erased(Stream& stream, View<Key const> keys);
  // The same for rows that were last updated, or sighted, more than `age` steps before `now`. Returns how many of them
  // existed. Waits for `stream`.
  std::size_t wait_expire(Stream& stream, Clock now, std::uint32_t age);
  // Takes the keys of rows that have ended, and of those that are only reserved, out of the index, and gives their
  // numbers to the next new keys. Waits for `stream`. REQUIRES: no batch that is announced names rows by number.
  void wait_reclaim(Stream& stream);

  // Order-free digest of the rows that exist, and their number. Waits for `stream`.
  struct Digest {
    std::uint64_t hash, rows;
  };
  Digest wait_digest(Stream& stream) const;

  // Row numbers below this may exist.
  std::size_t rows_reserved() const { return index_.ids_end(); }
  std::size_t growths() const { return index_.growths(); }

  // Some rows as dense arrays: a chunk of a scan, a checkpoint or an export.
  struct RowChunk {
    Array<Key> keys;  // (n)
    // (n, dim), as floats whatever their type; none for rows that wait for admission, which have their initial ones.
    Matrix<float> values;
    Array<float> state;              // (n, state_columns()), likewise
    Array<std::uint32_t> lifecycle;  // (n, kLifecycleWords)
    std::size_t rows() const { return keys.size(); }
  };
  // The numbers of the rows of a kind among [first, last), ascending. Waits for `stream`.
  Array<std::uint32_t> wait_select(Stream& stream, std::uint32_t first, std::uint32_t last,
                                   kernels::RowStatus kind) const;
  enum class Columns { kKeysAndValues, kKeysAndLifecycle, kAll };
  Array<Key> wait_keys_of(Stream& stream, View<std::uint32_t const> ids) const;
  // Waits for `stream`.
  RowChunk wait_read(Stream& stream, View<std::uint32_t const> ids, Columns columns) const;
  // Adds rows as a chunk of a checkpoint has them. REQUIRES: none of the keys has a row yet.
  void wait_write(Stream& stream, RowChunk const& chunk);

  std::size_t state_columns() const { return state_columns_; }

  // Bytes that a shard of `rows` rows takes, by what they are for.
  static std::vector<MemoryPlanLine> memory_plan(TableOptions const& options, std::size_t rows, int ranks);

 private:
  // Keys, so many of which have no row, as their ids say.
  struct MissingKeys {
    ShardKeys of;
    std::size_t count;
  };
  // Reserves their rows. tables: of distinct shards.
  static void wait_reserve(Stream& stream, std::span<MissingKeys const> tables);
  void wait_reserve(Stream& stream, MissingKeys const& missing);
  // Queued on `stream`.
  Array<Key> keys_of(Stream& stream, View<std::uint32_t const> ids) const;
  // Merges the lists into one, in `merged` and `merged_sums`, where there are several.
  RowSums wait_merge(Stream& stream, std::span<RowSums const> lists, Array<std::uint32_t>& merged,
                     Matrix<std::int64_t>& merged_sums);
  // Counts the entries of rows that wait for admission.
  void count_occurrences(Stream& stream, RowSums const& rows, Clock clock);
  // A number that no mark has.
  std::uint32_t next_epoch(Stream& stream);
  // The optimizer's step of a clock, without its gradients.
  kernels::UpdateRows update(View<std::uint32_t const> ids, Clock clock, std::size_t samples,
                             View<std::uint32_t> bad_row) const;

  TableOptions options_;
  std::uint64_t seed_;
  std::size_t expected_rows_;
  std::size_t state_columns_;
  kernels::KeyIndex index_;
  kernels::ValueStorage values_;
  kernels::RowStorage<float> state_;
  kernels::RowStorage<std::uint32_t> lifecycle_;  // see kernels/row_lifecycle.hpp
  kernels::RowStorage<std::uint64_t> mark_;       // where a row is in the merged list of a step; or that a list has it
  std::uint32_t epoch_ = 0;                       // of marks
};

using TableShards = std::vector<std::unique_ptr<TableShard>>;

}  // namespace gpups::cache
