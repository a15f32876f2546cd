// SPDX-License-Identifier: Apache-2.0
// Measures the search for keys at several loads of the index's buckets: all, half or none of the keys of a batch exist.
//   bench_find_loads --threads 2 --million-keys 32
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "bench/against/random_key.hpp"
#include "kernels/index/key_index.hpp"
#include "tests/support/inputs.hpp"

namespace {

using gpups::Key;
using gpups::Stream;
using gpups::bench::random_key;
using gpups::kernels::KeyIndex;

constexpr std::size_t kBatch = std::size_t{1} << 20;

// Returns an index of `keys` keys whose slots are filled to this load.
KeyIndex index_at(Stream& stream, std::size_t keys, double load) {
  KeyIndex index(stream.device(), static_cast<std::size_t>(static_cast<double>(keys) * .75 / load));
  gpups::Array<std::uint32_t> ids(stream.device(), kBatch);
  std::vector<Key> batch;
  for (std::size_t n = 0; n < keys;) {
    batch.clear();
    for (; n < keys && batch.size() < kBatch; ++n) batch.push_back(random_key(n));
    index.wait_find_or_insert(stream, to_device(stream, batch), ids);
  }
  return index;
}

// Returns keys per second, the median of eleven batches. Keys are drawn from `range` numbers that begin with `first`.
double rate(Stream& stream, KeyIndex const& index, std::size_t first, std::size_t range) {
  gpups::test::Random random(1);
  gpups::Array<std::uint32_t> ids(stream.device(), kBatch);
  std::vector<double> seconds;
  for (int run = 0; run < 11; ++run) {
    std::vector<Key> keys(kBatch);
    for (Key& key : keys) key = random_key(first + gpups::test::below(random, range));
    auto const batch = to_device(stream, keys);
    auto const start = std::chrono::steady_clock::now();
    index.find(stream, batch, ids);
    stream.wait();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + 5, seconds.end());
  return static_cast<double>(kBatch) / seconds[5];
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measures the search for keys at several loads");
  std::string device = "auto";
  int threads = 0;
  std::size_t millions = 32;
  app.add_option("--device", device, "auto, host or cuda:0")->capture_default_str();
  app.add_option("--threads", threads, "cores of a host stream; 0: all")->capture_default_str();
  app.add_option("--million-keys", millions, "keys in the index, in 2^20")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  Stream stream(gpups::device_from(device), threads);
  std::size_t const keys = millions << 20;
  fmt::print("{}, {} threads, {} keys, batches of {}; M keys/s\n", to_string(stream.device()), stream.threads(), keys,
             kBatch);
  fmt::print("{:>5} {:>10} {:>10} {:>10}\n", "load", "all exist", "half", "none");
  for (double const load : {.5, .6, .7, .75, .8, .849}) {
    auto const index = index_at(stream, keys, load);
    fmt::print("{:5.2f} {:10.1f} {:10.1f} {:10.1f}\n", load, rate(stream, index, 0, keys) * 1e-6,
               rate(stream, index, 0, 2 * keys) * 1e-6, rate(stream, index, keys, keys) * 1e-6);
    std::fflush(stdout);
  }
}
