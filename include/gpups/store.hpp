// SPDX-License-Identifier: Apache-2.0
// The parameter server: embedding tables, sharded over the ranks of a group, trained in synchronous steps.
//
//   Store store(group, {.device = Device::cuda(0)});
//   TableId const users = store.add_table({.name = "users", .dim = 64});
//   Stream stream = store.make_stream();
//   PreparedBatch batch = store.prepare(stream, clock, tables, samples);  // some steps ahead, from any thread
//   store.wait_ready(batch);                                         // the rows of the batch are on this rank
//   store.pull(stream, batch, rows);                                 // (distinct keys, dim) for each table
//   ... compute gradients from `rows` ...
//   store.push(stream, batch, gradients);                            // exact sums; nothing is applied yet
//   store.advance_clock();                                           // owners sum over ranks and update the rows
//
// A read at clock c sees the updates of all ranks up to clock c - 1. Gradients are summed exactly, so the tables have
// the same bits for every number of ranks and threads, provided that each global batch is the same.
//
// Threads: prepare() and stats() may be called from any thread at any time. All other functions are for one thread at a
// time, the training thread. Functions marked *collective* must be called by all ranks, in the same order. An error in
// the background (a lost rank, for example) is thrown by the next call.
//
// Errors: Error for invalid arguments, for calls in the wrong order, for a PreparedBatch, BatchPattern or LookupRequest
// that is empty or of another Store, and for every call of a moved-from Store; PeerError for a lost or failing rank,
// after which the Store can only be destroyed; GradientError for a rejected step, after which training can go on.
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
#include "gpups/device.hpp"
#include "gpups/group.hpp"
#include "gpups/owner.hpp"
#include "gpups/stats.hpp"
#include "gpups/stream.hpp"
#include "gpups/table.hpp"
#include "gpups/types.hpp"

namespace gpups {

struct StoreOptions {
  Device device{};
  int threads = 0;         // host threads of this rank; 0: an even share of the cores of the process
  std::uint64_t seed = 1;  // of initial values; equal on all ranks
  // Seconds without progress after which a call that waits for another rank throws PeerError. Collectives of the Group
  // have a limit of their own: Group::set_wait_timeout_s().
  double wait_timeout_s = 300;
};

// The part of a batch that uses one table: one entry for each use of a row. The arrays are on the store's device and
// may be freed once prepare() has returned.
struct TableBatch {
  TableId table{};
  View<Key const> keys{};  // (entries), with repetitions
  // For pooled look-ups: bag b consists of entries offsets[b] .. offsets[b+1]-1. (bags + 1), non-decreasing, from 0 to
  // the number of entries.
  View<std::uint32_t const> offsets{};
};

// The sparsity pattern of a batch: its distinct keys, and the distinct key of each entry, without a clock. Copies are
// cheap and share the arrays.
//
//   BatchPattern const pattern = batch.pattern();          // in the first epoch
//   PreparedBatch next = store.prepare(pattern, later_clock);   // in later epochs: no keys are searched or sorted
//   again
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
// same batch. Its arrays live until the batch is pushed, the clock is advanced and the last copy is destroyed.
class PreparedBatch {
 public:
  PreparedBatch() = default;

  Clock clock() const;
  std::size_t samples() const;
  // Returns the number of TableBatches. `part` below is the index of a TableBatch in the call of prepare().
  std::size_t parts() const;
  TableId table(std::size_t part) const;
  std::size_t entries(std::size_t part) const;
  // Returns the number of distinct keys, which is the number of rows that pull() writes.
  std::size_t rows(std::size_t part) const;
  View<Key const> keys(std::size_t part) const;                 // (rows): the distinct keys
  View<std::uint32_t const> positions(std::size_t part) const;  // (entries): the row of each entry, < rows(part)
  // Returns the pattern, for batches of later steps with the same entries.
  BatchPattern pattern() const;

  struct Impl;
  explicit PreparedBatch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> const& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// The handle of a look-up in flight. Copies are cheap and refer to the same look-up. Wait for each look-up once; one
// that nobody waits for stays in flight until the Store is destroyed.
class LookupRequest {
 public:
  LookupRequest() = default;

  struct Impl;
  explicit LookupRequest(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> const& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// The gradients of one table as a sparse matrix: the gradient of a key is the sum over its entries e of
// coefficients[e] * sources.row(source_indices[e]). A row that many entries use with different weights is thus given
// once: the other factor of a factorization, the query of negative samples, the gradient of a bag.
struct TableGradients {
  MatrixView<float const> sources{};  // (number of sources, dim)
  // (entries): the source of each entry; empty: entry e, or its bag, has source e
  View<std::uint32_t const> source_indices{};
  View<float const> coefficients{};  // (entries); empty: all are 1
  // An upper bound of the magnitude of all source elements, all of which are finite. If it is given, push() does not
  // compute it. A wrong bound may give wrong sums, and a non-finite element then ends training after the update.
  std::optional<float> source_max_abs{};
};

enum class Pooling { kSum, kMean };

// A named piece of an application's own state in a checkpoint: dense layers, position in the data, configuration.
struct Blob {
  std::string name;
  std::string bytes;
};

// The file format of Store::export_rows(). kNpy: TABLE.keys.npy and so on, in NumPy's format. kFlat: TABLE.keys.bin,
// the same without header, and TABLE.json with types, shapes and byte order.
enum class ExportFormat { kNpy, kFlat };

class Store {
 public:
  // Creates this rank's part of the store. Not collective: the first call that needs two ranks checks that their seeds
  // and tables are equal. Throws Error if the device does not exist, if collectives of the membership use another
  // device, or if the membership has had a Store before.
  Store(Group group, StoreOptions const& options);
  // Blocks until this rank has sent what it owes to other ranks. If another rank still waits for more from this rank,
  // it gets a PeerError at once. Collectives of the Group go on.
  ~Store();
  Store(Store&&) noexcept;

  Rank rank() const;
  int ranks() const;
  StoreOptions const& options() const;
  // Returns a new stream on the store's device with this rank's share of the host threads. Use one stream per thread.
  Stream make_stream() const;

  // Adds a table. Call it before anything is prepared, in the same order and with equal options on all ranks.
  TableId add_table(TableOptions const& options);
  TableOptions const& table(TableId table) const;
  // Returns the memory that the tables will use on this rank with their `expected_rows`, on the device unless the line
  // says that it is host memory. Ranks that are threads of a process use as much each. Batches, messages and the
  // application's own arrays are not included. Nothing is allocated before the first prepare().
  std::vector<MemoryPlanLine> memory_plan() const;

  // -- a step --

  // Finds the distinct keys of a batch, and sends their owners the intent to read them at `clock`, so that the rows
  // arrive in time. A rank has at most one batch per clock. Prepare four or more steps ahead if the links are slow.
  // samples: number of samples of this rank in the batch, at most 2^40; gradients are divided by the sum over all
  // ranks. Blocks until `stream` is done. Creates no rows. Any thread.
  PreparedBatch prepare(Stream& stream, Clock clock, std::span<TableBatch const> tables, std::size_t samples);

  // The same for a pattern of this store: sends intents, and reuses the distinct keys and the number of samples. For
  // data that has the same batches in every epoch. Throws Error for a pattern of another store. Any thread.
  PreparedBatch prepare(BatchPattern const& pattern, Clock clock);

  // Blocks until all rows of the batch can be read. REQUIRES: batch.clock() == clock().
  void wait_ready(PreparedBatch const& batch);

  // Writes the values of the distinct keys to rows[part], (batch.rows(part), dim) or larger, in the order of
  // batch.keys(part). Call it between wait_ready() and push(); throws Error otherwise. Queued on `stream`.
  void pull(Stream& stream, PreparedBatch const& batch, std::span<MatrixView<float> const> rows);

  // Writes the sum or mean of the rows of each bag to out, (bags, dim); an empty bag gives zeros. The part must have
  // been prepared with offsets. With coefficients, (entries), each row is multiplied by the coefficient of its entry;
  // the mean is then the weighted sum divided by the number of entries. Queued on `stream`.
  void pull_pooled(Stream& stream, PreparedBatch const& batch, std::size_t part, Pooling pooling, MatrixView<float> out,
                   View<float const> coefficients = {});

  // Sums the gradients of a batch, one element for each part. Push each batch once, with or without a pull() before.
  // Queued on `stream`: sources and coefficients may be freed when the work queued here is done. For mean pooling give
  // coefficients of 1 / bag size; for a weighted bag multiply them by the weights that pull_pooled() got. Throws Error
  // if a source index is not below the number of sources, and then pushes nothing; on a GPU, where push() does not
  // block, all ranks reject the step instead. Cost of that check: 4 bytes are read per entry.
  void push(Stream& stream, PreparedBatch const& batch, std::span<TableGradients const> gradients);

  // Ends the step. When all ranks have done so, owners apply the gradients. Does not block. A rank without a batch at
  // this clock calls it too. signal: bits that all ranks see in signals(), such as a request to stop. Throws Error
  // while a look-up is in flight.
  void advance_clock(std::uint32_t signal = 0);

  // Returns the clock of the next step: the number of calls of advance_clock(), plus the clock of a restored
  // checkpoint.
  Clock clock() const;

  // Blocks until all owners have applied the step before clock(). Throws GradientError if that step was rejected.
  void wait_applied();

  // Flushes residuals with the next step: this rank sends the owners, exactly, everything that codecs and filters
  // (TableOptions::gradient_compression) have kept of its gradients; and it sends the changes of its own rows to the
  // ranks that read them in the step after, regardless of the filter (TableOptions::refresh_compression). Checkpoints
  // and evaluation do not need this call.
  void flush_residuals();

  // Returns the bits that any rank passed to the last advance_clock(). REQUIRES: wait_applied() or wait_ready() since.
  std::uint32_t signals() const;

  // Throws a pending error of the background, such as the loss of a rank. Does not block. For long computations between
  // other calls.
  void throw_if_failed();

  // -- at any time --

  // Blocks until all ranks have called it. Collective.
  void wait_barrier();
  // Returns the bytes of every rank, in rank order; at most 32 MiB per rank. Collective.
  std::vector<std::string> wait_allgather(std::string const& mine);
  // The same for rank `root` only, which saves the memory of the others: they get empty strings. Collective.
  std::vector<std::string> wait_gather_to(Rank root, std::string const& mine);
  // Replaces `values` by their sums over all ranks. For small data on the host; see Group::begin_allreduce().
  // Collective, with the same number of values on all ranks.
  void wait_allreduce(std::span<std::int64_t> values);

  // -- between steps: after advance_clock() and before the next push(), otherwise Error --

  // Reads the rows of any keys, with all updates of steps before clock(), and blocks until they are here. Creates no
  // rows: a key without a row gives its initial value and found[i] = 0. out is (keys, dim), found is (keys) or empty,
  // both on the store's device. Not collective, but the other ranks must keep their stores: end with wait_barrier().
  void lookup(Stream& stream, TableId table, View<Key const> keys, MatrixView<float> out, View<std::uint8_t> found);
  // Starts a look-up. Blocks until `stream` and the round of the step before are done, then requests the rows from
  // their owners. `keys` may then be freed; `out` and `found` must live until wait_lookup(). Throws Error if sizes do
  // not fit, or if kLookupsMax look-ups are in flight.
  LookupRequest begin_lookup(Stream& stream, TableId table, View<Key const> keys, MatrixView<float> out,
                             View<std::uint8_t> found);
  // Blocks until the rows are here, and writes them to the arrays of begin_lookup(). Wait for all look-ups, in any
  // order, before the next advance_clock(). Throws Error for a look-up that was waited for before, PeerError if an
  // owner is lost.
  void wait_lookup(Stream& stream, LookupRequest const& lookup);
  static constexpr std::size_t kLookupsMax = 64;  // look-ups in flight per rank

  // Sets the values of rows on any rank; new rows get initial optimizer state. keys: distinct; a rank may give none.
  // values: (keys, dim); 16-bit tables round to the nearest. Throws Error on all ranks, before any row has changed, if
  // a value is not finite or beyond the range of the table's numbers. Collective.
  void assign(Stream& stream, TableId table, View<Key const> keys, MatrixView<float const> values);

  // Deletes rows on any rank, with their optimizer state and occurrence counts, as if their keys had never been used.
  // Keys need not exist; several ranks may give the same. Throws Error on all ranks if a prepared batch of any rank is
  // not finished, and prepare() throws meanwhile. Collective.
  void erase(Stream& stream, TableId table, View<Key const> keys);

  // Deletes all rows that no step of the last `age` steps updated, and the occurrence counts of keys that no step of
  // the last `age` steps used. An assign counts as an update in the step before it. Memory is reused, so it is bounded
  // by the number of distinct keys seen between two calls. Returns the number of deleted rows over all ranks. Cost:
  // reads 8 bytes for each row, and removes the keys from the index. Errors as for erase(). Collective.
  std::size_t expire(TableId table, std::int64_t age);

  // Calls `visit` with this rank's rows, in blocks of bounded size and in no particular order. The arrays are on the
  // store's device and are reused for the next block.
  void scan(Stream& stream, TableId table,
            std::function<void(View<Key const> keys, MatrixView<float const> values)> const& visit);

  // Returns the number of rows over all ranks. Collective.
  std::size_t size(TableId table);

  // Returns a 64-bit hash of the keys, values, optimizer state and counters of all rows of all tables. It does not
  // depend on the number of ranks or the order of rows. Collective.
  std::uint64_t table_hash();

  // Writes a checkpoint below `folder`, which is created if necessary: tables, clock and the blobs of rank 0. All ranks
  // write in parallel, and the manifest is renamed into place last, so the folder always holds one complete checkpoint,
  // the old or the new one. Does not change training. Needs a file system that all ranks see. Collective.
  void save(std::filesystem::path const& folder, std::span<Blob const> blobs);

  // Loads a checkpoint into the same tables, on any number of ranks, before anything is prepared. Returns the blobs.
  // Throws Error, before any row has changed on any rank, if a file is missing, truncated or altered (checksums), or
  // does not match the tables. Collective.
  std::vector<Blob> restore(std::filesystem::path const& folder);

  // Exports the rows of all tables: for each TABLE the keys, uint64 (rows), and the values, float32 (rows, dim), for
  // every DataType. Rows are sorted by a hash of the key, so the files have the same bytes for every number of ranks.
  // All ranks write in parallel below `folder`.unfinished, which is renamed to `folder` when it is complete; `folder`
  // must not exist, or be empty. Other characters than letters, digits, '-' and '_' of a table's name are written as
  // %XX. Uses 20 bytes of host memory for each row of a table. Needs a file system that all ranks see. An error on any
  // rank is thrown on all ranks, and no folder is left. Collective.
  void export_rows(std::filesystem::path const& folder, ExportFormat format);

  // Returns this rank's counters. Any thread.
  Stats stats() const;

 private:
  class Impl;
  Owner<Impl> impl_{"a Store"};
};

// Returns the blobs of a checkpoint without a Store, for example to read a configuration before tables are added.
// Throws Error as restore().
std::vector<Blob> read_blobs(std::filesystem::path const& folder);

// Writes an array of the application, such as a dense layer, in the format of Store::export_rows(): PATH.npy, or
// PATH.bin and PATH.json. shape: the sizes of the axes; the last axis is contiguous. Throws Error.
void export_array(std::filesystem::path const& path, ExportFormat format, std::span<std::uint64_t const> shape,
                  std::span<float const> values);

}  // namespace gpups
