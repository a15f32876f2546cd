// SPDX-License-Identifier: Apache-2.0
// Benchmarks every kernel case: nanoseconds per entry, GB/s, and the fraction of the bandwidth of a large copy, each
// from the median of seven repetitions.
//   bench_kernels --device host --threads 2 --entries 61440 --dim 100 sum_gradients gather
// With --jsonl FILE, each case also adds a line to that file, for tools/compare. Options of Google Benchmark are
// accepted as well.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/against/copy_side.hpp"
#include "gpups/device.hpp"
#include "kernels/base/host_level.hpp"
#include "tests/support/cases.hpp"

namespace {

using gpups::Stream;

constexpr int kRepetitions = 7;
constexpr double kRepetitionSeconds = 0.03;

double copy_bytes_per_second(Stream& stream) {
  auto const copy = gpups::bench::copy_side(stream);
  std::vector<double> seconds;
  for (int i = 0; i < kRepetitions; ++i) {
    auto const start = std::chrono::steady_clock::now();
    copy.run();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRepetitions / 2, seconds.end());
  return copy.amount / seconds[kRepetitions / 2];
}

// The options that all results share, and where results are written.
struct Settings {
  std::string jsonl, commit;  // jsonl: empty for none
  gpups::test::CaseSize size{61440, 100};
};

// Returns the name of the host's processor, or an empty string if it is not known.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(": ") + 2);
  }
  return {};
}

// Prints a line with the median of each case, and adds it to the file.
class Reporter : public benchmark::BenchmarkReporter {
 public:
  Reporter(Settings const& settings, Stream const& stream, double copy)
      : settings_(settings), stream_(stream), copy_(copy) {
    fmt::print("{}, {} threads, {} entries, dim {}; copy {:.1f} GB/s\n", to_string(stream.device()), stream.threads(),
               settings.size.n, settings.size.dim, copy * 1e-9);
    fmt::print("{:26} {:>10} {:>10} {:>8} {:>8}\n", "case", "median us", "ns/entry", "GB/s", "of copy");
  }
  bool ReportContext(Context const&) override { return true; }
  void ReportRuns(std::vector<Run> const& runs) override {
    for (Run const& run : runs) {
      if (run.aggregate_name == "median") report(run);
    }
  }

 private:
  void report(Run const& run) {
    double const seconds = run.GetAdjustedRealTime() * 1e-9;
    double const entries = run.counters.at("entries"), rate = run.counters.at("bytes") / seconds;
    std::string const& name = run.run_name.function_name;
    fmt::print("{:26} {:10.1f} {:10.2f} {:8.1f} {:7.0f}%\n", name, seconds * 1e6, seconds * 1e9 / entries, rate * 1e-9,
               100 * rate / copy_);
    std::fflush(stdout);
    if (settings_.jsonl.empty()) return;
    nlohmann::ordered_json const line{{"commit", settings_.commit},
                                      {"case", name},
                                      {"device", to_string(stream_.device())},
                                      {"processor", processor_},
                                      {"level", gpups::kernels::host_level_name()},
                                      {"threads", stream_.threads()},
                                      {"entries", settings_.size.n},
                                      {"dim", settings_.size.dim},
                                      {"ns_per_entry", seconds * 1e9 / entries},
                                      {"gb_per_s", rate * 1e-9},
                                      {"share_of_copy", rate / copy_}};
    std::ofstream file(settings_.jsonl, std::ios::app);
    if (file << line.dump() << '\n' << std::flush) return;
    fmt::print(stderr, "bench_kernels: {} cannot be written (results would be lost): check the path\n",
               settings_.jsonl);
    std::exit(2);
  }

  Settings const& settings_;
  Stream const& stream_;
  double copy_;
  std::string processor_ = processor_name();
};

void run(Stream& stream, gpups::test::KernelCase const& kernel, Settings const& settings, Reporter& reporter) {
  auto const problem = kernel.make(stream, settings.size, 2);
  auto const body = [&](benchmark::State& state) {
    for (auto _ : state) {
      problem.run(stream);
      stream.wait();
    }
    state.counters["entries"] = static_cast<double>(problem.entries);
    state.counters["bytes"] = static_cast<double>(problem.bytes);
  };
  benchmark::RegisterBenchmark(kernel.name, body)
      ->UseRealTime()
      ->MinTime(kRepetitionSeconds)
      ->Repetitions(kRepetitions);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::ClearRegisteredBenchmarks();
}

}  // namespace

int main(int argc, char** argv) try {
  benchmark::Initialize(&argc, argv);
  CLI::App app("Measures the speed of kernels");
  std::string device = "auto";
  int threads = 0;
  Settings settings;
  std::vector<std::string> names;
  app.add_option("--device", device, "auto, host or cuda:0")->capture_default_str();
  app.add_option("--threads", threads, "cores of a host stream; 0: all")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  app.add_option("--entries", settings.size.n, "entries of a batch")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 26));
  app.add_option("--dim", settings.size.dim, "columns of a row")->capture_default_str()->check(CLI::Range(1, 1 << 16));
  app.add_option("--jsonl", settings.jsonl, "file to which a line for each case is added");
  app.add_option("--commit", settings.commit, "name of the measured code, printed in each line");
  app.add_option("case", names, "the cases to run; none: all");
  CLI11_PARSE(app, argc, argv);

  auto const cases = gpups::test::kernel_cases();
  for (auto const& name : names) {
    if (std::any_of(cases.begin(), cases.end(), [&](auto const& kernel) { return kernel.name == name; })) continue;
    fmt::print(stderr, "bench_kernels: there is no case \"{}\" (nothing would be measured): use some of", name);
    for (auto const& kernel : cases) fmt::print(stderr, " {}", kernel.name);
    fmt::print(stderr, "\n");
    return 2;
  }
  if (!settings.jsonl.empty() && !std::ofstream(settings.jsonl, std::ios::app)) {
    fmt::print(stderr, "bench_kernels: {} cannot be written (results would be lost): use a file that can be written\n",
               settings.jsonl);
    return 2;
  }
  Stream stream(gpups::device_from(device), threads);
  Reporter reporter(settings, stream, copy_bytes_per_second(stream));
  for (auto const& kernel : cases) {
    if (names.empty() || std::find(names.begin(), names.end(), kernel.name) != names.end()) {
      run(stream, kernel, settings, reporter);
    }
  }
} catch (std::exception const& error) {
  fmt::print(stderr, "bench_kernels: {}\n", error.what());
  return 1;
}
