// SPDX-License-Identifier: Apache-2.0
// Counts the memory traffic of every kernel case on the emulated device: the bytes that must move, and the bytes of the
// sectors that warps access; `distinct` counts a sector once for each launch, as if all other accesses to it were to a
// cache. Their ratios to the bytes that must move, launches, and waits. Counts do not depend on the machine.
//   bench_emulated --entries 4096 --dim 64 gather sum_gradients
// With --kernels, the counts of each kernel of a case follow. With --jsonl FILE, each case also adds a line to that
// file. `exposed` is the number of latencies of loads that one thread waits for, see
// tests/emulator/machine/exposed_loads.hpp.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gpups/device.hpp"
#include "tests/emulator/options.hpp"
#include "tests/emulator/runtime/state.hpp"
#include "tests/support/cases.hpp"

namespace {

namespace emulator = gpups::emulator;
using gpups::Stream;

// The counts of all kernels that a case launches.
struct Traffic {
  emulator::KernelCounts kernels;
  std::uint64_t launches, waits;
};

double moved_bytes(emulator::KernelCounts const& counts) {
  auto const sectors = counts.loads.sectors + counts.stores.sectors + counts.atomics.sectors;
  return static_cast<double>(sectors * emulator::kSectorBytes);
}
double distinct_bytes(emulator::KernelCounts const& counts) {
  auto const sectors = counts.loads.distinct + counts.stores.distinct + counts.atomics.distinct;
  return static_cast<double>(sectors * emulator::kSectorBytes);
}

// Prints the counts of the kernels of the last case.
void print_kernels() {
  for (auto const& [name, counts] : emulator::runtime_counts().kernels) {
    if (counts.launches == 0) continue;
    fmt::print("  {:12.0f} moved, {:12.0f} distinct, {} launches, {} exposed: {:.100}\n", moved_bytes(counts),
               distinct_bytes(counts), counts.launches, counts.exposed_loads, name);
  }
}

// Runs the case once to reserve memory, and then counts.
Traffic measure(Stream& stream, gpups::test::Problem const& problem) {
  problem.run(stream);
  stream.wait();
  emulator::runtime_counts() = {};
  problem.run(stream);
  stream.wait();
  auto const& counts = emulator::runtime_counts();
  Traffic traffic{.kernels = {}, .launches = counts.launches, .waits = counts.stream_waits};
  for (auto const& [name, kernel] : counts.kernels) traffic.kernels += kernel;
  return traffic;
}

nlohmann::ordered_json line_of(std::string const& name, gpups::test::Problem const& problem, Traffic const& traffic) {
  auto const& kernels = traffic.kernels;
  auto const least = static_cast<double>(std::max<std::size_t>(problem.bytes, 1));
  return {{"case", name},
          {"entries", problem.entries},
          {"bytes", problem.bytes},
          {"load_sectors", kernels.loads.sectors},
          {"store_sectors", kernels.stores.sectors},
          {"atomic_sectors", kernels.atomics.sectors},
          {"distinct_load_sectors", kernels.loads.distinct},
          {"distinct_store_sectors", kernels.stores.distinct},
          {"distinct_atomic_sectors", kernels.atomics.distinct},
          {"ratio", moved_bytes(traffic.kernels) / least},
          {"distinct_ratio", distinct_bytes(traffic.kernels) / least},
          {"launches", traffic.launches},
          {"waits", traffic.waits},
          {"instructions", kernels.instructions},
          {"exposed_loads", kernels.exposed_loads},
          {"bank_conflicts", kernels.bank_conflicts},
          {"partial_accesses", kernels.partial_accesses}};
}

}  // namespace

int main(int argc, char** argv) try {
  CLI::App app("Counts the memory traffic of kernels on an emulated device");
  gpups::test::CaseSize size{4096, 64};
  std::string jsonl;
  std::vector<std::string> names;
  bool by_kernel = false;
  app.add_option("--entries", size.n, "entries of a batch")->capture_default_str()->check(CLI::Range(1, 1 << 20));
  app.add_option("--dim", size.dim, "columns of a row")->capture_default_str()->check(CLI::Range(1, 1 << 12));
  app.add_flag("--kernels", by_kernel, "also print the counts of each kernel of a case");
  app.add_option("--jsonl", jsonl, "file to which a line for each case is added");
  app.add_option("case", names, "the cases to run; none: all");
  CLI11_PARSE(app, argc, argv);
  auto const cases = gpups::test::kernel_cases();
  for (auto const& name : names) {
    if (std::any_of(cases.begin(), cases.end(), [&](auto const& kernel) { return kernel.name == name; })) continue;
    fmt::print(stderr,
               "bench_emulated: there is no case \"{}\" (nothing would be counted): use names that a run "
               "without arguments prints\n",
               name);
    return 2;
  }

  emulator::options().counts = true;
  Stream stream(gpups::Device::cuda(0), 1);
  fmt::print("{} entries, dim {}\n", size.n, size.dim);
  fmt::print("{:28} {:>12} {:>12} {:>6} {:>12} {:>6} {:>9} {:>6} {:>8} {:>10}\n", "case", "bytes", "moved", "ratio",
             "distinct", "ratio", "launches", "waits", "exposed", "conflicts");
  for (auto const& kernel : gpups::test::kernel_cases()) {
    if (!names.empty() && std::find(names.begin(), names.end(), kernel.name) == names.end()) continue;
    auto const problem = kernel.make(stream, size, 2);
    Traffic const traffic = measure(stream, problem);
    auto const line = line_of(kernel.name, problem, traffic);
    fmt::print("{:28} {:12} {:12.0f} {:6.2f} {:12.0f} {:6.2f} {:9} {:6} {:8} {:10}\n", kernel.name, problem.bytes,
               moved_bytes(traffic.kernels), line["ratio"].get<double>(), distinct_bytes(traffic.kernels),
               line["distinct_ratio"].get<double>(), traffic.launches, traffic.waits, traffic.kernels.exposed_loads,
               traffic.kernels.bank_conflicts);
    if (by_kernel) print_kernels();
    std::fflush(stdout);
    if (jsonl.empty()) continue;
    std::ofstream file(jsonl, std::ios::app);
    if (!(file << line.dump() << '\n' << std::flush)) {
      fmt::print(stderr, "bench_emulated: {} cannot be written (results would be lost): check the path\n", jsonl);
      return 2;
    }
  }
  return 0;
} catch (std::exception const& error) {
  fmt::print(stderr, "bench_emulated: {}\n", error.what());
  return 2;
}
