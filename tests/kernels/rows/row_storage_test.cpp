// SPDX-License-Identifier: Apache-2.0
// Growing storage of rows: values of rows stay, and the allocated bytes are those that the storage reports.
#include "kernels/rows/row_storage.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::kernels::row_storage_test {
namespace {

constexpr std::size_t kSizes[] = {1, 2, 64, 65, 1000, kChunkRows - 1, kChunkRows, kChunkRows + 1, 5 * kChunkRows - 7};
// Rows of 8 MiB, of which a chunk has four.
constexpr std::size_t kWideRow = std::size_t{1} << 20, kWideSizes[] = {1, 3, 4, 5, 9};
constexpr Growth kGrowths[] = {Growth::kInPlace, Growth::kByMoving};

std::uint64_t number_in(std::size_t element) { return 1 + element * 0x9E3779B97F4A7C15; }

// Fills rows first .. end - 1 with their numbers.
void fill(Stream& stream, Rows<std::uint64_t> rows, std::size_t first, std::size_t end) {
  test::each_chunk(stream, rows, end, [&](std::size_t begin, View<std::uint64_t> chunk) {
    std::vector<std::uint64_t> numbers = to_host(stream, chunk);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::size_t const element = begin * rows.stride + i;
      if (element >= first * rows.stride) numbers[i] = number_in(element);
    }
    copy<std::uint64_t>(stream, chunk, View<std::uint64_t const>(numbers));
    stream.wait();
  });
}

void expect_contents_stay(Stream& stream, std::size_t stride, Growth growth, std::span<std::size_t const> sizes) {
  RowStorage<std::uint64_t> storage(stream.device(), stride, NewRows::kZero, growth);
  std::size_t before = 0;
  for (std::size_t const size : sizes) {
    storage.reserve(stream, size);
    ASSERT_GE(storage.rows_reserved(), size);
    auto const elements = test::to_host(stream, storage.const_ref(), storage.rows_reserved());
    for (std::size_t i = 0; i < elements.size(); ++i) {
      ASSERT_EQ(elements[i], i < before * stride ? number_in(i) : 0) << "element " << i << " of " << size << " rows";
    }
    fill(stream, storage.ref(), before, size);
    before = size;
  }
  storage.reserve(stream, 3);  // fewer than there are: nothing changes
  EXPECT_EQ(test::to_host(stream, storage.const_ref(), before).back(), number_in(before * stride - 1));
}

TEST(RowStorage, GrowthKeepsRowsAndZeroesNewOnes) {
  for (Device const device : test::devices()) {
    Stream stream(device, 2);
    for (Growth const growth : kGrowths) {
      for (std::size_t const stride : {1, 5}) expect_contents_stay(stream, stride, growth, kSizes);
      expect_contents_stay(stream, kWideRow, growth, kWideSizes);
    }
  }
}

// Kernels that are running keep pointers to the first rows.
TEST(RowStorage, InPlaceGrowthKeepsAddresses) {
  for (Device const device : test::devices()) {
    Stream stream(device, 2);
    RowStorage<std::uint64_t> storage(device, 3);
    storage.reserve(stream, 10);
    auto const then = storage.ref();
    fill(stream, then, 0, 10);
    auto const numbers = test::to_host(stream, then, 10);
    storage.reserve(stream, 3 * kChunkRows);
    EXPECT_EQ(storage.ref().chunks, then.chunks);
    EXPECT_EQ(test::to_host(stream, then, 10), numbers);
  }
}

// With these strides the allocator does not round sizes up.
TEST(RowStorage, AllocatesAsManyBytesAsItReports) {
  for (Device const device : test::devices()) {
    Stream stream(device, 2);
    for (Growth const growth : kGrowths) {
      for (std::size_t const stride : {2, 32}) {
        for (std::size_t const rows : kSizes) {
          std::size_t const before = memory::usage(device).bytes;
          RowStorage<std::int64_t> storage(device, stride, NewRows::kZero, growth);
          storage.reserve(stream, rows);
          std::size_t const taken = memory::usage(device).bytes - before;
          EXPECT_EQ(taken, storage.bytes()) << rows << " rows";
          EXPECT_EQ(taken, RowStorage<std::int64_t>::bytes_for(rows, stride, growth)) << rows << " rows";
        }
      }
    }
  }
}

TEST(RowStorage, FewMovableRowsNeedLittleMemory) {
  auto const bytes = [](std::size_t rows) { return RowStorage<std::int64_t>::bytes_for(rows, 32, Growth::kByMoving); };
  EXPECT_EQ(bytes(0), 0U);
  EXPECT_LE(bytes(1), 17U << 10);  // 64 rows, and the list of chunks
  for (std::size_t const rows : {64, 1000, 9000, 20000}) {
    EXPECT_LE(bytes(rows), 2 * rows * 32 * sizeof(std::int64_t) + 1024) << rows;
  }
  EXPECT_EQ(RowStorage<float>::bytes_for(1000, 0, Growth::kByMoving), 0U);
  EXPECT_GE(RowStorage<std::int64_t>::bytes_for(1, 32), kChunkRows * 32 * sizeof(std::int64_t));
}

// Such as the matrices of the relations of RESCAL.
TEST(RowStorage, FewWideRowsNeedLittleMemory) {
  std::size_t const stride = std::size_t{1} << 16, bytes = 474 * stride * sizeof(float);
  EXPECT_LE(RowStorage<float>::bytes_for(474, stride), bytes + (std::size_t{33} << 20));
}

}  // namespace
}  // namespace gpups::kernels::row_storage_test
