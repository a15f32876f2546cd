// SPDX-License-Identifier: Apache-2.0
// The layout of the values of a batch that an owner sends to a reader, for all parts of the batch in one transfer.
//
// If not all rows are sent, it begins with a bitmap of the sent rows for each part, one after another. Then there is a
// section for each part, at a multiple of 16 bytes: the values of the sent rows, without padding. The rows that are not
// sent have their initial values. Parts with refresh compression have a section of row_mirror.hpp instead, and no
// bitmap.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/table.hpp"

namespace gpups::cache {

class ValueBody {
 public:
  // The rows of a part: how many there are, and how many are sent.
  struct PartRows {
    TableOptions const* table;
    std::size_t rows, sent;
  };
  explicit ValueBody(std::vector<PartRows> const& parts);

  // Returns whether there are bitmaps.
  bool has_bitmaps() const { return has_bitmaps_; }
  // The place of the bitmap of a part, in words. Also defined if there are no bitmaps.
  std::size_t bitmap_first(std::size_t part) const { return bitmap_first_[part]; }
  // Returns the number of words of all bitmaps.
  std::size_t bitmap_words() const { return bitmap_first_.back(); }
  // The section of a part, in bytes.
  std::size_t section_first(std::size_t part) const { return first_[part]; }
  std::size_t section_size(std::size_t part) const { return size_[part]; }
  std::size_t bytes() const { return bytes_; }

 private:
  bool has_bitmaps_ = false;
  std::vector<std::size_t> bitmap_first_{0}, first_, size_;
  std::size_t bytes_ = 0;
};

}  // namespace gpups::cache
