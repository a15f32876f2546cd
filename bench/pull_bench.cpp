// SPDX-License-Identifier: Apache-2.0
// Measures pulls, in small batches, of rows that other processes own. Started as two or more processes; rank 0 pulls
// from all others, with several look-ups in flight, and prints a line of JSON.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <random>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"

namespace gpups::bench {
namespace {

struct Options {
  std::size_t rows = 1 << 20, dim = 64, batch = 256, open = 16, spread = 0;
  double seconds = 3;
  bool check = false;
};

// Returns keys that rank 0 does not own.
std::vector<Key> foreign_keys(std::size_t rows, int ranks) {
  std::vector<Key> keys;
  for (std::uint64_t k = 0; keys.size() < rows; ++k) {
    if (kernels::home_of(Key{k}, static_cast<std::uint32_t>(ranks)) != 0) keys.push_back(Key{k});
  }
  return keys;
}

float value_of(Key key, std::size_t column) { return static_cast<float>(number(key) % 1000003 + column); }

// Sets all rows from rank 0. Collective.
void fill(Store& store, Stream& stream, TableId table, std::vector<Key> const& keys, std::size_t dim) {
  constexpr std::size_t kPiece = 1 << 16;
  for (std::size_t first = 0; first < keys.size(); first += kPiece) {
    std::size_t const count = number(store.rank()) == 0 ? std::min(kPiece, keys.size() - first) : 0;
    Matrix<float> values(Device::host(), count, dim);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < dim; ++j) values.row(i)[j] = value_of(keys[first + i], j);
    }
    store.assign(stream, table, View<Key const>(keys).slice(first, count), values);
  }
}

void check(MatrixView<float const> rows, std::vector<Key> const& keys) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t j = 0; j < rows.columns(); ++j) {
      GPUPS_REQUIRE(rows.row(i)[j] == value_of(keys[i], j),
                    "key {} has a wrong value in column {} (a pull failed): "
                    "report this defect",
                    number(keys[i]), j);
    }
  }
}

// Returns keys per second.
double pull(Store& store, Stream& stream, TableId table, std::vector<Key> const& keys, Options const& o) {
  std::minstd_rand random(1);
  std::size_t const pool = o.spread > 0 ? std::min(o.spread, keys.size()) : keys.size();
  std::vector<std::vector<Key>> batches(1024, std::vector<Key>(o.batch));
  for (auto& batch : batches) {
    for (Key& key : batch) key = keys[random() % pool];
  }
  struct Open {
    LookupRequest lookup;
    Matrix<float> out;
    std::size_t batch = 0;
  };
  std::vector<Open> open(o.open);
  for (Open& one : open) one.out = Matrix<float>(Device::host(), o.batch, o.dim);
  auto const begin = std::chrono::steady_clock::now();
  auto const seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  std::size_t begun = 0, ended = 0;
  auto const end_one = [&] {
    Open& oldest = open[ended++ % o.open];
    store.wait_lookup(stream, oldest.lookup);
    if (o.check) check(oldest.out, batches[oldest.batch]);
  };
  while (seconds() < o.seconds) {
    Open& next = open[begun % o.open];
    next.batch = begun++ % batches.size();
    next.lookup = store.begin_lookup(stream, table, batches[next.batch], next.out, {});
    if (begun - ended == o.open) end_one();
  }
  while (ended < begun) end_one();
  return static_cast<double>(ended * o.batch) / seconds();
}

void run(Options const& o) {
  Group const group = Group::join();
  GPUPS_REQUIRE(group.size() >= 2,
                "pull_bench was started as one process (no other process owns rows): start it with mpirun -n 2");
  Store store(group, {.device = Device::host(), .threads = 1});
  TableId const table = store.add_table({.name = "rows", .dim = o.dim, .expected_rows = o.rows});
  Stream stream = store.make_stream();
  std::vector<Key> const keys = foreign_keys(o.rows, group.size());
  fill(store, stream, table, keys, o.dim);
  if (number(store.rank()) == 0) {
    double const keys_per_s = pull(store, stream, table, keys, o);
    fmt::print(
        "{{\"keys_per_s\": {:.0f}, \"batch\": {}, \"row_bytes\": {}, \"open\": {}, \"rows\": {}, \"ranks\": {}}}\n",
        keys_per_s, o.batch, o.dim * sizeof(float), o.open, o.rows, group.size());
  }
  store.wait_barrier();
}

}  // namespace
}  // namespace gpups::bench

int main(int argc, char** argv) {
  gpups::bench::Options o;
  CLI::App app("Measures pulls of rows that other processes own");
  app.add_option("--rows", o.rows, "Rows of the other processes");
  app.add_option("--spread", o.spread, "Number of these rows that are pulled; 0: all");
  app.add_option("--dim", o.dim, "Values in a row");
  app.add_option("--batch", o.batch, "Keys of a look-up");
  app.add_option("--open", o.open, "Look-ups in flight")->check(CLI::Range(1, 64));
  app.add_option("--seconds", o.seconds, "Seconds to pull");
  app.add_flag("--check", o.check, "Compare each value");
  CLI11_PARSE(app, argc, argv);
  try {
    gpups::bench::run(o);
    return 0;
  } catch (std::exception const& error) {
    fmt::print(stderr, "pull_bench: error: {}\n", error.what());
    return 2;
  }
}
