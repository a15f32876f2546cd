// SPDX-License-Identifier: Apache-2.0
// Bytes that ranks send for a push, all kinds but refreshes: with new keys, with known keys, and without a dictionary.
#include <gtest/gtest.h>

#include "gpups/gpups.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/gradient_bytes.hpp"

namespace gpups::test::gradient_bytes_test {
namespace {

TEST(GradientBytes, KnownKeysTakeAtMostTwoBytes) {
  constexpr std::size_t kRows = 10000;
  for (int const ranks : {2, 4}) {
    for (std::size_t const dim : {1, 10, 64}) {
      TableOptions const options{.dim = dim};
      // A rank sends the rows that it does not own: (ranks - 1) / ranks of them, on average over the ranks.
      double const sent = static_cast<double>(kRows) * (ranks - 1);
      auto const new_keys = gradient_bytes_per_key(ranks, 1, kRows, options, false).bytes;
      auto const both = gradient_bytes_per_key(ranks, 2, kRows, options, false).bytes;
      auto const dense = gradient_bytes_per_key(ranks, 1, kRows, options, true).bytes;
      double const width = 4 * static_cast<double>(dim);
      EXPECT_EQ(gradient_bytes_per_key(ranks, 2, kRows, options, false).other_bytes, 0U);
      EXPECT_LE(new_keys, sent * (width + 9) * 1.02) << ranks << " ranks, dim " << dim;
      EXPECT_LE(both - new_keys, sent * (width + 2) * 1.02) << ranks << " ranks, dim " << dim;
      EXPECT_LE(dense, sent * (width + 2) * 1.02) << ranks << " ranks, dim " << dim;
      EXPECT_GT(both - new_keys, sent * (width + 1)) << "gradients of 31 bits and a sign";
    }
  }
}

TEST(GradientBytes, KeysTakeEightBytesWithoutDictionary) {
  constexpr std::size_t kRows = 3000;
  TableOptions options{.dim = 3};
  auto const with = gradient_bytes_per_key(2, 5, kRows, options, false);
  options.dictionary_keys = 0;
  auto const without = gradient_bytes_per_key(2, 5, kRows, options, false);
  EXPECT_NEAR(without.bytes - with.bytes, 4 * 7 * kRows, 200);  // 8 bytes in place of 1, in all steps but the first
  options.dictionary_keys = 100;
  auto const few = gradient_bytes_per_key(2, 5, kRows, options, false);
  EXPECT_LT(few.bytes, without.bytes);
  EXPECT_GT(few.bytes, with.bytes);
  EXPECT_EQ(with.hash, without.hash);
  EXPECT_EQ(with.hash, few.hash);
  // Ranks that are threads send plain keys.
  auto const plain = gradient_bytes_per_key(2, 5, kRows, options, false, KeyFormat::kAuto);
  EXPECT_NEAR(plain.bytes, without.bytes - 5.0 / 4 * kRows, 200);  // 2 bits for each key in a list
  EXPECT_EQ(with.hash, plain.hash);
}

TEST(GradientBytes, MemoryPlanIncludesDictionaries) {
  auto const planned = [](int ranks, std::size_t keys, PlacementPolicy placement = PlacementPolicy::kStatic,
                          KeyFormat format = KeyFormat::kDictionary) {
    std::uint64_t bytes = 0;
    Store store(ranks == 1 ? Group::alone() : Group::threads(ranks)[0],
                {.placement = placement, .placement_bytes_min = 0, .key_format = format});
    store.add_table({.name = "t", .dim = 4, .expected_rows = 1 << 20, .dictionary_keys = keys});
    for (auto const& line : store.memory_plan()) {
      if (line.what == "table 't': key dictionaries, on the host") bytes = line.bytes;
    }
    return bytes;
  };
  EXPECT_EQ(planned(1, 1 << 20), 0U);
  EXPECT_EQ(planned(2, 0), 0U);
  EXPECT_EQ(planned(2, 100000, PlacementPolicy::kAdaptive, KeyFormat::kAuto), 0U);  // ranks that are threads
  EXPECT_GT(planned(2, 100000), 100000U * 18);
  EXPECT_LT(planned(2, 100000), 100000U * 32);
  EXPECT_EQ(planned(2, 1 << 20), planned(2, 1 << 21));  // at most as many keys as the other rank has rows
  EXPECT_NEAR(static_cast<double>(planned(4, 90000)), static_cast<double>(planned(2, 90000)), 90000 * 10);
  EXPECT_EQ(planned(4, 90000, PlacementPolicy::kAdaptive), 2 * planned(4, 90000));  // for forwards, too
}

TEST(GradientBytes, MemoryPlanIncludesResidualsAndMirrors) {
  auto const planned = [](int ranks, RowCompression const& gradient_compression,
                          RowCompression const& refresh_compression) {
    std::uint64_t bytes = 0;
    Store store(ranks == 1 ? Group::alone() : Group::threads(ranks)[0], {});
    store.add_table({.name = "t",
                     .dim = 64,
                     .expected_rows = 1 << 20,
                     .gradient_compression = gradient_compression,
                     .refresh_compression = refresh_compression});
    for (auto const& line : store.memory_plan()) bytes += line.bytes;
    return bytes;
  };
  RowCompression const few{.codec = RowCodec::kInt8, .capacity_rows = 100000},
      many{.codec = RowCodec::kInt8, .capacity_rows = 200000};
  EXPECT_EQ(planned(1, few, few), planned(1, {}, {}));
  for (int const ranks : {2, 4}) {
    auto const others = static_cast<std::uint64_t>(ranks - 1);
    auto const held = planned(ranks, few, {}) - planned(ranks, {}, {});
    EXPECT_GE(held, others * 100000 * 64 * 8);
    EXPECT_LT(held, others * 100000 * 64 * 8 * 3 / 2);
    auto const copied = planned(ranks, {}, few) - planned(ranks, {}, {});
    EXPECT_GE(copied, others * 100000 * 64 * 4 * 2);  // at both ends
    EXPECT_LT(copied, others * 100000 * 64 * 4 * 3);
    EXPECT_GT(planned(ranks, many, {}), planned(ranks, few, {}));
  }
  RowCompression const all{.codec = RowCodec::kInt8, .capacity_rows = std::size_t{1} << 21};
  EXPECT_LT(planned(2, all, {}), planned(2, {}, {}) + (std::uint64_t{1} << 20) * 64 * 8);  // for half of the rows
}

TEST(GradientBytes, RejectsTooLargeDictionary) {
  Store store(Group::alone(), {});
  expect_error([&] { store.add_table({.name = "t", .dim = 4, .dictionary_keys = std::size_t{1} << 31}); },
               {"table 't' has 2147483648 dictionary_keys", "lower dictionary_keys"});
}

}  // namespace
}  // namespace gpups::test::gradient_bytes_test
