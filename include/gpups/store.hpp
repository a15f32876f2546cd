// SPDX-License-Identifier: Apache-2.0
// The parameter server: tables of rows, sharded over the ranks of a group, trained in steps.
//
//   PreparedBatch batch = store.prepare(stream, clock, {...}, samples);  // some steps ahead, any thread
//   store.wait_ready(batch);                                       // every row of the batch is here
//   store.pull(stream, batch, rows);                               // (distinct keys, dim) per table
//   ... compute gradients from `rows` ...
//   store.push(stream, batch, gradients);                          // summed exactly; nothing is applied yet
//   store.advance_clock();                                         // owners sum over ranks and apply
//
// Training is synchronous: a read at clock c sees every update of every rank up to clock c - 1. Sums are exact, so
// tables end with the same bits for every number of ranks and threads, as long as each global batch is the same.
//
// Threads: `prepare` and `stats` may be called from any thread at any time. All other calls are for one thread at a
// time, the training thread. Calls marked *collective* must be made by all ranks, in the same order. Those that read or
// change rows throw Error within a step: after `push` and before `advance_clock`. What goes wrong in the background is
// thrown by the next call.
//
// Errors: a call with a PreparedBatch, BatchPattern or LookupRequest of another store, or with one that is empty, and
// every call of a Store that has been moved from, throws Error.
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
  int threads = 0;         // cores of this rank on the host; 0: its even share of those that the process may use
  std::uint64_t seed = 1;  // of initial values
  // How long the Store's calls wait for what another rank owes this one. Collectives of the group have a limit of their
  // own: Group::set_wait_timeout_s().
  double wait_timeout_s = 300;
};

// One table's part of a batch: an entry for each use of a row. Arrays are on the device of the store and may go once
// `prepare` has returned.
struct TableBatch {
  TableId table{};
  View<Key const> keys{};  // (entries); a key may occur any number of times
  // For pooled look-ups: bag b is made of the entries offsets[b] .. offsets[b+1]-1. (bags + 1), non-decreasing, from 0
  // to entries.
  View<std::uint32_t const> offsets{};
};

// What a batch uses, without its step: its entries by distinct key, as sparse matrices have a pattern without numbers.
// Cheap to copy; its arrays stay as long as a copy, or a batch prepared from it.
class BatchPattern {
 public:
  BatchPattern() = default;

  struct Impl;
  explicit BatchPattern(std::shared_ptr<Impl const> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl const> const& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl const> impl_;
};

// A batch whose distinct keys are known and announced. Cheap to move; a copy is the same batch. Its arrays stay until
// the batch has been pushed, the clock advanced and the last copy is gone.
class PreparedBatch {
 public:
  PreparedBatch() = default;

  Clock clock() const;
  std::size_t samples() const;
  // Number of TableBatches; the calls below number them from 0 in the order given to `prepare`.
  std::size_t parts() const;
  TableId table(std::size_t part) const;
  std::size_t entries(std::size_t part) const;
  // Number of distinct keys: the rows that `pull` writes.
  std::size_t rows(std::size_t part) const;
  View<Key const> keys(std::size_t part) const;                 // (rows)
  View<std::uint32_t const> positions(std::size_t part) const;  // (entries), the row of each entry, < rows
  // For batches of later steps with the same entries. It keeps nothing else of this batch.
  BatchPattern pattern() const;

  struct Impl;
  explicit PreparedBatch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> const& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// Rows that begin_lookup() has asked for. Cheap to copy; a copy is the same look-up. Each is waited for once: one that
// is not stays under way, and counts, as long as its store lives.
class LookupRequest {
 public:
  LookupRequest() = default;

  struct Impl;
  explicit LookupRequest(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> const& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

// One table's gradients as a sparse matrix: the gradient of a key is the sum, over its entries e, of coefficients[e] *
// sources.row(source_indices[e]). So a row that many entries use with different weights is given once: the other factor
// in a factorization, the query of negative samples, a bag's gradient.
struct TableGradients {
  MatrixView<float const> sources{};  // (number of sources, dim)
  View<std::uint32_t const>
      source_indices{};              // (entries); empty: entry e has source e, or its bag where there are bags
  View<float const> coefficients{};  // (entries); empty: all 1
  // No element of the sources is larger than this, and all are finite: for callers that know it, so that push() need
  // not look. Where it is wrong, sums may be, and what is not finite ends training once the step has changed rows.
  std::optional<float> source_max_abs{};
};

enum class Pooling { kSum, kMean };

// An application's own state in a checkpoint, by name: dense layers, data position, configuration.
struct Blob {
  std::string name;
  std::string bytes;
};

// How Store::export_rows() writes an array. kNpy: TABLE.keys.npy, as NumPy saves arrays. kFlat: TABLE.keys.bin, the
// same without a header, and TABLE.json, which says types, shapes and byte order.
enum class ExportFormat { kNpy, kFlat };

class Store {
 public:
  // Joins the group's protocol. Ranks with another seed are rejected with the first call that needs both. Throws Error
  // when the device is not there, when collectives of the membership use another device, and for a second Store on one
  // membership, also when the first has ended.
  Store(Group group, StoreOptions const& options);
  // Blocks until this rank has sent what it owes the others. Those that wait for more from it then get a PeerError that
  // names it, at once. Collectives of the group go on.
  ~Store();
  Store(Store&&) noexcept;

  Rank rank() const;
  int ranks() const;
  StoreOptions const& options() const;
  // A stream on the store's device that uses this rank's share of the cores. Each thread wants one of its own.
  Stream make_stream() const;

  // Adds a table, before anything is prepared, in the same order with the same options on every rank.
  TableId add_table(TableOptions const& options);
  TableOptions const& table(TableId table) const;
  // What the tables will take on this rank's device with their `expected_rows`, before anything is allocated; and what
  // the lines that say so take on the host: dictionaries of keys, and what there is of each other rank. Where ranks are
  // threads of a process, it takes as much for each of them. Batches under way, messages and the application's own
  // arrays come on top.
  std::vector<MemoryPlanLine> memory_plan() const;

  // -- a step --

  // Finds the distinct keys of a batch and announces that this rank reads them at `clock`: the rows will be there
  // without asking. At most one batch of a rank has a given clock; prepare four or more steps ahead where latency
  // matters. samples: of this rank in the batch; gradients are divided by their sum over the ranks. Waits for
  // `stream`, touches no table, inserts nothing.
  PreparedBatch prepare(Stream& stream, Clock clock, std::span<TableBatch const> tables, std::size_t samples);

  // The same for the entries of a batch that this store has prepared before: announces them, and finds nothing again.
  // For data that comes in the same batches every epoch: also the number of samples is that of the pattern's batch,
  // whose step may be over, or not. Throws Error for the pattern of another store, and as above for the clock.
  PreparedBatch prepare(BatchPattern const& pattern, Clock clock);

  // Blocks until all rows of the batch can be read. REQUIRES: batch.clock() == clock().
  void wait_ready(PreparedBatch const& batch);

  // Writes the values of the batch's distinct keys to rows[part], of at least (batch.rows(part), dim), in the order of
  // batch.keys(part). Between wait_ready() and push(), else throws Error. Queued on `stream`.
  void pull(Stream& stream, PreparedBatch const& batch, std::span<MatrixView<float> const> rows);

  // Writes to out, (bags, dim), the sum or mean of the rows of each bag; an empty bag gives zeros. The part must have
  // been prepared with offsets. With coefficients, (entries), each row is multiplied by its entry's first; the mean is
  // then the sum of these products divided by the number of entries. Queued on `stream`.
  void pull_pooled(Stream& stream, PreparedBatch const& batch, std::size_t part, Pooling pooling, MatrixView<float> out,
                   View<float const> coefficients = {});

  // Sums the gradients of a batch, one element for each part. Each batch is pushed once; a step that reads no rows
  // needs no wait_ready() before. Sources and coefficients may go when `stream` has done the work queued here. For mean
  // pooling give coefficients of 1 / bag size; for a weighted bag, times the weights that pull_pooled() was given.
  // Reads the source numbers once to check them, 4 bytes an entry. Throws Error where one is not below the number of
  // sources, and nothing has been pushed; on a GPU, where push() does not wait, all ranks reject the step instead.
  void push(Stream& stream, PreparedBatch const& batch, std::span<TableGradients const> gradients);

  // Ends the step: once every rank has done so, owners apply its gradients. Does not wait. `signal`: bits for all
  // ranks to see, such as "please stop". A rank without samples at this clock just calls this. Throws Error where a
  // look-up is under way that wait_lookup() can still be called for.
  void advance_clock(std::uint32_t signal = 0);

  // The step that comes next: the number of calls of advance_clock(), or what a checkpoint said.
  Clock clock() const;

  // Blocks until the step before clock() is applied on every owner. Throws GradientError where it was rejected.
  void wait_applied();

  // With the next step this rank sends the owners all that its tables' codecs and filters hold back of its gradients
  // (TableOptions::gradient_compression), exactly: once that step is applied nothing of it is missing. A rank that has
  // no batch for the step just ends it. To those that read rows of its own in the next step it then sends whatever has
  // changed of them, without regard to the filter (TableOptions::refresh_compression). Evaluation and checkpoints need
  // no such call, and change nothing.
  void flush_residuals();

  // The bits that any rank passed to the last advance_clock(). REQUIRES: wait_applied() or wait_ready() since.
  std::uint32_t signals() const;

  // Throws what has gone wrong in the background, such as the loss of a rank; does not wait. For long work of the
  // application's own, which no other call interrupts.
  void throw_if_failed();

  // -- at any time --

  // Blocks until every rank has come here. Collective.
  void wait_barrier();
  // Every rank's bytes, in rank order; for small things, 32 MiB at most. Collective.
  std::vector<std::string> wait_allgather(std::string const& mine);
  // The same for one rank alone, which saves the memory of the others: they get as many empty ones. Collective.
  std::vector<std::string> wait_gather_to(Rank root, std::string const& mine);
  // Sums over the ranks; the sum of integers has no order. Few integers go to all ranks at once; many go to rank 0 and
  // back, so that no other rank needs the memory of all. Collective, with as many integers on every rank.
  void wait_allreduce(std::span<std::int64_t> values);

  // -- between steps: Error after push() and before advance_clock() --

  // Reads rows wherever they are, with every step before clock(); inserts, counts and moves nothing. A key without a
  // row gives its initial value and found[i] = 0. out is (keys, dim); arrays on the store's device. `found` may be
  // empty. Waits. Not collective, but every other rank must keep its store until all are done: end with wait_barrier().
  void lookup(Stream& stream, TableId table, View<Key const> keys, MatrixView<float> out, View<std::uint8_t> found);
  // The same in two calls, so that what other ranks own is under way in between. Waits for `stream`, and for the
  // round of the step before where it is still under way, then asks the owners of keys, (n). `keys` may go; `out`, (n,
  // dim), and `found`, (n) or empty, must stay until wait_lookup(). Throws Error where their sizes do not fit, or when
  // kLookupsMax look-ups are under way.
  LookupRequest begin_lookup(Stream& stream, TableId table, View<Key const> keys, MatrixView<float> out,
                             View<std::uint8_t> found);
  // Blocks until the rows are here, and writes them to the arrays that begin_lookup() was given. Wait for all look-ups,
  // in any order, before the next advance_clock(). Throws Error for one that is over, PeerError where an owner is lost.
  void wait_lookup(Stream& stream, LookupRequest const& lookup);
  static constexpr std::size_t kLookupsMax = 64;  // under way at a time, on a rank

  // Sets values, wherever the rows are or will be; new rows get initial optimizer state. Keys must be distinct. Numbers
  // of 16 bits become the nearest. Collective; a rank may bring no keys. values is (keys, dim). Throws Error, on all
  // ranks and before any row has changed, where a value is not finite or beyond the range of the table's numbers, and
  // for arguments that make no sense.
  void assign(Stream& stream, TableId table, View<Key const> keys, MatrixView<float const> values);

  // Forgets rows, wherever they are, and occurrences of their keys: as if nobody had ever named them. Keys need not
  // exist, and ranks may bring the same. Collective; a rank may bring no keys. Throws Error on all ranks where a batch
  // of any is prepared and its step not over; prepare() throws meanwhile.
  void erase(Stream& stream, TableId table, View<Key const> keys);

  // Forgets, likewise, all rows that were not updated in the last `age` steps, and keys that wait for admission and
  // were not seen in them. An assign counts as an update in the step before it. Their places are taken by the next new
  // keys: a stream of ever new keys needs no more memory than the keys between two calls. Returns how many rows there
  // are less, over all ranks. Reads 8 bytes for each row, and takes their keys out of the index. Collective; errors as
  // for erase().
  std::size_t expire(TableId table, std::int64_t age);

  // Calls `visit` with this rank's rows, a bounded number at a time, in no particular order. Arrays are on the store's
  // device and are reused for the next call.
  void scan(Stream& stream, TableId table,
            std::function<void(View<Key const> keys, MatrixView<float const> values)> const& visit);

  // Rows over all ranks. Collective.
  std::size_t size(TableId table);

  // A 64-bit digest of keys, values, optimizer state and counters of all rows of all tables, whatever the number of
  // ranks and the order of rows. Collective.
  std::uint64_t table_hash();

  // Writes tables, clock, and rank 0's blobs below `folder`, which is made if need be. All ranks write at once; the
  // manifest is put in place last, so the folder holds either the last or the new checkpoint, whole. Training goes on
  // with the same bits. Needs a file system that all ranks see. Collective.
  void save(std::filesystem::path const& folder, std::span<Blob const> blobs);

  // Loads what `save` wrote, on any number of ranks, into the same tables, before anything is prepared. Returns the
  // blobs. Throws Error, before any row has changed on any rank, where a file is missing, cut or altered (checksums)
  // or does not match the tables, naming what differs. Collective.
  std::vector<Blob> restore(std::filesystem::path const& folder);

  // Writes the rows of all tables for other programs: for each TABLE its keys, uint64 (rows), and its values, float32
  // (rows, dim), whatever DataType they are kept as. They are sorted by a hash of the key, so that the files have the
  // same bytes for every number of ranks. All ranks write at once, below `folder`.unfinished, which becomes `folder`
  // when it is whole: that must not be there yet, or be empty. Bytes of a table's name that are no letters, digits, '-'
  // or '_' are written as %XX. Takes 20 bytes of the host's memory for each row of a table. Needs a file system that
  // all ranks see. What goes wrong on any rank is an Error on all of them, and no folder. Collective.
  void export_rows(std::filesystem::path const& folder, ExportFormat format);

  // Counters of this rank. Any thread.
  Stats stats() const;

 private:
  class Impl;
  Owner<Impl> impl_{"a Store"};
};

// The blobs of a checkpoint, without a store: for reading a configuration before there are tables. Throws Error.
std::vector<Blob> read_blobs(std::filesystem::path const& folder);

// Writes an array of an application's own, such as a dense layer, as Store::export_rows() writes its files: PATH.npy,
// or PATH.bin and PATH.json. shape: the sizes of its axes, the last of which is contiguous. Throws Error.
void export_array(std::filesystem::path const& path, ExportFormat format, std::span<std::uint64_t const> shape,
                  std::span<float const> values);

}  // namespace gpups
