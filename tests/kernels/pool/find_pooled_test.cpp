// SPDX-License-Identifier: Apache-2.0
// Pooling by key gives the same bits as pooling by row number, for any number of entries that a thread handles at a
// time.
#include "kernels/pool/pool.hpp"

#include <gtest/gtest.h>

#include "kernels/index/key_index.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::kernels::find_pooled_test {
namespace {

constexpr std::size_t kRows = 3000, kDim = 20;

// The parameter is the number of entries of each bag. About a tenth of the keys have no row.
class FindPooledBags : public testing::TestWithParam<std::vector<std::uint32_t>> {
 protected:
  FindPooledBags() {
    test::Random random(3);
    std::size_t const stride = row_stride(kDim);
    rows_ = test::rows(stream_, test::floats(random, kRows, kDim), kRows, stride);
    auto const known = to_device(stream_, test::distinct_keys(kRows));
    Array<std::uint32_t> const numbers(stream_.device(), kRows);
    index_.wait_find_or_insert(stream_, known, numbers);
    for (std::uint32_t count : GetParam()) offsets_.push_back(offsets_.back() + count);
    for (std::uint32_t e = 0; e < offsets_.back(); ++e) {
      keys_.push_back(test::scrambled(test::below(random, kRows * 11 / 10)));
    }
  }

  Matrix<float> pooled(PooledTable table) {
    auto const offsets = to_device(stream_, offsets_);
    Matrix<float> out(stream_.device(), GetParam().size(), kDim);
    table.rows = rows_.const_ref();
    table.offsets = offsets;
    table.out = out;
    find_pooled(stream_, {{&table, 1}});
    return out;
  }

  Stream stream_{Device::host(), 2};
  RowStorage<float> rows_;
  KeyIndex index_{Device::host(), kRows};
  std::vector<std::uint32_t> offsets_{0};
  std::vector<Key> keys_;
};

TEST_P(FindPooledBags, PoolingByKeyEqualsPoolingByRowId) {
  auto const keys = to_device(stream_, keys_);
  Array<std::uint32_t> const ids(stream_.device(), keys_.size()), found(stream_.device(), keys_.size());
  index_.find(stream_, keys, ids);
  auto const by_key = to_host(stream_, pooled({.index = index_.buckets(), .keys = keys, .found = found}).view().flat());
  auto const by_number = to_host(stream_, pooled({.ids = ids}).view().flat());
  EXPECT_EQ(by_key, by_number);
  EXPECT_EQ(to_host(stream_, found.view()), to_host(stream_, ids.view()));
}

INSTANTIATE_TEST_SUITE_P(All, FindPooledBags,
                         testing::Values(std::vector<std::uint32_t>{1}, std::vector<std::uint32_t>{10'000},
                                         std::vector<std::uint32_t>{1, 0, 4095, 2, 0, 1},
                                         std::vector<std::uint32_t>(2000, 5),
                                         std::vector<std::uint32_t>{4096, 256, 4097, 64, 1}));

// At this load some keys are many buckets away from their first bucket.
TEST(FindPooled, FindsKeysAtMaximalLoad) {
  Stream stream(Device::host(), 2);
  KeyIndex index(Device::host(), kRows);
  auto const count = static_cast<std::uint32_t>(index.capacity());
  Array<std::uint32_t> const numbers(stream.device(), count), found(stream.device(), 2 * count);
  index.wait_find_or_insert(stream, to_device(stream, test::distinct_keys(count)), numbers);
  auto const keys = to_device(stream, test::distinct_keys(2 * count));
  RowStorage<float> const rows = test::rows(stream, std::vector<float>(count * 16, 1), count, 16);
  Matrix<float> const out(stream.device(), 2 * count, 16);
  PooledTable const table{.rows = rows.const_ref(), .index = index.buckets(), .keys = keys, .out = out, .found = found};
  find_pooled(stream, {{&table, 1}});
  auto const ids = to_host(stream, found.view());
  auto const values = to_host(stream, out.view().flat());
  for (std::uint32_t k = 0; k < 2 * count; ++k) {
    EXPECT_EQ(ids[k], k < count ? k : kNoRow);
    EXPECT_EQ(values[k * 16], k < count ? 1 : 0);
  }
}

}  // namespace
}  // namespace gpups::kernels::find_pooled_test
