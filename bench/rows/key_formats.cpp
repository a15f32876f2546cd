// SPDX-License-Identifier: Apache-2.0
// Measures what the keys of a step cost at both ends, as plain keys and with key dictionaries: sorting at the reader,
// encoding, and decoding at the homes. The keys have a Zipf distribution. Prints a line of JSON with nanoseconds and
// bytes for a key.
//   key_formats --homes 7 --tables 26 --keys 4096
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <vector>

#include "cache/wire/key_dictionary.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/index/sort_keys.hpp"
#include "tests/support/inputs.hpp"
#include "trainer/base/random.hpp"

namespace gpups::bench {
namespace {

struct Options {
  std::size_t homes = 7, tables = 26, keys = 4096;  // entries of a table in a step
  std::uint64_t values = 10'000'000;
  std::int64_t warm_up = 20, steps = 20;
  bool hashed = false;  // whether keys are spread over 64 bits
  int threads = 1;
};

using Clocks = std::chrono::steady_clock;
double ns(Clocks::duration time) { return std::chrono::duration<double, std::nano>(time).count(); }

// Returns the distinct keys of a step for each home and table, in the order of first use.
std::vector<std::vector<Key>> keys_of_step(Options const& o, trainer::Zipf const& zipf, std::int64_t step) {
  std::vector<std::vector<Key>> lists(o.homes * o.tables);
  test::Random random(static_cast<std::uint64_t>(step) + 1);
  for (std::size_t t = 0; t < o.tables; ++t) {
    std::vector<Key> all(o.keys);
    for (Key& key : all) {
      key = Key{zipf(random)};
      if (o.hashed) key = Key{kernels::hash_of(key)};
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::shuffle(all.begin(), all.end(), random);
    for (Key const key : all) {
      auto const home = kernels::home_of(key, static_cast<std::uint32_t>(o.homes));
      lists[home * o.tables + t].push_back(key);
    }
  }
  return lists;
}

// Both ends of all lists of one rank.
class KeyLinks {
 public:
  explicit KeyLinks(Options const& o) : o_(o) {
    for (std::size_t i = 0; i < o.homes * o.tables; ++i) {
      encoders_.emplace_back(kCapacity);
      decoders_.emplace_back(kCapacity);
    }
  }

  // Nanoseconds, and bytes of the encoded keys.
  struct Cost {
    double sort, encode, decode;
    std::size_t bytes;
  };
  // Return the cost of the keys of a step.
  Cost code(std::vector<std::vector<Key>> const& keys) {
    auto const begin = Clocks::now();
    sort(keys);
    auto const sorted = Clocks::now();
    std::vector<std::vector<std::uint8_t>> wires(o_.homes);
    std::vector<cache::KeyEncoder::List> lists;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      lists.push_back({&encoders_[i], sorted_lists_[i], &wires[i / o_.tables]});
    }
    cache::KeyEncoder::encode(stream_, lists);
    auto const encoded = Clocks::now();
    std::size_t bytes = 0;
    for (std::size_t home = 0; home < o_.homes; ++home) {
      std::string_view wire(reinterpret_cast<char const*>(wires[home].data()), wires[home].size());
      bytes += wire.size();
      std::vector<cache::KeyDecoder::List> of_home;
      for (std::size_t i = home * o_.tables; i < (home + 1) * o_.tables; ++i) {
        of_home.push_back({&decoders_[i], keys[i].size()});
      }
      for (auto const& decoded : cache::KeyDecoder::decode(stream_, of_home, wire)) {
        checked_ += number(decoded.empty() ? Key{} : decoded.back());
      }
    }
    return {ns(sorted - begin), ns(encoded - sorted), ns(Clocks::now() - encoded), bytes};
  }
  double send_plain(std::vector<std::vector<Key>> const& keys) {
    auto const begin = Clocks::now();
    sort(keys);
    Array<Key> const joined(Device::host(), sorted_.size());
    kernels::concatenate_keys(stream_, sorted_lists_, joined);
    checked_ += joined.size() == 0 ? 0 : number(joined[joined.size() - 1]);
    return ns(Clocks::now() - begin);
  }
  std::uint64_t checked() const { return checked_; }

 private:
  static constexpr std::size_t kCapacity = std::size_t{1} << 20;

  void sort(std::vector<std::vector<Key>> const& keys) {
    std::size_t count = 0;
    for (auto const& list : keys) count += list.size();
    sorted_ = Array<Key>(Device::host(), count);
    positions_ = Array<std::uint32_t>(Device::host(), count);
    sorted_lists_.clear();
    std::vector<kernels::SortedKeys> lists;
    std::size_t first = 0;
    for (auto const& list : keys) {
      auto const there = sorted_.view().slice(first, list.size());
      lists.push_back({View<Key const>(list), there, positions_.view().slice(first, list.size())});
      sorted_lists_.push_back(there);
      first += list.size();
    }
    kernels::sort_keys(stream_, lists);
  }

  Options const& o_;
  Stream stream_{Device::host(), o_.threads};
  std::vector<cache::KeyEncoder> encoders_;
  std::vector<cache::KeyDecoder> decoders_;
  Array<Key> sorted_;
  Array<std::uint32_t> positions_;
  std::vector<View<Key const>> sorted_lists_;
  std::uint64_t checked_ = 0;  // so that results are used
};

void run(Options const& o) {
  trainer::Zipf const zipf(o.values, 1.05);
  KeyLinks links(o);
  std::vector<double> sorted, encoded, decoded, coded, plain, bytes;
  std::size_t count = 0;
  for (std::int64_t step = 1; step <= o.warm_up + o.steps; ++step) {
    auto const keys = keys_of_step(o, zipf, step);
    count = 0;
    for (auto const& list : keys) count += list.size();
    auto const cost = links.code(keys);
    double const of_plain = links.send_plain(keys), n = static_cast<double>(count);
    if (step <= o.warm_up) continue;
    sorted.push_back(cost.sort / n);
    encoded.push_back(cost.encode / n);
    decoded.push_back(cost.decode / n);
    coded.push_back((cost.sort + cost.encode + cost.decode) / n);
    plain.push_back(of_plain / n);
    bytes.push_back(static_cast<double>(cost.bytes) / n);
  }
  auto const median = [](std::vector<double> all) {
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    return all[all.size() / 2];
  };
  nlohmann::ordered_json const line{{"homes", o.homes},
                                    {"tables", o.tables},
                                    {"keys", count},
                                    {"sort_ns", median(sorted)},
                                    {"encode_ns", median(encoded)},
                                    {"decode_ns", median(decoded)},
                                    {"dictionary_ns", median(coded)},
                                    {"plain_ns", median(plain)},
                                    {"plain_share", median(plain) / median(coded)},
                                    {"bytes", median(bytes)},
                                    {"checked", links.checked()}};
  fmt::print("{}\n", line.dump());
}

}  // namespace
}  // namespace gpups::bench

int main(int argc, char** argv) {
  gpups::bench::Options options;
  CLI::App app("What the keys of a step cost, as plain keys and with key dictionaries");
  app.add_option("--homes", options.homes, "other ranks")->check(CLI::Range(1, 1000));
  app.add_option("--tables", options.tables, "tables")->check(CLI::Range(1, 1000));
  app.add_option("--keys", options.keys, "entries of a table in a step")->check(CLI::Range(1, 1 << 24));
  app.add_option("--values", options.values, "keys of the distribution")->check(CLI::PositiveNumber);
  app.add_option("--warm-up", options.warm_up, "steps before those that are measured")->check(CLI::Range(0, 100000));
  app.add_option("--steps", options.steps, "steps that are measured")->check(CLI::Range(1, 100000));
  app.add_flag("--hashed", options.hashed, "spread the keys over 64 bits");
  app.add_option("--threads", options.threads, "threads")->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, argc, argv);
  gpups::bench::run(options);
}
