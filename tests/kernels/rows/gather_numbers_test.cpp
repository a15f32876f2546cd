// SPDX-License-Identifier: Apache-2.0
// Rows of many tables, of several dims and data types, are copied to one buffer and back in one launch each.
#include "kernels/rows/copy_rows.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/rows/number_type.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"
#include "tests/support/stream_calls.hpp"

namespace gpups::test::gather_numbers_test {
namespace {

using kernels::DataType;
using kernels::kNoRow;

// A table, and the rows of it that are sent.
struct Part {
  static constexpr std::size_t kRows = 50;
  DataType type;
  std::size_t dim;
  std::vector<std::byte> bytes;  // (kRows, stride): numbers, and zeros behind the columns
  std::vector<std::uint32_t> ids;
  kernels::ValueStorage storage;
  std::size_t at = 0;  // in the buffer

  std::size_t row_bytes() const { return kernels::row_stride(dim, type) * kernels::bytes_of_number(type); }
  std::size_t wire_row_bytes() const { return kernels::NumberView{nullptr, 1, dim, type}.bytes(); }
  std::size_t wire_bytes() const { return ids.size() * wire_row_bytes(); }
  kernels::NumberView view(Array<std::byte> const& buffer) const {
    return {buffer.data() + at, ids.size(), dim, type, buffer.device()};
  }
};

class GatherNumbers : public OnDevice {
 protected:
  // Cases without their device are skipped after construction.
  GatherNumbers() : stream_(devices().size() > 1 ? GetParam() : Device::host(), 3) {}

  void make(std::size_t count) {
    Random random(count);
    for (std::size_t p = 0; p < count; ++p) {
      Part part;
      part.type = std::array{DataType::kFloat, DataType::kHalf, DataType::kBFloat16}[p % 3];
      part.dim = std::array{16, 1, 7, 4, 100, 32, 33, 3}[p % 8];
      part.storage = {stream_.device(), part.dim, part.type};
      part.storage.reserve(stream_, Part::kRows);
      part.bytes.resize(Part::kRows * part.row_bytes());
      std::size_t const used = part.dim * kernels::bytes_of_number(part.type);
      for (std::size_t b = 0; b < part.bytes.size(); ++b) {
        if (b % part.row_bytes() < used) part.bytes[b] = static_cast<std::byte>(below(random, 256));
      }
      part.ids = distinct_ids(random, p % 5 == 1 ? 0 : below(random, Part::kRows), Part::kRows);
      part.at = buffer_bytes_;
      buffer_bytes_ = (part.at + part.wire_bytes() + 15) / 16 * 16;
      parts_.push_back(std::move(part));
    }
    for (auto const& part : parts_) ids_.push_back(to_device(stream_, part.ids));
  }
  void write(Part const& part, std::vector<std::byte> const& bytes) {
    each_chunk(stream_, part.storage.ref().as<std::byte>(), 1, [&](std::size_t, View<std::byte> chunk) {
      memory::copy(stream_, chunk.data(), stream_.device(), bytes.data(), Device::host(), bytes.size());
    });
    stream_.wait();
  }
  std::vector<std::byte> read(Part const& part) {
    std::vector<std::byte> bytes(part.bytes.size());
    each_chunk(stream_, part.storage.ref().as<std::byte>(), 1, [&](std::size_t, View<std::byte> chunk) {
      memory::copy(stream_, bytes.data(), Device::host(), chunk.data(), stream_.device(), bytes.size());
    });
    stream_.wait();
    return bytes;
  }
  // The buffer that the rows should give; bytes between parts are 0xAA.
  std::vector<std::byte> expected() const {
    std::vector<std::byte> buffer(buffer_bytes_, std::byte{0xAA});
    for (auto const& part : parts_) {
      for (std::size_t i = 0; i < part.ids.size(); ++i) {
        std::memcpy(buffer.data() + part.at + i * part.wire_row_bytes(),
                    part.bytes.data() + part.ids[i] * part.row_bytes(), part.wire_row_bytes());
      }
    }
    return buffer;
  }

  Stream stream_;
  std::vector<Part> parts_;
  std::vector<Array<std::uint32_t>> ids_;
  std::size_t buffer_bytes_ = 0;
};

TEST_P(GatherNumbers, CopiesRowsOfManyTablesInOneLaunch) {
  for (std::size_t const count : {1, 2, 26}) {
    parts_.clear();
    ids_.clear();
    buffer_bytes_ = 0;
    make(count);
    Array<std::byte> const buffer(stream_.device(), buffer_bytes_);
    memory::fill_bytes(stream_, buffer.data(), 0xAA, buffer.bytes());
    std::vector<kernels::GatherNumbers> gathered;
    std::vector<kernels::ScatterNumbers> stored;
    for (std::size_t p = 0; p < count; ++p) {
      auto const& part = parts_[p];
      write(part, part.bytes);
      gathered.push_back({part.storage.const_ref(), ids_[p], part.view(buffer)});
      stored.push_back({part.view(buffer), ids_[p], part.storage.ref()});
    }
    StreamCallCounter const counter(stream_);
    std::uint64_t const copies = GetParam().is_host() || count == 1 ? 0 : 1;
    kernels::gather_numbers(stream_, gathered);
    EXPECT_EQ(counter.calls(), (StreamCalls{1, 0, copies})) << count;
    EXPECT_EQ(to_host(stream_, buffer.view()), expected()) << count;

    // Rows that are not in the list keep their bytes; the padding of the others becomes zero.
    std::vector<std::vector<std::byte>> after;
    for (auto const& part : parts_) {
      std::vector<std::byte> bytes(part.bytes.size(), std::byte{0x55});
      write(part, bytes);
      for (auto const id : part.ids) {
        auto const row = static_cast<std::ptrdiff_t>(id * part.row_bytes());
        std::copy_n(part.bytes.begin() + row, part.row_bytes(), bytes.begin() + row);
      }
      after.push_back(std::move(bytes));
    }
    StreamCallCounter const stores(stream_);
    kernels::scatter_numbers(stream_, stored);
    EXPECT_EQ(stores.calls(), (StreamCalls{1, 0, copies})) << count;
    for (std::size_t p = 0; p < count; ++p) EXPECT_EQ(read(parts_[p]), after[p]) << p << " of " << count;
  }
}

TEST_P(GatherNumbers, SkipsEntriesWithoutRow) {
  make(1);
  Part& part = parts_[0];
  write(part, part.bytes);
  part.ids = {kNoRow, 3};
  auto const ids = to_device(stream_, part.ids);
  Array<std::byte> const buffer(stream_.device(), part.wire_bytes());
  memory::fill_bytes(stream_, buffer.data(), 0xAA, buffer.bytes());
  kernels::gather_numbers(stream_, {part.storage.const_ref(), ids, part.view(buffer)});
  auto const gathered = to_host(stream_, buffer.view());
  EXPECT_EQ(gathered[0], std::byte{0xAA});
  EXPECT_EQ(gathered[part.wire_row_bytes()], part.bytes[3 * part.row_bytes()]);
  kernels::scatter_numbers(stream_, {part.view(buffer), ids, part.storage.ref()});
  EXPECT_EQ(read(part), part.bytes);
}

// Rows of 2 MiB, of which a chunk has 16.
TEST_P(GatherNumbers, FindsWideRowsInTheirChunks) {
  constexpr std::size_t kDim = std::size_t{1} << 19, kRows = 34;
  kernels::ValueStorage storage(stream_.device(), kDim, DataType::kFloat);
  storage.reserve(stream_, kRows);
  each_chunk(stream_, storage.ref().as<float>(), kRows, [&](std::size_t first, View<float> chunk) {
    std::vector<float> numbers(chunk.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(first + i / kDim);
    copy<float>(stream_, chunk, View<float const>(numbers));
    stream_.wait();
  });
  std::vector<std::uint32_t> const from{33, 0, 16}, to{1, 32, 15};
  auto const from_ids = to_device(stream_, from), to_ids = to_device(stream_, to);
  Array<std::byte> const buffer(stream_.device(), from.size() * kDim * sizeof(float));
  kernels::NumberView const numbers{buffer.data(), from.size(), kDim, DataType::kFloat, buffer.device()};
  kernels::gather_numbers(stream_, {storage.const_ref(), from_ids, numbers});
  kernels::scatter_numbers(stream_, {numbers, to_ids, storage.ref()});
  auto const values = test::to_host(stream_, storage.const_ref().as<float>(), kRows);
  for (std::size_t row = 0; row < kRows; ++row) {
    auto const moved = std::find(to.begin(), to.end(), row);
    std::size_t const source = moved == to.end() ? row : from[static_cast<std::size_t>(moved - to.begin())];
    ASSERT_EQ(values[row * kDim], static_cast<float>(source));
    ASSERT_EQ(values[(row + 1) * kDim - 1], static_cast<float>(source));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GatherNumbers, kDevices, device_name);

}  // namespace
}  // namespace gpups::test::gather_numbers_test
