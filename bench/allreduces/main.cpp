// SPDX-License-Identifier: Apache-2.0
// Measures all algorithms that sum vectors over the processes of an mpirun, for some lengths and densities, in
// comparison with MPI_Allreduce. Prints a line of JSON for each. bench/exchange sets up the links between the
// processes.
//   mpirun -n 2 --bind-to none bench_exchange --elements 1048576 --density 0.01
#include <fmt/format.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "bench/allreduces/race.hpp"
#include "kernels/base/check.hpp"

namespace gpups::bench {
namespace {

struct Options {
  std::vector<std::size_t> elements{std::size_t{1} << 20};
  std::vector<double> densities{0.01};
  std::vector<std::string> names;
  std::string link = "any";
  RaceOptions race;
};

std::vector<WayEntry> chosen_ways(std::vector<std::string> const& names) {
  std::vector<WayEntry> chosen;
  if (names.empty())
    std::copy_if(ways().begin(), ways().end(), std::back_inserter(chosen),
                 [](auto const& way) { return way.by_default; });
  for (auto const& name : names) {
    auto const found = std::find_if(ways().begin(), ways().end(), [&](auto const& way) { return way.name == name; });
    std::string all;
    for (auto const& way : ways()) all += " " + way.name;
    GPUPS_REQUIRE(found != ways().end(), "there is no way \"{}\" (nothing would be measured): use some of{}", name,
                  all);
    chosen.push_back(*found);
  }
  return chosen;
}

void print(Options const& o, int ranks, InputOptions const& input, Measured const& m) {
  nlohmann::ordered_json const line{{"link", o.link},
                                    {"ranks", ranks},
                                    {"elements", input.elements},
                                    {"density", input.density},
                                    {"way", m.name},
                                    {"ms", m.median_s() * 1e3},
                                    {"ms_least", *std::min_element(m.seconds.begin(), m.seconds.end()) * 1e3},
                                    {"runs", m.seconds.size()},
                                    {"wire_bytes", m.wire_bytes},
                                    {"sent_bytes", m.sent_bytes},
                                    {"error_max", m.error_max}};
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

void run(Options const& o) {
  auto const entries = chosen_ways(o.names);
  Group const group = Group::join();
  Store store(group, {.device = Device::host(), .threads = 1});
  store.add_table({.name = "none", .dim = 4, .expected_rows = 1});
  Stream stream = store.make_stream();
  // The first sum that is not short measures the costs of the links.
  std::vector<float> const zeros(std::size_t{1} << 14);
  Array<float> first(Device::host(), zeros.size());
  copy<float>(stream, first, View<float const>(zeros));
  group.wait_allreduce(stream, group.begin_allreduce(stream, first.view()));
  for (std::size_t const elements : o.elements) {
    std::vector<Measured> known;  // ways whose time does not depend on the density
    for (double const density : o.densities) {
      InputOptions const input{.elements = elements, .density = density};
      auto const measured = wait_race({group, store, stream}, input, entries, o.race, known);
      known.clear();
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].is_dense) known.push_back(measured[i]);
        if (number(group.rank()) == 0) print(o, group.size(), input, measured[i]);
      }
    }
  }
  auto const lines = group.explain_allreduces();
  if (group.rank() == Rank{0}) fmt::print(stderr, "{}\n", fmt::join(lines, "\n"));
  store.wait_barrier();
}

}  // namespace
}  // namespace gpups::bench

int main(int argc, char** argv) {
  gpups::bench::Options o;
  CLI::App app("Compares sums of vectors over processes with MPI_Allreduce");
  app.add_option("--elements", o.elements, "lengths of the vectors")->delimiter(',')->capture_default_str();
  app.add_option("--density", o.densities, "fractions of the elements that are not 0 on a rank")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--way", o.names, "the ways to measure; none: \"auto\" and all with the same result")->delimiter(',');
  app.add_option("--link", o.link, "name of the link between the processes, printed in each line");
  app.add_option("--seconds", o.race.seconds, "time for which each way is run")->capture_default_str();
  app.add_option("--turns-max", o.race.turns_max, "turns of each way; a short sum runs several times per turn")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.add_option("--in-a-row", o.race.in_a_row, "sums that are timed together, for short ones")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  app.add_option("--pause-ms", o.race.pause_ms, "pause before each run")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  int code = 0;
  try {
    gpups::bench::run(o);
  } catch (std::exception const& error) {
    fmt::print(stderr, "bench_exchange: error: {}\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, code = 2);
  }
  MPI_Finalize();
  return code;
}
