// SPDX-License-Identifier: Apache-2.0
// Formats of keys between ranks: which one a link has, the bytes, and equal tables with all of them.
#include "gpups/key_format.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "gpups/gpups.hpp"
#include "tests/cache/cluster.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test::key_format_test {
namespace {

constexpr std::uint64_t kKeys = 3000;  // of each batch

// Returns what rank 0 has sent as intents, for batches of the same keys, and the hash of its table.
struct SentKeys {
  std::uint64_t bytes = 0, hash = 0, late = 0;
};
SentKeys train_two(std::vector<Group> const& group, KeyFormat format, int batches) {
  SentKeys sent;
  run_ranks(group, [&](Group mine) {
    Store store(mine, {.threads = 1, .key_format = format});
    auto const table = store.add_table({.name = "t", .dim = 2});
    auto stream = store.make_stream();
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < kKeys; ++k) keys.push_back(Key{(k * 2654435761U) << 20});
    Matrix<float> const ones(Device::host(), kKeys, 2);
    for (float& x : ones.view().flat()) x = 1;
    TableBatch const part{.table = table, .keys = View<Key const>(keys)};
    TableGradients const gradients{.sources = ones};
    PreparedBatch batch;
    for (std::int64_t t = 0; t <= batches; ++t) {
      PreparedBatch next;
      if (t < batches) next = store.prepare(stream, Clock{t + 1}, {&part, 1}, 1);
      if (t > 0) {
        store.wait_ready(batch);
        store.push(stream, batch, {&gradients, 1});
      }
      store.advance_clock();
      store.wait_applied();
      batch = next;
    }
    auto const hash = store.table_hash();
    store.wait_barrier();
    if (mine.rank() == Rank{0}) sent = {store.stats().sent.intents, hash, store.stats().late_keys};
  });
  return sent;
}

TEST(KeyFormat, KeysArePlainOnFastLinksOnly) {
  auto const threads = train_two(Group::threads(2), KeyFormat::kAuto, 4);
  auto const plain = train_two(Group::threads(2), KeyFormat::kPlain, 4);
  auto const coded = train_two(Group::threads(2), KeyFormat::kDictionary, 4);
  auto const network = train_two(Group::simulated(2, {.seed = 1}), KeyFormat::kAuto, 4);
  EXPECT_EQ(threads.bytes, plain.bytes);
  EXPECT_EQ(network.bytes, coded.bytes);
  EXPECT_EQ(plain.late, 0U);
  // Rank 0 sends about half of the keys. They are new in one batch of four.
  EXPECT_NEAR(static_cast<double>(plain.bytes), 4 * 8 * kKeys / 2., 2000);
  EXPECT_LT(coded.bytes, plain.bytes * 45 / 100);
  for (auto const& other : {plain, coded, network}) EXPECT_EQ(other.hash, threads.hash);
}

TEST(KeyFormat, BatchesOfOneRoundTravelTogether) {
  for (int const ahead : {1, 2, 5}) {
    Workload workload{.steps = 9, .seed = 3, .keys = 200, .lookahead = ahead};
    auto const alone = train_all({Group::alone()}, workload);
    for (std::uint64_t formats = 0; formats < 9; ++formats) {
      workload.key_formats = formats;
      EXPECT_EQ(train_all(Group::threads(3), workload).hash, alone.hash) << formats << ", " << ahead << " steps ahead";
    }
  }
}

TEST(KeyFormat, FormatsHaveNames) {
  for (auto const format : kKeyFormats) EXPECT_EQ(key_format(name_of(format)), format);
  expect_error([] { key_format("gaps"); }, {"there is no key format 'gaps'", "auto, plain, dictionary"});
}

}  // namespace
}  // namespace gpups::test::key_format_test
