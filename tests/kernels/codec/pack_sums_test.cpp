// SPDX-License-Identifier: Apache-2.0
// Sums packed into the fewest bytes: bytes of a wrong size are rejected, and sums that overflow are reported. Many
// parts give the bytes of one call for each, and need the launches of one.
#include "kernels/codec/pack_sums.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/rows/row_storage.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"
#include "tests/support/stream_calls.hpp"

namespace gpups::test::pack_sums_test {
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

// Rows with numbers of random widths. Some rows are zero.
std::vector<std::int64_t> sums_of_widths(Random& random, std::size_t rows, std::size_t dim) {
  std::size_t const stride = row_stride(dim);
  std::vector<std::int64_t> sums(rows * stride, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    std::uint64_t const bits = 8 * below(random, 9);
    for (std::size_t j = 0; j < dim && bits > 0; ++j) {
      sums[i * stride + j] = static_cast<std::int64_t>(random()) >> (64 - bits);
    }
  }
  return sums;
}

// The parts of one packing: matrices, and the rows of them that are packed.
struct Parts {
  std::vector<Matrix<std::int64_t>> sums;
  std::vector<Array<std::uint32_t>> order;
  std::vector<kernels::PackSums> parts;

  Parts(Stream& stream, std::size_t count, std::size_t rows_max) {
    Random random(count);
    for (std::size_t p = 0; p < count; ++p) {
      std::size_t const dim = std::array{16, 1, 7, 40, 64}[p % 5];
      std::size_t const rows = 1 + below(random, rows_max), n = p % 6 == 2 ? 0 : below(random, rows + 1);
      sums.push_back(matrix(stream, sums_of_widths(random, rows, dim), rows, dim));
      order.push_back(to_device(stream, distinct_ids(random, n, rows)));
    }
    for (std::size_t p = 0; p < count; ++p) parts.push_back({sums[p], order[p]});
  }
};

// Packs each part in a call of its own, on the host.
std::vector<Bytes> packed_apart(std::size_t count, std::size_t rows_max) {
  Stream stream(Device::host(), 1);
  Parts const all(stream, count, rows_max);
  std::vector<Bytes> packed;
  for (auto const& part : all.parts) {
    auto const bytes = kernels::wait_pack_sums(stream, part);
    packed.push_back(to_host(stream, bytes.memory.view().slice(0, bytes.size)));
  }
  return packed;
}

kernels::PackedParts wait_pack_all(Stream& stream, Parts const& all) {
  auto packed = kernels::pack_sums(stream, all.parts);
  packed.set_places(to_host(stream, packed.places.view()));
  return packed;
}

std::uint32_t wait_first_wrong(Stream& stream, std::vector<kernels::PackedRowStarts> const& parts) {
  Array<std::uint32_t> const wrong(stream.device(), 1);
  kernels::find_packed_rows(stream, parts, wrong);
  return to_host(stream, wrong.view())[0];
}

class PackManySums : public OnDevice {};

TEST_P(PackManySums, GivesTheBytesOfEachPart) {
  constexpr std::size_t kRowsMax = 700;
  for (std::size_t const count : {1, 2, 12, 300}) {
    std::size_t const rows_max = count == 12 ? kRowsMax : 40;
    for (int const threads : {1, 3}) {
      Stream stream(GetParam(), threads);
      Parts const all(stream, count, rows_max);
      StreamCallCounter const counter(stream);
      auto const packed = wait_pack_all(stream, all);
      std::uint64_t const launches = GetParam().is_host() ? 1 : 5, copies = GetParam().is_host() ? 0 : 2;
      EXPECT_EQ(counter.calls(), (StreamCalls{launches, 1, copies})) << count;
      auto const expected = packed_apart(count, rows_max);
      auto const bytes = to_host(stream, packed.memory.view().slice(0, packed.first[count]));
      std::size_t at = 0;
      for (std::size_t p = 0; p < count; ++p) {
        EXPECT_EQ(packed.first[p], at);
        ASSERT_EQ(packed.size[p], expected[p].size()) << p << " of " << count;
        auto const begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        EXPECT_EQ(Bytes(begin, begin + static_cast<std::ptrdiff_t>(packed.size[p])), expected[p]) << p;
        for (at += packed.size[p]; at % kernels::kPackedAlignment != 0; ++at) EXPECT_EQ(bytes[at], 0U);
      }
      EXPECT_EQ(at, packed.first[count]);
    }
  }
}

TEST_P(PackManySums, AreAddedTogether) {
  for (std::size_t const count : {1, 2, 12, 60}) {
    Stream stream(GetParam(), 3);
    Parts const all(stream, count, 100);
    auto const packed = wait_pack_all(stream, all);
    std::vector<Array<std::uint64_t>> starts;
    std::vector<Matrix<std::int64_t>> into;
    std::vector<kernels::PackedRowStarts> found;
    std::vector<kernels::AddPackedSums> added;
    auto const bad_row = to_device(stream, std::vector<std::uint32_t>{kNoRow});
    for (std::size_t p = 0; p < count; ++p) {
      auto const& part = all.parts[p];
      kernels::PackedRows const rows{packed.memory.view().slice(packed.first[p], packed.size[p]), part.order.size(),
                                     part.sums.columns()};
      starts.emplace_back(stream.device(), kernels::packed_blocks(rows.rows) + 1);
      into.emplace_back(stream.device(), part.sums.rows(), rows.dim);
      memory::fill_bytes(stream, into.back().view().data(), 0, into.back().view().flat().bytes());
      found.push_back({rows, starts.back()});
      added.push_back({rows, starts.back(), part.order, into.back(), bad_row});
    }
    StreamCallCounter const counter(stream);
    EXPECT_EQ(wait_first_wrong(stream, found), kNoRow);
    kernels::add_packed_sums(stream, added);
    bool const host = GetParam().is_host();
    EXPECT_EQ(counter.calls().waits, 1U);
    EXPECT_EQ(counter.calls().launches, host ? 2U : 4U);
    EXPECT_EQ(to_host(stream, bad_row.view())[0], kNoRow);
    for (std::size_t p = 0; p < count; ++p) {
      auto const sums = to_host(stream, all.sums[p].view().flat()), sum = to_host(stream, into[p].view().flat());
      std::vector<std::int64_t> expected(sums.size(), 0);
      std::size_t const stride = all.sums[p].stride();
      for (auto const row : to_host(stream, all.order[p].view())) {
        std::copy_n(sums.begin() + static_cast<std::ptrdiff_t>(row * stride), stride,
                    expected.begin() + static_cast<std::ptrdiff_t>(row * stride));
      }
      EXPECT_EQ(sum, expected) << p << " of " << count;
    }
    // A part whose bytes are too few, with and without all of its widths.
    for (std::size_t const wrong : {count - 1, count / 2}) {
      auto cut = found;
      auto const bytes = cut[wrong].rows.bytes;
      if (bytes.empty()) continue;
      for (std::size_t const size : {bytes.size() - 1, std::size_t{0}}) {
        cut[wrong].rows.bytes = bytes.slice(0, size);
        EXPECT_EQ(wait_first_wrong(stream, cut), wrong);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, PackManySums, kDevices, device_name);

}  // namespace
}  // namespace gpups::test::pack_sums_test
