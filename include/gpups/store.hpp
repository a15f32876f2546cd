// SPDX-License-Identifier: Apache-2.0
// The parameter server: embedding tables, sharded over the ranks of a group, trained in synchronous steps.
//
//   Store store(group, {.device = Device::cuda(0)});
//   TableId const users = store.add_table({.name = "users", .dim = 64});
//   Stream stream = store.make_stream();
//   PreparedBatch batch = store.prepare(stream, clock, tables, samples);  // some steps ahead, from any thread
//   store.wait_ready(batch);                    // the rows of the batch are on this rank
//   store.pull(stream, batch, rows);            // (distinct keys, dim) for each table
//   compute(batch, rows, gradients);            // yours: gradients of the summed loss
//   store.push(stream, batch, gradients);       // sums them exactly by key
//   store.advance_clock();                      // ends the step: owners sum over all ranks and update their rows
//
// gpups.hpp has a complete trainer.
//
// A read at clock c sees the updates of all ranks up to clock c - 1. Gradients are summed exactly, so the tables have
// the same bits for every number of ranks and threads, if each global batch is the same, compression is lossless and
// StoreOptions::staleness is 0.
//
// Threads: prepare(), synchronize() and stats() may be called by any thread at any time. All other functions may be
// called by one thread at a time, the training thread. Functions marked *collective* block until all ranks have called
// them, and all ranks must call them in the same order. An error in the background, for example a lost rank, is thrown
// by the next call.
//
// Errors of all functions: Error for invalid arguments, for calls in the wrong order, for a PreparedBatch, BatchPattern
// or LookupRequest that is empty or of another Store, and for every call of a moved-from Store. PeerError for a lost or
// failing rank; the Store can only be destroyed after that. GradientError for a rejected step, from the next call that
// waits for the step (wait_ready(), wait_applied(), and functions between steps); training can continue after that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/compiler.hpp"
#include "gpups/device.hpp"
#include "gpups/files.hpp"
#include "gpups/group.hpp"
#include "gpups/owner.hpp"
#include "gpups/placement.hpp"
#include "gpups/stats.hpp"
#include "gpups/store_options.hpp"
#include "gpups/stream.hpp"
#include "gpups/table.hpp"
#include "gpups/types.hpp"

namespace gpups {

// The part of a batch that uses one table, with one entry for each use of a row. The arrays are on the store's device,
// and may be freed when prepare() has returned.
//
//   TableBatch const words{.table = table, .keys = keys};                        // one row for each entry
//   TableBatch const bags{.table = table, .keys = keys, .offsets = bag_offsets};  // for pull_pooled()
struct TableBatch {
  TableId table{};
  View<Key const> keys{};  // (entries), with repetitions
  // (bags + 1), for pull_pooled(), else empty: bag b has the entries offsets[b] .. offsets[b + 1] - 1. The first offset
  // is 0, the last is the number of entries, and offsets never decrease.
  View<std::uint32_t const> offsets{};
};

// The sparsity pattern of a batch: its distinct keys, the key of each entry, and the number of samples, without a
// clock. It keeps its arrays alive, is valid for the Store of its batch only, and is cheap to copy. Any thread.
//
//   BatchPattern const pattern = batch.pattern();              // in the first epoch
//   PreparedBatch next = store.prepare(pattern, later_clock);  // in later epochs, without sorting the keys again
class BatchPattern {
 public:
  BatchPattern() = default;

  struct Impl;
  explicit BatchPattern(std::shared_ptr<Impl const> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl const> const& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl const> impl_;
};

// A batch whose distinct keys are known and whose intents are sent to the owners. Copies are cheap and refer to the
// same batch. Its arrays live until its step has ended and the last copy is destroyed. All functions but constructors
// throw Error for an empty object or an invalid part. `part` is the index of a TableBatch in the call of prepare().
class GPUPS_EXPORT PreparedBatch {
 public:
  PreparedBatch() = default;

  Clock clock() const;
  // Returns the number of samples of this rank.
  std::size_t samples() const;
  // Returns the number of TableBatches.
  std::size_t parts() const;
  TableId table(std::size_t part) const;
  std::size_t entries(std::size_t part) const;
  // Returns the number of distinct keys, which is the number of rows that pull() writes.
  std::size_t rows(std::size_t part) const;
  // Returns the distinct keys, (rows), on the store's device, in the order of the rows that pull() writes.
  View<Key const> keys(std::size_t part) const;
  // Returns the row of each entry, (entries), on the store's device: entry e has keys(part)[positions(part)[e]].
  View<std::uint32_t const> positions(std::size_t part) const;
  // Returns the pattern of the batch, to prepare the same entries for later steps.
  BatchPattern pattern() const;

  struct Impl;
  explicit PreparedBatch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> const& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// The handle of a look-up in flight, from Store::begin_lookup(). Copies are cheap and refer to the same look-up. Pass
// it to Store::wait_lookup() once; a look-up without this call stays in flight until the Store is destroyed.
class LookupRequest {
 public:
  LookupRequest() = default;

  struct Impl;
  explicit LookupRequest(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> const& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// The gradients of one part of a batch, for Store::push(), as a sparse matrix: the gradient of a key is the sum over
// its entries e of coefficients[e] * sources.row(source_indices[e]). So a gradient that many entries share with
// different weights is given once, for example the other factor of a factorization, the query of negative samples, or
// the gradient of a bag. Gradients are those of the loss summed over the samples of this rank, not of its mean. Arrays
// are on the store's device.
//
//   TableGradients const of_entries{.sources = gradients};  // (entries, dim)
//   TableGradients const of_bags{.sources = bag_gradients, .coefficients = weights};  // (bags, dim), (entries)
struct TableGradients {
  MatrixView<float const> sources{};  // (number of sources, dim), any stride
  // (entries): the source of each entry. Empty: entry e has source e; in a part with offsets, an entry of bag b has
  // source b, and there must be exactly one source for each bag.
  View<std::uint32_t const> source_indices{};
  View<float const> coefficients{};  // (entries); empty: all are 1
  // An upper bound of the magnitudes of all elements of `sources`, which then must be finite. If it is given, push()
  // does not compute it, which saves reading `sources` once. If it is too low, sums may be wrong; an element that is
  // not finite then ends training, after rows have changed.
  std::optional<float> source_max_abs{};
};

// How Store::pull_pooled() combines the rows of a bag.
enum class Pooling { kSum, kMean };

// One rank's part of a parameter server; see the top of this file. Move-only.
class GPUPS_EXPORT Store {
 public:
  // Creates this rank's part of the store. Does not communicate: the first call that needs other ranks checks that
  // seeds and tables are equal. Throws Error for invalid options, if the device does not exist, if collectives of the
  // membership use another device, or if the membership has had a Store before.
  Store(Group group, StoreOptions const& options);
  // Ends this rank's part. Blocks until this rank has sent everything that its calls so far require. A rank that waits
  // for more from this rank gets a PeerError immediately; call wait_barrier() before, if other ranks may still look up
  // rows. Collectives of the Group continue.
  ~Store();
  Store(Store&&) noexcept;

  Rank rank() const;
  int ranks() const;
  StoreOptions const& options() const;
  // Returns a new stream on the store's device. All streams of a store share the host threads of StoreOptions::threads.
  // Use one stream per thread.
  Stream make_stream() const;

  // Adds a table and returns its number. Call it before the first prepare() or other call that needs tables, in equal
  // order and with equal options on all ranks. Throws Error for invalid options, a repeated name, or a store in use.
  TableId add_table(TableOptions const& options);
  // Returns the options of a table.
  TableOptions const& table(TableId table) const;
  // Returns the number of ranks on each host, in rank order: {2, 2}. It is that of StoreOptions::ranks_per_host, if
  // this is not 0. Ranks on a host that are not one after another count as those of several hosts.
  std::vector<int> ranks_per_host() const;
  // Returns whether rows of a table may move while training: see StoreOptions::placement.
  bool rows_move(TableId table) const;
  // Returns the memory that the tables will use on this rank if they have `expected_rows` rows. It is memory of the
  // store's device, unless a line says that it is host memory. Every rank that is a thread of this process uses as
  // much. Batches, messages and arrays of the application are not included. Tables allocate memory at the first call
  // that needs them.
  std::vector<MemoryPlanLine> memory_plan() const;

  // -- a step --

  // Prepares this rank's batch for step `clock`: finds the distinct keys, and sends their owners the intent to read
  // them, so that the rows arrive in time. Creates no rows. A rank has at most one batch per clock; `clock` is clock()
  // or later, at most 2^19 steps ahead. Prepare four or more steps ahead if links are slow: a batch that is prepared
  // after the round of the step before has started is fetched late, and wait_ready() blocks longer. If rows move or
  // have moved, it must be prepared one step earlier, before the round of the step two before has started.
  //
  // tables: at most 4096 parts, with less than 2^28 entries together; several may use the same table. samples: number
  // of samples of this rank in the batch, at most 2^40; owners divide gradients by the sum over all ranks. Blocks until
  // `stream` is done. Throws Error for invalid arguments, and during erase(), expire() and localize(). Cost: sorts the
  // keys. Any thread.
  PreparedBatch prepare(Stream& stream, Clock clock, std::span<TableBatch const> tables, std::size_t samples);

  // The same for the entries and the number of samples of an earlier batch of this store, without finding the distinct
  // keys again. For data that has the same batches in every epoch. Does not block. Any thread.
  PreparedBatch prepare(BatchPattern const& pattern, Clock clock);

  // Blocks until all rows of the batch can be read. Throws Error unless batch.clock() == clock(), and GradientError if
  // the step before was rejected.
  void wait_ready(PreparedBatch const& batch);

  // Writes the values of the distinct keys of each part to rows[part], in the order of batch.keys(part). rows[part]:
  // (batch.rows(part) or more, dim), with the stride row_stride(dim), as a Matrix has. Call it between wait_ready() and
  // push(), any number of times. Queued on `stream`.
  void pull(Stream& stream, PreparedBatch const& batch, std::span<MatrixView<float> const> rows);

  // Writes the sum or the mean of the rows of each bag to `out`, (bags or more, dim), with the stride row_stride(dim);
  // an empty bag gives zeros. The part must have been prepared with offsets. coefficients: (entries) or empty; each row
  // is multiplied by the coefficient of its entry, and the mean is the weighted sum divided by the number of entries.
  // Call it between wait_ready() and push(). Queued on `stream`.
  void pull_pooled(Stream& stream, PreparedBatch const& batch, std::size_t part, Pooling pooling, MatrixView<float> out,
                   View<float const> coefficients = {});

  // Sums the gradients of the batch of this step by key. gradients: one element for each part, of the summed loss. Push
  // each batch once, with or without wait_ready() and pull() before. Queued on `stream`: the arrays may be freed when
  // the work queued here is done. The rows of the batch cannot be read after push(), because they may change.
  //
  // For Pooling::kMean, give coefficients of 1 / bag size, multiplied by the coefficients of pull_pooled(), if any; a
  // part that was pooled so is rejected without coefficients. Throws Error if a source index is not below the number of
  // sources, and pushes nothing; on a GPU, all ranks reject the step instead, because push() does not wait for the
  // check, which reads 4 bytes per entry.
  void push(Stream& stream, PreparedBatch const& batch, std::span<TableGradients const> gradients);

  // Ends the step. When all ranks have ended it, owners apply the gradients in the background. A rank without a batch
  // at this clock calls it too. signal: bits that all ranks get from signals(), for example a request to stop. Does not
  // block. Throws Error if a prepared batch of this step is not pushed, or if a look-up is in flight.
  void advance_clock(std::uint32_t signal = 0);

  // Returns the clock of the current step: the number of calls of advance_clock(), plus the clock of a restored
  // checkpoint.
  Clock clock() const;

  // Blocks until the round of the step before clock() is complete, so that all owners have applied it. Throws
  // GradientError if that step was rejected.
  void wait_applied();

  // Flushes this rank's residuals with the step that ends next: sends them to the owners exactly; those of rows that
  // are away from their homes arrive one step later. In the same round, sends all changes of its own rows, regardless
  // of the filter. With StoreOptions::staleness, a step without a prepared batch sends all gradients that wait, too.
  // Checkpoints and evaluation do not need this call. Does not block.
  void flush_residuals();

  // With StoreOptions::staleness, makes the batch of step `clock` of this rank refresh all its rows and send all
  // gradients that wait. After this step, none of this step and earlier ones waits: call it on all ranks for the last
  // step of training. Any thread, before the batch is prepared. Does not block. Throws Error if it is prepared.
  void synchronize(Clock clock);

  // Returns the union of the bits that all ranks passed to the last advance_clock(). REQUIRES: wait_applied() or
  // wait_ready() was called since.
  std::uint32_t signals() const;

  // Throws a pending error of the background, for example the loss of a rank. Does not block. Call it during long
  // computations, in which no other function is called.
  void throw_if_failed();

  // -- at any time --

  // Blocks until all ranks have called it. Collective.
  void wait_barrier();
  // Returns the bytes `mine` of every rank, in rank order. Throws Error for more than 32 MiB of a rank. Collective.
  std::vector<std::string> wait_allgather(std::string const& mine);
  // The same on rank `root`; other ranks get empty strings and do not receive the bytes. Collective.
  std::vector<std::string> wait_gather_to(Rank root, std::string const& mine);
  // Replaces `values`, in host memory, by their sums over all ranks, modulo 2^64. Throws Error if ranks have
  // different numbers of values. For small data; use Group::begin_allreduce() for large arrays. Collective.
  void wait_allreduce(std::span<std::int64_t> values);

  // -- between steps: after advance_clock() and before the next push(), otherwise they throw Error --
  // These functions wait until the step before clock() is complete, and throw GradientError if it was rejected.

  // Reads the rows of any keys, with all updates of steps before clock(), and blocks until they have arrived. Creates
  // no rows: for a key without a row, writes its initial value and found[i] = 0. keys: (n), may repeat. out: (n or
  // more, dim), any stride. found: (n or more) or empty; 1 for keys with a row. All are on the store's device. Not
  // collective, but the owners' Stores must exist: call wait_barrier() before a Store is destroyed.
  void lookup(Stream& stream, TableId table, View<Key const> keys, MatrixView<float> out, View<std::uint8_t> found);
  // Starts a look-up: requests the rows from their owners. Blocks until `stream` and the round of the step before are
  // done. Afterwards `keys` may be freed; `out` and `found` must live until wait_lookup(). Throws Error if sizes do not
  // match, or if kLookupsMax look-ups are in flight.
  LookupRequest begin_lookup(Stream& stream, TableId table, View<Key const> keys, MatrixView<float> out,
                             View<std::uint8_t> found);
  // Blocks until the rows have arrived, and writes them to the arrays of begin_lookup(). Wait for all look-ups, in any
  // order, before the next advance_clock(). Throws Error for a look-up that was waited for before, and PeerError if an
  // owner is lost.
  void wait_lookup(Stream& stream, LookupRequest const& lookup);
  static constexpr std::size_t kLookupsMax = 64;  // maximum number of look-ups in flight per rank

  // Sets the values of rows of any owner; creates missing rows with initial optimizer state. keys: (n), distinct; a
  // rank may give none; if several ranks give a key, one of their values is kept. values: (n or more, dim), any stride;
  // 16-bit tables round to the nearest. Throws Error on all ranks, before any row has changed, if a value is not finite
  // or out of the range of the table's data type, or if a rank has prepared a batch for clock(). Collective.
  void assign(Stream& stream, TableId table, View<Key const> keys, MatrixView<float const> values);

  // Deletes rows of any owner, with their optimizer state and occurrence counts, as if their keys had never been used.
  // keys: (n), may repeat, and several ranks may give the same; keys without a row have no effect. Throws Error on all
  // ranks if any rank has a prepared batch whose step has not ended. prepare() throws Error during this call.
  // Collective.
  void erase(Stream& stream, TableId table, View<Key const> keys);

  // Deletes all rows that were not updated in the last `age` steps, and the occurrence counts of keys that were not
  // used in the last `age` steps. age: 1 .. 2^32 - 1, equal on all ranks. An assign counts as an update in the step
  // before it. Returns the number of deleted rows over all ranks. Memory is reused for new rows, so it is bounded by
  // the number of distinct keys seen between two calls. Cost: reads 8 bytes for each row, and removes the deleted keys
  // from the index; with compression of gradients, it also looks up the rows of this rank's residuals. Errors of
  // erase(). Collective.
  std::size_t expire(TableId table, std::int64_t age);

  // Moves rows to this rank, with their optimizer state and occurrence counts, or lets it own rows that no step has
  // used yet. A rank that owns the rows that it uses does not exchange them: use it for a partition of the data that
  // is known before training. keys: (n), may repeat; a rank may give none; if several ranks give a key, the lowest of
  // them gets the row. Rows keep their values, and all results are those of other placements, except with lossy
  // compression, which the owner of a row does not apply to its own gradients. Throws Error on all ranks if any rank
  // has a prepared batch whose step has not ended. prepare() throws Error during this call. Once rows have moved,
  // batches should be prepared five or more steps ahead if links are slow. Collective.
  void localize(Stream& stream, TableId table, View<Key const> keys);

  // Returns where the row of a key is in step clock(). Asks the key's home. Not collective, but the home's Store must
  // exist.
  RowPlacement where(TableId table, Key key);

  // Returns the most used rows of this home, by number of announced uses, descending: at most `count`, and at most
  // kHotRowsMax. They are rows that one step uses, the hot step, and their uses are those that ranks have announced for
  // that step and up to 15 later ones; StoreOptions::placement_window - 1, if rows may move. The hot step is clock()
  // or, if rows may move or have moved, the next one. At the end of training, when fewer and fewer steps are announced,
  // it is the last one for which batches were announced as far ahead as for the step before it. Batches that were
  // prepared too late for a round do not count. Under bounded staleness, uses that are not announced do not count, and
  // gradients that have waited count in the step that sends them. Owners are those in step clock().
  //
  // Cost: sorts the keys that are announced to this home for these steps; none for other ranks. To count at the end of
  // training, a store keeps the batches of the hot step and of later ones, at most 16 steps, until another step is hot:
  // this takes no more memory than when all of them were announced. Not collective.
  std::vector<HotRow> hottest_rows(std::size_t count);
  static constexpr std::size_t kHotRowsMax = 64;

  // Calls `visit` with all rows that this rank owns, in chunks of at most 16,384 rows, in no particular order. The
  // arrays, (n) and (n, dim), are on the store's device and valid during the call; work that `visit` queues on `stream`
  // may use them too. Blocks until all rows are visited. Throws what `visit` throws. Not collective.
  void scan(Stream& stream, TableId table,
            std::function<void(View<Key const> keys, MatrixView<float const> values)> const& visit);

  // Returns the number of rows of a table over all ranks. Collective.
  std::size_t size(TableId table);

  // Returns a 64-bit hash of the keys, values, optimizer state and counters of all rows of all tables. It does not
  // depend on the number of ranks or the order of rows. Cost: reads all rows. Collective.
  std::uint64_t table_hash();

  // Writes a checkpoint below `folder`, which is created if necessary: all tables with optimizer state and residuals,
  // the clock, and the blobs of rank 0. All ranks write in parallel. The manifest is renamed into place last, so the
  // folder always has one complete checkpoint, the old or the new one. Does not change training. Needs a file system
  // that all ranks share. Throws Error on all ranks if any rank fails; the old checkpoint stays. Collective.
  void save(std::filesystem::path const& folder, std::span<Blob const> blobs);

  // Loads a checkpoint into tables with the same options, on any number of ranks, and sets clock(). The numbers of
  // their optimizers, such as learning_rate, and their schedules may be others. Returns the blobs, on every rank. Call
  // it after add_table() and before other calls that need tables. Throws Error on all ranks, before any row has
  // changed, if a file is missing, truncated or changed (checksums), or does not match the tables and the seed; then
  // this Store can only be destroyed. Rows that were away from their homes are with the same ranks again, or at home if
  // there are fewer ranks. Collective.
  std::vector<Blob> restore(std::filesystem::path const& folder);

  // Exports the rows of all tables for other programs: for each TABLE a file of keys, uint64 (rows), and a file of
  // values, float32 (rows, dim) for every DataType. Rows are sorted by a hash of the key, so the files have the same
  // bytes for every number of ranks. All ranks write in parallel below FOLDER.unfinished, which is renamed to `folder`
  // when it is complete; `folder` must not exist, or must be an empty folder. In file names, characters of a table's
  // name other than letters, digits, '-' and '_' are written as %XX. Uses up to 24 bytes of host memory for each row
  // of this home in the largest table. Needs a file system that all ranks share. Throws Error on all ranks if any rank
  // fails, and leaves no folder. Collective.
  void export_rows(std::filesystem::path const& folder, ExportFormat format);

  // Returns this rank's counters. Does not block. Any thread.
  Stats stats() const;

 private:
  class Impl;
  Owner<Impl> impl_{"a Store"};
};

}  // namespace gpups
