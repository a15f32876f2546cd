// SPDX-License-Identifier: Apache-2.0
// A rank whose rows count their uses, so that each read and each sum can be checked exactly.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/base/hash.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::test {

// Returns the n-th key with this home, of two ranks.
inline Key key_of_home(std::uint32_t home, int n) {
  for (std::uint64_t key = 0;; ++key) {
    if (kernels::home_of(Key{key}, 2) == home && n-- == 0) return Key{key};
  }
}

inline constexpr std::size_t kDim = 8;  // wide enough for a move to take fewer bytes than a value and a gradient

// A store with a table of counters: every entry of a batch adds 1 to its row, and all numbers are exact.
class CountingRank {
 public:
  CountingRank(Group const& group, StoreOptions options, TableOptions counters = {.expected_rows = 4096})
      : store(group, with_threads(options)) {
    counters.name = "counters";
    counters.dim = kDim;
    counters.initializer = {Initializer::Kind::kConstant, 0};
    counters.optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 1};
    table = store.add_table(counters);
    stream = store.make_stream();
  }

  // parts: into which the keys are divided.
  PreparedBatch prepare(std::int64_t step, std::vector<Key> const& keys, std::size_t samples = 1,
                        std::size_t parts = 1) {
    auto const keys_there = to_device(stream, keys);
    std::vector<TableBatch> batch;
    for (std::size_t p = 0; p < parts; ++p) {
      std::size_t const first = keys.size() * p / parts, end = keys.size() * (p + 1) / parts;
      batch.push_back({.table = table, .keys = keys_there.view().slice(first, end - first)});
    }
    return store.prepare(stream, Clock{step}, batch, samples);
  }

  // Trains a step. Returns the counters that it reads, by key.
  std::map<Key, float> train(PreparedBatch const& batch, float gradient = -1) {
    store.wait_ready(batch);
    std::vector<Matrix<float>> rows, sources;
    std::vector<MatrixView<float>> views;
    std::vector<TableGradients> gradients;
    for (std::size_t p = 0; p < batch.parts(); ++p) {
      views.push_back(rows.emplace_back(stream.device(), batch.rows(p), kDim));
      // The step divides by the samples of all ranks, one for each.
      Matrix<float> const of_entries(Device::host(), batch.entries(p), kDim);
      auto const all = of_entries.view().flat();
      std::fill_n(of_entries.view().data(), all.size(), gradient * static_cast<float>(store.ranks()));
      gradients.push_back({.sources = sources.emplace_back(moved<float const>(stream, stream.device(), of_entries))});
    }
    store.pull(stream, batch, views);
    std::map<Key, float> read;
    for (std::size_t p = 0; p < batch.parts(); ++p) {
      auto const values = moved<float const>(stream, Device::host(), rows[p].view());
      auto const keys = to_host(stream, batch.keys(p));
      for (std::size_t row = 0; row < keys.size(); ++row) read[keys[row]] = values.row(row)[0];
    }
    store.push(stream, batch, gradients);
    store.advance_clock();
    return read;
  }

  // Ends training: no gradient waits afterwards.
  void flush() {
    store.flush_residuals();
    store.advance_clock();
    store.wait_barrier();
  }

  std::vector<float> lookup(std::vector<Key> const& keys) {
    Matrix<float> const out(stream.device(), keys.size(), kDim);
    store.lookup(stream, table, to_device(stream, keys), out, {});
    auto const values = moved<float const>(stream, Device::host(), out.view());
    std::vector<float> counters;
    for (std::size_t i = 0; i < keys.size(); ++i) counters.push_back(values.row(i)[0]);
    return counters;
  }

  Store store;
  TableId table{};
  Stream stream{Device::host(), 1};  // of the store's device

 private:
  static StoreOptions with_threads(StoreOptions options) {
    options.placement_bytes_min = 0;
    options.threads = 1;
    return options;
  }
};

}  // namespace gpups::test
