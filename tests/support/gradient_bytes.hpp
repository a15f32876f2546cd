// SPDX-License-Identifier: Apache-2.0
// Bytes that ranks send when each pushes gradients for the same rows, without the values of rows.
#pragma once

#include <cstdint>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::test {

struct Sent {
  double bytes = 0;               // of all ranks
  std::uint64_t other_bytes = 0;  // late fetches, look-ups and allreduces, which should not occur
  std::uint64_t hash = 0;
};

// Every rank pushes gradients of magnitude up to 2 for the same rows in each of `pushes` steps.
inline Sent gradient_bytes_per_key(int ranks, int pushes, std::size_t rows, TableOptions options, bool dense_keys,
                                   KeyFormat key_format = KeyFormat::kDictionary) {
  std::mutex mutex;
  Sent sent;
  options.name = std::string("t");
  run_ranks(Group::threads(ranks), [&](Group group) {
    Store store(group, {.threads = 1, .key_format = key_format});
    auto const id = store.add_table(options);
    auto stream = store.make_stream();
    std::mt19937_64 random(1);
    std::vector<Key> keys;
    for (std::size_t i = 0; i < rows; ++i) keys.push_back(Key{dense_keys ? 7 * i : random()});
    Matrix<float> const sources(Device::host(), rows, options.dim);
    for (std::size_t i = 0; i < rows; ++i) {
      for (float& x : sources.row(i)) x = static_cast<float>(static_cast<std::int64_t>(random()) >> 40) * 0x1p-22F;
    }
    TableBatch const part{.table = id, .keys = View<Key const>(keys)};
    PreparedBatch batch;
    for (std::int64_t t = 0; t <= pushes; ++t) {
      PreparedBatch next;
      // A step ahead, so that the intent is sent in the round.
      if (t < pushes) next = store.prepare(stream, Clock{t + 1}, {&part, 1}, 1);
      if (t > 0) {
        store.wait_ready(batch);
        TableGradients const gradients{.sources = sources};
        store.push(stream, batch, {&gradients, 1});
      }
      store.advance_clock();
      store.wait_applied();
      batch = next;
    }
    auto const stats = store.stats();
    auto const hash = store.table_hash();
    store.wait_barrier();
    std::lock_guard const lock(mutex);
    sent.bytes += static_cast<double>(stats.sent.gradients + stats.sent.intents + stats.sent.control);
    sent.other_bytes += stats.sent.late_fetches + stats.sent.lookups + stats.sent.allreduces;
    sent.hash = hash;
  });
  return sent;
}

}  // namespace gpups::test
