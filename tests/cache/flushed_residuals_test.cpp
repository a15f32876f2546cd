// SPDX-License-Identifier: Apache-2.0
// Gradients that a filter has delayed, and the bytes that they take when they are flushed.
#include "tests/cache/residuals_fixture.hpp"

namespace gpups::test::residuals::flushed_residuals_test {
namespace {

// Small gradients after large ones are delayed and then flushed with their keys. Sent bytes plus saved bytes are still
// the uncompressed bytes, each counted once.
TEST(FlushedResiduals, FlushedBytesAreNotCountedAsSaved) {
  run_ranks(Group::threads(2), [&](Group mine) {
    Store store(mine, {.threads = 1});
    store.add_table(table({.filter = {.age_max = 3, .density = 0}}));
    auto const after = [&](int s, int amount) {
      Part part;
      for (std::uint64_t k = 0; amount != 0 && k < 1000; ++k) {
        part.push_back({Key{k * 0x9E3779B97F4A7C15U}, std::vector<int>(kDim, amount)});
      }
      EXPECT_FALSE(step(store, {.idle_share = 0}, s, {part}, false));
      store.wait_barrier();
      return store.stats();
    };
    auto const plain = [](Stats const& stats) { return stats.remote_keys * kDim * sizeof(float); };
    auto const all = after(0, 100), held = after(1, 1);
    EXPECT_EQ(all.sent.gradients + all.saved_bytes.gradients, plain(all));
    EXPECT_LT(held.sent.gradients - all.sent.gradients, all.remote_keys) << "gradients of the second step are delayed";
    EXPECT_EQ(held.sent.gradients + held.saved_bytes.gradients, plain(held));
    Stats late = held;
    for (int s = 2; s < 7; ++s) late = after(s, 0);
    EXPECT_EQ(late.remote_keys, held.remote_keys);
    EXPECT_GT(late.sent.gradients - held.sent.gradients, all.remote_keys * (8 + kDim));
    EXPECT_EQ(late.sent.gradients + late.saved_bytes.gradients, plain(held));
  });
}

// Returns the bytes for the key of a flushed row, beside its sums of one byte each. Rank 1 pushes the gradients, in
// batches that are announced ahead, so that their keys get slots.
double late_key_bytes(std::size_t dictionary_keys) {
  constexpr std::uint64_t kKeys = 2000;
  double bytes = 0;
  run_ranks(Group::threads(2), [&](Group mine) {
    Store store(mine, {.threads = 1, .key_format = KeyFormat::kDictionary});
    auto options = table({.filter = {.age_max = 3, .density = 0}});
    options.dictionary_keys = dictionary_keys;
    store.add_table(options);
    auto stream = store.make_stream();
    std::vector<Key> keys;
    for (std::uint64_t k = 0; number(mine.rank()) == 1 && k < kKeys; ++k) keys.push_back(Key{~k * 0x9E3779B97F4A7C15U});
    Matrix<float> const sources(Device::host(), keys.size(), kDim);
    auto const bring = [&](PreparedBatch const& batch, float amount) {
      for (std::size_t e = 0; e < keys.size(); ++e) std::fill_n(sources.row(e).begin(), kDim, amount);
      TableGradients const gradients{.sources = sources};
      store.wait_ready(batch);
      store.push(stream, batch, {&gradients, 1});
      stream.wait();
    };
    auto const end_step = [&] {
      store.advance_clock();
      store.wait_applied();
      store.wait_barrier();
      return store.stats();
    };
    TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
    auto const prepare = [&](int step) { return store.prepare(stream, Clock{step}, {&part, 1}, kSamples / 2); };
    auto const first = prepare(1), second = prepare(2);
    end_step();
    bring(first, 100);  // all rows are sent, and the threshold follows them
    end_step();
    bring(second, 1);
    auto const held = end_step();
    Stats late = held;
    for (int s = 3; s < 8; ++s) late = end_step();
    auto const rows = static_cast<double>(late.remote_keys) / 2;
    if (number(mine.rank()) == 1) {
      bytes = static_cast<double>(late.sent.gradients - held.sent.gradients) / rows - kDim - 0.5;
      EXPECT_GT(rows, kKeys / 3.0);
    }
    Sums sums;
    for (std::uint64_t k = 0; k < kKeys; ++k)
      sums[Key{~k * 0x9E3779B97F4A7C15U}] = std::vector<std::int64_t>(kDim, 101);
    EXPECT_EQ(wrong_numbers(store, sums), 0U);
  });
  return bytes;
}

TEST(FlushedResiduals, KeysAreSentAsDictionarySlots) {
  constexpr double kForm = .25;  // two bits for each key
  EXPECT_NEAR(late_key_bytes(1 << 20), 1 + kForm, 0.05);
  EXPECT_NEAR(late_key_bytes(0), 8 + kForm, 0.05);
  double const some = late_key_bytes(500);  // of about a thousand
  EXPECT_GT(some, 2);
  EXPECT_LT(some, 7);
}

}  // namespace
}  // namespace gpups::test::residuals::flushed_residuals_test
