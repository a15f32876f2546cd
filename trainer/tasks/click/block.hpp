// SPDX-License-Identifier: Apache-2.0
// A block of samples as columns: how it is made, checked and read. Its bytes are the same in memory and in a file.
//
// A block of n samples begins with a ColumnEntry for each column. The columns follow, each at the next multiple of 8:
//   label              (n) u8 if all labels are 0 or 1, else f32
//   each number        (n) f32, NaN where missing
//   each category      ids of values, (n) or one for each value: u32 if each id is below 2^32 or missing, else u64
//     of many values   before the ids, offsets (n + 1) u32: values of sample i are offsets[i] .. offsets[i + 1] - 1
//     of weighted ones after the ids, weights f32, one for each value
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/tasks/click/layout.hpp"
#include "trainer/tasks/click/samples.hpp"
#include "trainer/tasks/click/text/text_cells.hpp"

namespace gpups::trainer {

// The most values in a block, which is therefore smaller than 4 GiB.
constexpr std::size_t kBlockValuesMax = std::size_t{1} << 22;

// Where a column of a block is, and how its elements are stored.
struct ColumnEntry {
  std::uint32_t begin = 0;    // bytes from the start of the block
  std::uint32_t width = 0;    // bytes of an element
  std::uint32_t missing = 0;  // for ids of 4 bytes: the number that stands for kMissingId; no id is equal to it
};

// The columns of a block with a certain layout.
struct BlockShape {
  struct CategoryColumn {
    CategoryField::Kind kind;
    std::size_t values;  // column of the ids; offsets are in the column before it, weights in the one after it
  };

  explicit BlockShape(Layout const& layout);

  std::size_t numbers;  // in columns 1 .. numbers
  std::vector<CategoryColumn> categories;
  std::size_t columns;
  bool lists = false, weighted = false;  // whether any category has many values, or weights
};

// The ids of a column, of 4 or 8 bytes each.
class IdColumn {
 public:
  IdColumn(std::byte const* block, ColumnEntry column)
      : begin_(block + column.begin), narrow_(column.width == sizeof(std::uint32_t)), missing_(column.missing) {}

  std::uint64_t operator[](std::size_t i) const { return narrow_ ? narrow_id(i) : wide_id(i); }
  // Calls use(i, ids[first + i]) for i = 0 .. count - 1.
  template <class Use>
  void each(std::size_t first, std::size_t count, Use use) const {
    if (narrow_) {
      for (std::size_t i = 0; i < count; ++i) use(i, narrow_id(first + i));
    } else {
      for (std::size_t i = 0; i < count; ++i) use(i, wide_id(first + i));
    }
  }

 private:
  std::uint64_t narrow_id(std::size_t i) const {
    std::uint32_t const id = reinterpret_cast<std::uint32_t const*>(begin_)[i];
    return id == missing_ ? kMissingId : id;
  }
  std::uint64_t wide_id(std::size_t i) const { return reinterpret_cast<std::uint64_t const*>(begin_)[i]; }

  std::byte const* begin_;
  bool narrow_;
  std::uint32_t missing_;
};

// Reads the columns of a block in place. REQUIRES: check_block() finds nothing wrong with the block.
class BlockView {
 public:
  BlockView(BlockShape const& shape, std::byte const* block, std::size_t samples)
      : shape_(&shape), block_(block), samples_(samples) {}

  std::size_t samples() const { return samples_; }
  // Prefetches a sample's element of each column: of a category of many values the offset, not the values.
  void prefetch(std::size_t sample) const {
    for (std::size_t c = 0; c < shape_->columns; ++c) {
      ColumnEntry const& column = entry(c);
      __builtin_prefetch(block_ + column.begin + column.width * sample);
    }
  }
  float label(std::size_t sample) const {
    ColumnEntry const column = entry(0);
    return column.width == 1 ? static_cast<float>(static_cast<std::uint8_t>(block_[column.begin + sample]))
                             : reinterpret_cast<float const*>(block_ + column.begin)[sample];
  }
  std::span<float const> number(std::size_t f) const { return {at<float>(1 + f), samples_}; }
  IdColumn ids(std::size_t category) const { return {block_, entry(shape_->categories[category].values)}; }
  // Where the values of each sample begin, (samples + 1). REQUIRES: the category has many values.
  std::span<std::uint32_t const> offsets(std::size_t category) const {
    return {at<std::uint32_t>(shape_->categories[category].values - 1), samples_ + 1};
  }
  // One weight for each value. REQUIRES: the category is weighted.
  float const* weights(std::size_t category) const { return at<float>(shape_->categories[category].values + 1); }

 private:
  ColumnEntry const& entry(std::size_t column) const { return reinterpret_cast<ColumnEntry const*>(block_)[column]; }
  template <class T>
  T const* at(std::size_t column) const {
    return reinterpret_cast<T const*>(block_ + entry(column).begin);
  }

  BlockShape const* shape_;
  std::byte const* block_;
  std::size_t samples_;
};

// Returns the bytes of a block. Throws Error if the samples have more than kBlockValuesMax values.
std::vector<std::byte> make_block(BlockShape const& shape, SampleBatch const& samples);

// Returns what is wrong with bytes as a block of `samples` samples, or an empty text. Checks that columns are where
// they must be, and that labels, numbers, offsets and weights are valid. The bytes may be arbitrary. REQUIRES: block is
// aligned to 8.
std::string check_block(BlockShape const& shape, std::span<std::byte const> block, std::size_t samples);

}  // namespace gpups::trainer
