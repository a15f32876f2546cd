// SPDX-License-Identifier: Apache-2.0
// Reads rows that another rank writes with one-sided puts at the same time: measures reads per second, and counts the
// torn rows that the check caught and those that it missed. As one process, both ranks are threads; as two processes,
// rank 0 writes rows of rank 1 over UCX. Prints a line of JSON, and exits with 1 if a torn row was missed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "comm/group/group_impl.hpp"
#include "comm/onesided/versioned_rows.hpp"
#include "comm/onesided/window.hpp"
#include "comm/transport/control_channel.hpp"
#include "gpups/gpups.hpp"
#include "kernels/base/build_config.hpp"
#include "kernels/base/check.hpp"

namespace gpups::bench {
namespace {

using comm::VersionedRows;
using comm::Window;

constexpr Rank kReader{1};

struct Options {
  std::size_t reads = 100'000'000, rows = 16, row_bytes = 256;
  std::string windows = "local";
  bool unchecked = false;
};

std::size_t window_bytes(Options const& o) { return VersionedRows::bytes(o.rows, o.row_bytes); }

// Returns the value of all words of a version of a row.
std::uint64_t word_of(std::uint64_t version, std::size_t row) { return version * 0x9e3779b97f4a7c15 + row; }

// Writes rows until over() is true. Returns their number.
template <class Over>
std::uint64_t write(Window& window, Options const& o, Over over) {
  VersionedRows const rows(window.memory(), o.rows, o.row_bytes);
  std::vector<std::uint64_t> row(o.row_bytes / 8);
  VersionedRows::VersionedRow versioned_row;
  std::uint64_t version = 0;
  while (!over()) {
    std::size_t const which = ++version % o.rows;
    std::fill(row.begin(), row.end(), word_of(version, which));
    VersionedRows::make(versioned_row, version, row.data(), o.row_bytes);
    while (!window.put(kReader, rows.offset(which), std::as_bytes(std::span(versioned_row)))) window.progress();
    if (which > 0) continue;
    while (!window.notify(kReader, version)) window.progress();
  }
  while (!window.idle()) window.progress();
  return version;
}

struct Reads {
  std::uint64_t whole = 0, caught = 0, got_through = 0, unwritten = 0;
  double seconds = 0;
};

// Reads until this many rows were whole. With `unchecked`, torn rows count as whole.
Reads read(Window& window, Options const& o) {
  VersionedRows const rows(window.memory(), o.rows, o.row_bytes);
  VersionedRows::VersionedRow versioned_row;
  Reads reads;
  auto const begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; reads.whole < o.reads; ++i) {
    if (i % 1024 == 0) window.progress();
    std::size_t const which = i % o.rows;
    rows.copy(which, versioned_row);
    if (versioned_row[0] == 0 && VersionedRows::version(versioned_row) == 0) {
      ++reads.unwritten;
      continue;
    }
    if (!o.unchecked && !VersionedRows::is_consistent(versioned_row)) {
      ++reads.caught;
      continue;
    }
    ++reads.whole;
    auto const* const row = static_cast<std::uint64_t const*>(VersionedRows::row(versioned_row));
    std::uint64_t const expected = word_of(VersionedRows::version(versioned_row), which);
    std::uint64_t wrong = 0;
    for (std::size_t word = 0; word < o.row_bytes / 8; ++word) wrong |= row[word] ^ expected;
    reads.got_through += wrong != 0;
  }
  reads.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return reads;
}

int report(Options const& o, Reads const& reads, std::string_view over, std::string const& written) {
  fmt::print(
      "{{\"windows\": \"{}\", \"row_bytes\": {}, \"checked\": {}, \"reads\": {}, \"caught\": {}, \"got_through\": {}, "
      "\"unwritten\": {}, \"reads_per_s\": {:.0f}{}}}\n",
      over, o.row_bytes, !o.unchecked, reads.whole, reads.caught, reads.got_through, reads.unwritten,
      static_cast<double>(reads.whole) / reads.seconds, written);
  return reads.got_through == 0 ? 0 : 1;
}

int run_threads(Options const& o) {
  for (comm::WindowFactory const& entry : comm::all_windows()) {
    if (entry.name != o.windows) continue;
    auto const ends = entry.make(2, window_bytes(o));
    std::atomic<bool> over = false, written_all = false;
    std::uint64_t written = 0;
    std::thread writer([&] {
      written = write(*ends[0], o, [&] { return over.load(); });
      written_all = true;
    });
    Reads const reads = read(*ends[1], o);
    over = true;
    while (!written_all) ends[1]->progress();
    writer.join();
    return report(o, reads, o.windows, fmt::format(", \"writes\": {}", written));
  }
  throw Error(fmt::format("there are no windows \"{}\" in this build: use local or ucx", o.windows));
}

#if GPUPS_HAS_UCX
int run_processes(Options const& o) {
  Group const group = Group::join();
  GPUPS_REQUIRE(group.size() == 2, "one_sided was started with {} ranks (one rank writes and one reads): start two",
                group.size());
  comm::ControlChannel channel(*group.impl().transport, 600);
  auto const window = comm::make_ucx_window(group.rank(), window_bytes(o),
                                            [&](std::string const& mine) { return channel.wait_allgather(mine); });
  if (group.rank() == kReader) {
    Reads const reads = read(*window, o);
    while (!window->notify(Rank{0}, 1)) window->progress();
    while (window->notified(Rank{0}) != ~std::uint64_t{0}) window->progress();
    return report(o, reads, "ucx, processes", "");
  }
  write(*window, o, [&] {
    window->progress();
    return window->notified(kReader) != 0;
  });
  while (!window->notify(kReader, ~std::uint64_t{0})) window->progress();
  while (!window->idle()) window->progress();
  return 0;
}
#endif

int run(Options const& o) {
  GPUPS_REQUIRE(o.rows > 0 && o.row_bytes >= 8 && o.row_bytes % 8 == 0,
                "rows of {} bytes cannot be read (each word of 8 bytes contains the version): use a multiple of 8",
                o.row_bytes);
#if GPUPS_HAS_UCX
  if (Group::launch_info().ranks != 1) return run_processes(o);
#endif
  return run_threads(o);
}

}  // namespace
}  // namespace gpups::bench

int main(int argc, char** argv) {
  gpups::bench::Options o;
  CLI::App app("Reads rows that another rank writes");
  app.add_option("--reads", o.reads, "Rows to read whole");
  app.add_option("--rows", o.rows, "Number of rows, which are written in turn");
  app.add_option("--row-bytes", o.row_bytes, "Bytes of a row");
  app.add_option("--windows", o.windows, "Kind of windows between threads: local or ucx");
  app.add_flag("--unchecked", o.unchecked, "Accept every row without a check, to show that rows are torn");
  CLI11_PARSE(app, argc, argv);
  try {
    return gpups::bench::run(o);
  } catch (gpups::Error const& error) {
    fmt::print(stderr, "one_sided: {}\n", error.what());
    return 2;
  }
}
