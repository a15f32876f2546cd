// SPDX-License-Identifier: Apache-2.0
// Measures how long rows take to move between two processes. Started as two processes; rank 1 localizes rows, then rank
// 0 the same rows, and so on. Rank 0 prints a line of JSON.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"

namespace gpups::bench {
namespace {

struct Options {
  std::size_t rows = 10000, dim = 64, moves = 101;
};

// Returns keys with home rank 0.
std::vector<Key> keys_of_first(std::size_t rows, int ranks) {
  std::vector<Key> keys;
  for (std::uint64_t k = 0; keys.size() < rows; ++k) {
    if (kernels::home_of(Key{k}, static_cast<std::uint32_t>(ranks)) == 0) keys.push_back(Key{k});
  }
  return keys;
}

// Returns milliseconds for each move, in which all rows change their owner. The first few are not counted.
std::vector<double> moves(Store& store, Stream& stream, TableId table, std::vector<Key> const& keys, std::size_t n) {
  constexpr std::size_t kWarmUp = 4;
  std::vector<double> times;
  for (std::size_t i = 0; i < n + kWarmUp; ++i) {
    bool const here = number(store.rank()) == (i + 1) % 2;
    store.wait_barrier();
    auto const begin = std::chrono::steady_clock::now();
    store.localize(stream, table, here ? View<Key const>(keys) : View<Key const>());
    std::chrono::duration<double, std::milli> const time = std::chrono::steady_clock::now() - begin;
    if (i >= kWarmUp) times.push_back(time.count());
  }
  return times;
}

void run(Options const& o) {
  Group const group = Group::join();
  GPUPS_REQUIRE(group.size() == 2, "there are {} processes (rows move between two): use mpirun -n 2 relocate_rows",
                group.size());
  Store store(group, {.device = Device::host(), .threads = 1});
  TableId const table = store.add_table({.name = "rows", .dim = o.dim, .expected_rows = 2 * o.rows});
  Stream stream = store.make_stream();
  std::vector<Key> const keys = keys_of_first(o.rows, group.size());
  Matrix<float> const values(Device::host(), number(store.rank()) == 0 ? keys.size() : 0, o.dim);
  memory::fill_bytes(stream, values.view().data(), 0, values.view().flat().bytes());
  store.assign(stream, table, View<Key const>(keys).slice(0, values.rows()), values);
  auto times = moves(store, stream, table, keys, o.moves);
  auto const owner = store.where(table, keys[0]).owner;
  GPUPS_REQUIRE(number(owner) == (o.moves + 4) % 2, "the rows have not moved: report this defect");
  if (number(store.rank()) == 0) {
    std::sort(times.begin(), times.end());
    fmt::print("{{\"ms\": {:.3f}, \"least_ms\": {:.3f}, \"rows\": {}, \"row_bytes\": {}}}\n", times[times.size() / 2],
               times[0], o.rows, o.dim * sizeof(float));
  }
  store.wait_barrier();
}

}  // namespace
}  // namespace gpups::bench

int main(int argc, char** argv) {
  gpups::bench::Options o;
  CLI::App app("Measures how long rows take to move between two processes");
  app.add_option("--rows", o.rows, "Rows that move")->check(CLI::Range(1, 1 << 24));
  app.add_option("--dim", o.dim, "Values in a row")->check(CLI::Range(1, 65536));
  app.add_option("--moves", o.moves, "Moves that are measured")->check(CLI::Range(1, 1 << 20));
  CLI11_PARSE(app, argc, argv);
  try {
    gpups::bench::run(o);
    return 0;
  } catch (std::exception const& error) {
    fmt::print(stderr, "relocate_rows: error: {}\n", error.what());
    return 2;
  }
}
