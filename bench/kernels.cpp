// SPDX-License-Identifier: Apache-2.0
// Times every kernel's case: nanoseconds per entry, GB/s, and the share of what a copy of large arrays reaches here,
// all by the median call.
//   bench_kernels --device host --threads 2 --entries 61440 --dim 100 sum_gradients gather
// With --jsonl FILE each case also becomes a line of that file, for tools/compare.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gpups/array.hpp"
#include "tests/cases.hpp"

namespace {

using gpups::Stream;

// Times of a call in seconds, over at least a fifth of a second.
struct Timing {
  double median, best;
};

Timing time(Stream& stream, std::function<void(Stream&)> const& run) {
  using Clock = std::chrono::steady_clock;
  run(stream);
  stream.wait();
  std::vector<double> times;
  double total = 0;
  while (times.size() < 7 || total < 0.2) {
    auto const start = Clock::now();
    run(stream);
    stream.wait();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    total += times.back();
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front()};
}

double copy_bytes_per_second(Stream& stream) {
  std::size_t const n = std::size_t{64} << 20;
  gpups::Array<float> const from(stream.device(), n), to(stream.device(), n);
  gpups::memory::fill_bytes(stream, from.data(), 1, from.bytes());
  auto const timing = time(stream, [&](Stream& on) { gpups::copy<float>(on, to.view(), from.view()); });
  return 2.0 * static_cast<double>(from.bytes()) / timing.median;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times the kernels");
  std::string device = "auto";
  int threads = 0;
  gpups::test::CaseSize size{61440, 100};
  std::vector<std::string> names;
  std::string jsonl, commit;
  app.add_option("--device", device, "auto, host or cuda:0")->capture_default_str();
  app.add_option("--threads", threads, "cores of a host stream; 0: all")->capture_default_str();
  app.add_option("--entries", size.n, "entries of a batch")->capture_default_str();
  app.add_option("--dim", size.dim, "columns of a row")->capture_default_str();
  app.add_option("--jsonl", jsonl, "file to add a line for each case to");
  app.add_option("--commit", commit, "what the lines say of the code that was measured");
  app.add_option("case", names, "which cases; none: all");
  CLI11_PARSE(app, argc, argv);

  Stream stream(gpups::device_from(device), threads);
  double const copy = copy_bytes_per_second(stream);
  fmt::print("{}, {} threads, {} entries, dim {}; copy {:.1f} GB/s\n", to_string(stream.device()), stream.threads(),
             size.n, size.dim, copy * 1e-9);
  fmt::print("{:16} {:>10} {:>10} {:>10} {:>8} {:>8}\n", "case", "median us", "best us", "ns/entry", "GB/s", "of copy");
  for (auto const& kernel : gpups::test::kernel_cases()) {
    if (!names.empty() && std::find(names.begin(), names.end(), kernel.name) == names.end()) continue;
    auto const problem = kernel.make(stream, size, 2);
    auto const [median, best] = time(stream, problem.run);
    double const rate = static_cast<double>(problem.bytes) / median;
    fmt::print("{:16} {:10.1f} {:10.1f} {:10.2f} {:8.1f} {:7.0f}%\n", kernel.name, median * 1e6, best * 1e6,
               median * 1e9 / static_cast<double>(problem.entries), rate * 1e-9, 100 * rate / copy);
    if (jsonl.empty()) continue;
    nlohmann::ordered_json const line{{"commit", commit},
                                      {"case", kernel.name},
                                      {"device", to_string(stream.device())},
                                      {"threads", stream.threads()},
                                      {"entries", size.n},
                                      {"dim", size.dim},
                                      {"ns_per_entry", median * 1e9 / static_cast<double>(problem.entries)},
                                      {"gb_per_s", rate * 1e-9},
                                      {"share_of_copy", rate / copy}};
    std::ofstream file(jsonl, std::ios::app);
    if (!(file << line.dump() << '\n' << std::flush)) {
      fmt::print(stderr, "bench_kernels: {} cannot be written (results would be lost): check the path\n", jsonl);
      return 2;
    }
  }
}
