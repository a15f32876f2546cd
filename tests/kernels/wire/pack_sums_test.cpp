// SPDX-License-Identifier: Apache-2.0
// Sums packed into the fewest bytes: bytes of a wrong size are rejected, and sums that overflow are reported.
#include "kernels/wire/pack_sums.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/row_storage.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {
namespace {

using Bytes = std::vector<std::uint8_t>;
using kernels::kNoRow;

bool found(Bytes const& bytes, std::size_t rows, std::size_t dim) {
  Stream stream(Device::host(), 1);
  Array<std::uint64_t> const starts(Device::host(), kernels::packed_blocks(rows) + 1);
  return kernels::wait_find_packed_rows(stream, {View<std::uint8_t const>(bytes), rows, dim}, starts);
}

TEST(PackSums, RejectsBytesOfWrongSize) {
  EXPECT_TRUE(found({}, 0, 5));
  EXPECT_FALSE(found({0}, 0, 5));
  EXPECT_TRUE(found({0x00}, 1, 5));
  EXPECT_TRUE(found({0x01, 1, 2, 3}, 1, 3));
  EXPECT_FALSE(found({0x01, 1, 2}, 1, 3));
  EXPECT_FALSE(found({0x01, 1, 2, 3, 4}, 1, 3));
  EXPECT_FALSE(found({}, 1, 3));
  EXPECT_TRUE(found({0x21, 1, 2, 2}, 2, 1));
  EXPECT_TRUE(found({0xF1, 1, 2, 2, 2, 2, 2, 2, 2, 2}, 2, 1));  // a width above 8 is 8
  // With an odd number of rows, half of the last width byte is not used; any value is accepted there.
  EXPECT_TRUE(found({0xF1, 1}, 1, 1));
  EXPECT_FALSE(found(Bytes(1 << 20, 0xFF), std::size_t{1} << 21, 65536));
}

TEST(PackSums, ReportsFirstRowThatOverflows) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  Stream stream(Device::host(), 1);
  for (std::size_t const dim : {1, 3, 8, 19}) {
    for (std::size_t const column : {std::size_t{0}, dim / 2, dim - 1}) {
      for (std::int64_t const sign : {1, -1}) {
        Matrix<std::int64_t> const from(Device::host(), 3, dim), into(Device::host(), 9, dim);
        memory::fill_bytes(stream, from.view().data(), 0, from.view().flat().bytes());
        memory::fill_bytes(stream, into.view().data(), 0, into.view().flat().bytes());
        std::vector<std::uint32_t> const order{0, 1, 2}, slots{7, 5, 6};
        from.row(1)[column] = from.row(2)[column] = sign;
        into.row(5)[column] = into.row(6)[column] = sign * kMost;
        if (sign < 0) into.row(5)[column] = into.row(6)[column] = -kMost - 1;
        auto const bytes = kernels::wait_pack_sums(stream, {from, View<std::uint32_t const>(order)});
        kernels::PackedRows const rows{bytes.memory.view().slice(0, bytes.size), 3, dim};
        Array<std::uint64_t> const starts(Device::host(), 2);
        ASSERT_TRUE(kernels::wait_find_packed_rows(stream, rows, starts));
        std::vector<std::uint32_t> bad_row{kNoRow};
        kernels::add_packed_sums(stream,
                                 {rows, starts, View<std::uint32_t const>(slots), into, View<std::uint32_t>(bad_row)});
        EXPECT_EQ(bad_row[0], 5U) << dim << ", " << column;
      }
    }
  }
}

}  // namespace
}  // namespace gpups::test
