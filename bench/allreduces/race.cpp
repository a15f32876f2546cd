// SPDX-License-Identifier: Apache-2.0
#include "bench/allreduces/race.hpp"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "bench/allreduces/wire.hpp"
#include "kernels/base/check.hpp"

namespace gpups::bench {
namespace {

// A pause after which the queue of a shaped link has no packets of a run, for instance acknowledgements.
constexpr std::chrono::milliseconds kSettle{2};
// After this many runs, or this long, all memory has been allocated.
constexpr int kWarmRuns = 20;
constexpr double kWarm_s = 0.1;
// Shorter runs are preceded by others in the same turn: as many as take kAgain_s, at least one and at most kAgainRuns.
// The first of them does not count; the others count neither if each run needs a pause before it, nor if a run is
// several sums in a row.
constexpr double kShort_s = 0.1;
constexpr double kAgain_s = 0.004;
constexpr int kAgainRuns = 8;
constexpr int kTurnsLeast = 3;  // enough for a median

double max_over_ranks(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return value;
}

std::uint64_t sum_over_ranks(std::uint64_t value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return value;
}

// Computes the expected sum; each rank computes a part of it.
Array<float> wait_sum_of(InputOptions const& input, int ranks) {
  std::size_t const part = (input.elements + static_cast<std::size_t>(ranks) - 1) / static_cast<std::size_t>(ranks);
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  Array<float> sums(Device::host(), part * static_cast<std::size_t>(ranks));
  std::size_t const first = part * static_cast<std::size_t>(me);
  expected_sums(input, ranks, first, sums.view().slice(first, part));
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, sums.data(), static_cast<int>(part), MPI_FLOAT, MPI_COMM_WORLD);
  return sums;
}

// Returns the seconds of a sum, whose result stays until drop_result().
double wait_run_and_keep(Way& way, int in_a_row = 1) {
  MPI_Barrier(MPI_COMM_WORLD);
  auto const start = std::chrono::steady_clock::now();
  for (int k = 0; k < in_a_row; ++k) way.wait_sum();
  double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return max_over_ranks(seconds) / in_a_row;
}

double wait_one_run(Way& way, int in_a_row = 1) {
  double const seconds = wait_run_and_keep(way, in_a_row);
  way.drop_result();
  return seconds;
}

double wait_rested_run(Way& way, RaceOptions const& options) {
  if (options.pause_ms > 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options.pause_ms));
  }
  return wait_one_run(way, options.in_a_row);
}

// Measures the bytes of one run, including few bytes of MPI barriers around it.
double wait_counted_run(Job const& job, Way& way, Measured& measured) {
  MPI_Barrier(MPI_COMM_WORLD);
  std::this_thread::sleep_for(kSettle);
  MPI_Barrier(MPI_COMM_WORLD);
  std::uint64_t const wire = wire_bytes_sent(), sent = job.store.stats().sent.bytes();
  double const seconds = wait_run_and_keep(way);
  std::this_thread::sleep_for(kSettle);
  MPI_Barrier(MPI_COMM_WORLD);
  measured.wire_bytes = wire_bytes_sent() - wire;
  measured.sent_bytes = sum_over_ranks(job.store.stats().sent.bytes() - sent);
  return seconds;
}

void check(WayEntry const& entry, Way& way, View<float const> expected, Measured& measured) {
  auto const [sums, first] = way.result();
  double worst = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(sums[i]) - static_cast<double>(expected[first + i])));
  }
  measured.error_max = max_over_ranks(worst);
  GPUPS_REQUIRE(measured.error_max <= entry.error_max,
                "{} has an error of {} in an element (at most {} is allowed): its time is not comparable", entry.name,
                measured.error_max, entry.error_max);
}

struct Racer {
  WayEntry const* entry;
  std::unique_ptr<Way> way;
  Measured measured;
  int turns = 0;
  double total_s = 0;
  bool is_known = false;  // measured in another race
};

bool has_enough(Racer const& racer, double seconds) {
  return racer.is_known || (racer.turns >= kTurnsLeast && racer.total_s >= seconds);
}

Measured const* find(std::vector<Measured> const& known, std::string const& name) {
  auto const found = std::find_if(known.begin(), known.end(), [&](Measured const& m) { return m.name == name; });
  return found == known.end() ? nullptr : &*found;
}

}  // namespace

// Of an even number of times, the mean of the two in the middle.
double Measured::median_s() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  return (sorted.at((sorted.size() - 1) / 2) + sorted.at(sorted.size() / 2)) / 2;
}

std::vector<Measured> wait_race(Job const& job, InputOptions const& input, std::vector<WayEntry> const& entries,
                                RaceOptions const& options, std::vector<Measured> const& known) {
  Input const mine(input, static_cast<int>(number(job.group.rank())));
  Array<float> sums(Device::host(), input.elements);
  Array<float> expected = wait_sum_of(input, job.group.size());
  std::vector<Racer> racers;
  for (WayEntry const& entry : entries) {
    Racer racer{&entry, entry.make(job, mine, sums), {.name = entry.name}};
    if (Measured const* const before = find(known, entry.name)) {
      racer.measured = *before;
      racer.is_known = true;
    } else {
      for (int run = 0; run < entry.runs_before_usual; ++run) wait_one_run(*racer.way);
      double warm_s = wait_counted_run(job, *racer.way, racer.measured);
      check(entry, *racer.way, expected, racer.measured);
      racer.way->drop_result();
      for (int run = 1; run < kWarmRuns && warm_s < kWarm_s; ++run) warm_s += wait_one_run(*racer.way);
    }
    racers.push_back(std::move(racer));
  }
  expected = {};
  std::vector<std::size_t> order(racers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(
      input.seed);  // the same on all ranks; a random order, so that no way always follows the same one
  for (int turn = 0; turn < options.turns_max; ++turn) {
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t const i : order) {
      Racer& racer = racers[i];
      if (has_enough(racer, options.seconds)) continue;
      ++racer.turns;
      auto const count = [&](double seconds) {
        racer.measured.seconds.push_back(seconds);
        racer.total_s += seconds;
      };
      // The way before has left other data in the caches, which matters if a run is short.
      bool const fits_eager = racer.total_s < kShort_s * static_cast<double>(racer.measured.seconds.size() + 1);
      bool const count_all = options.pause_ms == 0 && options.in_a_row == 1;
      double again_s = fits_eager ? 0 : kAgain_s;
      for (int again = 0; again < kAgainRuns && again_s < kAgain_s; ++again) {
        double const seconds = wait_one_run(*racer.way);
        again_s += seconds;
        if (count_all && again > 0) count(seconds);
      }
      count(wait_rested_run(*racer.way, options));
    }
  }
  std::vector<Measured> all;
  for (Racer& racer : racers) all.push_back(std::move(racer.measured));
  return all;
}

}  // namespace gpups::bench
