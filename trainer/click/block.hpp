// SPDX-License-Identifier: Apache-2.0
// A block of samples as columns: how it is made, checked and read. The same bytes in memory and in a file.
//
// A block of n samples begins with an entry for each column. Columns follow, each at the next multiple of 8:
//   label              (n) u8 where all are 0 or 1, else f32
//   each number        (n) f32, NaN where missing
//   each category      ids of values (n, or as many as there are): u32 where each is below 2^32 or missing, else u64
//     of many values   before them offsets (n + 1) u32: values of sample i are offsets[i] .. offsets[i + 1] - 1
//     of weighted ones after them weights, f32, as many as values
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/click/layout.hpp"
#include "trainer/click/samples.hpp"
#include "trainer/click/text_cells.hpp"

namespace gpups::trainer {

// Values that a block may have; it is so smaller than 4 GiB.
constexpr std::size_t kBlockValuesMax = std::size_t{1} << 22;

struct ColumnEntry {
  std::uint32_t begin = 0;    // bytes from the block's begin
  std::uint32_t width = 0;    // bytes of an element
  std::uint32_t missing = 0;  // of ids of 4 bytes: a number that none of them is, and which stands for kMissingId
};

// Where a layout has which column.
struct BlockShape {
  struct CategoryColumn {
    CategoryField::Kind kind;
    std::size_t values;  // column; offsets are the one before, weights the one after
  };

  explicit BlockShape(Layout const& layout);

  std::size_t numbers;  // columns 1 .. numbers
  std::vector<CategoryColumn> categories;
  std::size_t columns;
  bool lists = false, weighted = false;  // whether a category has many values, or weights
};

// IdColumn of a column, of either width.
class IdColumn {
 public:
  IdColumn(std::byte const* block, ColumnEntry column)
      : begin_(block + column.begin), narrow_(column.width == sizeof(std::uint32_t)), missing_(column.missing) {}

  std::uint64_t operator[](std::size_t i) const { return narrow_ ? narrow_id(i) : wide_id(i); }
  // use(i, id) for `count` ids from `first` on, i from 0.
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

// A block's columns where they lie. REQUIRES: the block is as check_block() wants it.
class BlockView {
 public:
  BlockView(BlockShape const& shape, std::byte const* block, std::size_t samples)
      : shape_(&shape), block_(block), samples_(samples) {}

  std::size_t samples() const { return samples_; }
  // Asks for what a sample has in each column; of lists, for where they begin.
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
  // (samples + 1). REQUIRES: the category has many values.
  std::span<std::uint32_t const> offsets(std::size_t category) const {
    return {at<std::uint32_t>(shape_->categories[category].values - 1), samples_ + 1};
  }
  // Of each value. REQUIRES: the category is weighted.
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

// The bytes of a block. Throws Error where the samples have more than kBlockValuesMax values.
std::vector<std::byte> make_block(BlockShape const& shape, SampleBatch const& samples);

// What is wrong with bytes that are to be a block of `samples` samples, or nothing: columns lie where they must, and
// labels, numbers, offsets and weights are what they can be. The bytes may be any. REQUIRES: block is aligned to 8.
std::string check_block(BlockShape const& shape, std::span<std::byte const> block, std::size_t samples);

}  // namespace gpups::trainer
