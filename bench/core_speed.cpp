// SPDX-License-Identifier: Apache-2.0
// Measures the speed of the allowed cores while other programs run on them: every 10 ms a thread on each core times
// about 20 us of additions in registers. The time is constant unless the core is shared. It grows while the core also
// works for another virtual machine (for instance as a hyperthread, which a virtual machine cannot see) or runs at a
// lower clock. Ends when its standard input ends, and prints a line of JSON:
//   {"least_us": of all probes, "median_us": [of each core's]}
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{10};
constexpr int kRounds = 16'000;  // about 20 us

// Times additions, several of which a core can execute at the same time.
double probe_us() {
  auto const start = Clock::now();
  std::uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
  for (int round = 0; round < kRounds; ++round) {
    auto const more = static_cast<std::uint64_t>(round);
    a += b ^ more;
    b += c ^ more;
    c += d ^ more;
    d += e ^ more;
    e += f ^ more;
    f += a ^ more;
    asm volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
  }
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

bool stay_on(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

void wait_for_end_of_input() {
  char some[64];
  while (read(STDIN_FILENO, some, sizeof some) > 0) {
  }
}

double median(std::vector<double> values) {
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

int main() {
  std::vector<int> const cores = allowed_cores();
  if (cores.empty()) {
    std::fprintf(stderr, "core_speed: error: the allowed cores are not known: allow fewer than %d\n", CPU_SETSIZE);
    return 2;
  }
  std::atomic<bool> ends = false, are_bound = true;
  std::vector<std::vector<double>> probes(cores.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < cores.size(); ++i) {
    threads.emplace_back([&, i] {
      if (!stay_on(cores[i])) are_bound = false;
      do {
        probes[i].push_back(probe_us());
        std::this_thread::sleep_for(kPause);
      } while (!ends);
    });
  }
  wait_for_end_of_input();
  ends = true;
  for (std::thread& thread : threads) thread.join();
  if (!are_bound) {
    std::fprintf(
        stderr,
        "core_speed: error: a thread cannot be bound to its core (two threads would share one): allow other cores\n");
    return 2;
  }
  double least = probes[0][0];
  std::vector<double> medians;
  for (auto const& of_core : probes) {
    least = std::min(least, *std::min_element(of_core.begin(), of_core.end()));
    medians.push_back(median(of_core));
  }
  std::printf("%s\n", nlohmann::json{{"least_us", least}, {"median_us", medians}}.dump().c_str());
  return 0;
}
