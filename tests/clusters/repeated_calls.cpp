// SPDX-License-Identifier: Apache-2.0
// Calls of a store, repeated without end: steps, look-ups, and collective calls between steps.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>

#include "tests/clusters/until_failure.hpp"

namespace gpups::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kGatheredBytes = std::size_t{1} << 20, kSummed = std::size_t{1} << 16;
constexpr std::size_t kLookups = 4, kLookedUp = 5000;             // in flight at a time; keys of each
constexpr std::size_t kRestoredRows = 800000, kPart = 100000;     // of a checkpoint that takes a long time to read
constexpr char const *kSaved = "saved", *kExported = "exported";  // in the folder in which all ranks are started

TableOptions table_of(std::size_t rows) { return {.name = "t", .dim = kDim, .expected_rows = rows}; }

std::vector<Key> keys_from(std::uint64_t first, std::uint64_t last, std::uint64_t every = 1) {
  std::vector<Key> keys;
  for (std::uint64_t k = first; k < last; k += every) keys.push_back(Key{k});
  return keys;
}

Matrix<float> filled(std::size_t rows) {
  Matrix<float> values(Device::host(), rows, kDim);
  for (std::size_t i = 0; i < rows; ++i) std::fill(values.row(i).begin(), values.row(i).end(), 0.01F);
  return values;
}

void assign(Store& store, Stream& stream, TableId table, std::vector<Key> const& keys) {
  auto const values = filled(keys.size());
  store.assign(stream, table, View<Key const>(keys), values);
}

// Returns a rank's share of the table's keys.
std::vector<Key> own_keys(Member const& mine) {
  return keys_from(number(mine.store.rank()), kRows, static_cast<std::uint64_t>(mine.store.ranks()));
}

void repeat(std::function<void()> const& call) {
  for (int calls = 0;; ++calls) {
    call();
    if (calls == 2) print_going();
  }
}

// Returns work that repeats a call for a table with rows.
std::function<void(Member const&)> with_rows(std::function<void(Member const&)> const& call) {
  return [call](Member const& mine) {
    assign(mine.store, mine.stream, mine.table, own_keys(mine));
    repeat([&] { call(mine); });
  };
}

std::function<void(Member const&)> without_rows(std::function<void(Member const&)> const& call) {
  return [call](Member const& mine) { repeat([&] { call(mine); }); };
}

void take_steps(Member const& mine) {
  auto const keys = keys_from(0, kRows);
  auto const sources = filled(kRows);
  TableBatch const part{.table = mine.table, .keys = View<Key const>(keys)};
  auto next = mine.store.prepare(mine.stream, Clock{0}, {&part, 1}, 1);
  for (std::int64_t step = 0;; ++step) {
    auto const batch = next;
    next = mine.store.prepare(mine.stream, Clock{step + 1}, {&part, 1}, 1);
    mine.store.wait_ready(batch);
    TableGradients const gradients{.sources = sources};
    mine.store.push(mine.stream, batch, {&gradients, 1});
    mine.store.advance_clock();
    if (step == 2) print_going();
  }
}

// Steps without batches: all ranks wait until each step is applied on every rank.
void flush(Member const& mine) {
  repeat([&] {
    mine.store.advance_clock();
    mine.store.wait_applied();
  });
}

void look_up_all(Member const& mine) {
  auto const keys = keys_from(0, kRows);
  Matrix<float> values(Device::host(), kRows, kDim);
  mine.store.lookup(mine.stream, mine.table, View<Key const>(keys), values, {});
}

void look_up_in_parallel(Member const& mine) {
  assign(mine.store, mine.stream, mine.table, own_keys(mine));
  auto const keys = keys_from(0, kLookedUp);
  std::vector<Matrix<float>> values;
  for (std::size_t i = 0; i < kLookups; ++i) values.emplace_back(Device::host(), kLookedUp, kDim);
  std::deque<LookupRequest> open;
  for (std::size_t begun = 0;; ++begun) {
    if (open.size() == kLookups) {
      mine.store.wait_lookup(mine.stream, open.front());
      open.pop_front();
    }
    open.push_back(
        mine.store.begin_lookup(mine.stream, mine.table, View<Key const>(keys), values[begun % kLookups], {}));
    if (begun == 3 * kLookups) print_going();
  }
}

void erase(Member const& mine) {
  auto const keys = own_keys(mine);
  assign(mine.store, mine.stream, mine.table, keys);
  mine.store.erase(mine.stream, mine.table, View<Key const>(keys));
}

void export_all(Member const& mine) {
  mine.store.export_rows(kExported, ExportFormat::kNpy);
  if (mine.store.rank() == Rank{0}) fs::remove_all(kExported);  // export_rows() needs a new folder
  mine.store.wait_barrier();
}

// Rank 0 saves the checkpoint before it joins; the other ranks wait for it in Group::join().
void save_before_join() {
  if (Group::launch_info().rank != Rank{0}) return;
  Store store(Group::alone(), {});
  auto const table = store.add_table(table_of(kRestoredRows));
  auto stream = store.make_stream();
  for (std::size_t first = 0; first < kRestoredRows; first += kPart) {
    assign(store, stream, table, keys_from(first, first + kPart));
  }
  store.save(kSaved, {});
}

// A store restores only once, so this call must take longer than the time until a rank is lost.
void restore(Member const& mine) {
  print_going();
  mine.store.restore(kSaved);
  throw Error("the checkpoint was restored before a rank was lost (a store restores only once): save more rows");
}

}  // namespace

std::vector<Work> repeated_calls() {
  return {
      {"rows", take_steps},
      {"flush", flush},
      {"barrier", without_rows([](Member const& mine) { mine.store.wait_barrier(); })},
      {"gather", without_rows([](Member const& mine) { mine.store.wait_allgather(std::string(kGatheredBytes, 'x')); })},
      {"wait_allreduce", without_rows([](Member const& mine) {
         std::vector<std::int64_t> values(kSummed, 1);
         mine.store.wait_allreduce(values);
       })},
      {"lookup", with_rows(look_up_all)},
      {"lookups", look_up_in_parallel},
      {"assign", without_rows([](Member const& mine) { assign(mine.store, mine.stream, mine.table, own_keys(mine)); })},
      {"erase", without_rows(erase)},
      {"expire", with_rows([](Member const& mine) { mine.store.expire(mine.table, 1000); })},
      {"size", with_rows([](Member const& mine) { mine.store.size(mine.table); })},
      {"table_hash", with_rows([](Member const& mine) { mine.store.table_hash(); })},
      {"save", with_rows([](Member const& mine) { mine.store.save(kSaved, {}); })},
      {"export", with_rows(export_all)},
      {"restore", restore, save_before_join},
  };
}

}  // namespace gpups::test
