// SPDX-License-Identifier: Apache-2.0
// The layouts of rows that an owner sends, for all parts of a batch in one transfer: values to a reader, and rows that
// move to another rank.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/table.hpp"

namespace gpups::cache {

// Values. If not all rows are sent, it begins with a bitmap of the sent rows for each part, one after another. Then
// there is a section for each part, at a multiple of 16 bytes: the values of the sent rows, without padding. The rows
// that are not sent have their initial values. Parts with refresh compression have a section of row_mirror.hpp instead,
// and no bitmap.
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

// Rows that move. It begins with a bitmap for each part, one after another: which rows exist or wait for admission.
// Then each part has the columns of these rows, each at a multiple of 16 bytes: values without padding, optimizer
// state, and lifecycles. The other rows have initial values and states.
class MovedBody {
 public:
  MovedBody() = default;
  // The rows of a part: how many there are, and how many have columns.
  struct RowsOfPart {
    TableOptions const* table;
    std::size_t rows, sent;
  };
  explicit MovedBody(std::vector<RowsOfPart> const& parts);

  // A place in the body, in bytes.
  struct Place {
    std::size_t first = 0, size = 0;
  };
  struct PartPlaces {
    std::size_t rows = 0, sent = 0;
    Place bitmap, values, state, lifecycle;
  };
  std::vector<PartPlaces> const& parts() const { return parts_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::vector<PartPlaces> parts_;
  std::size_t bytes_ = 0;
};

}  // namespace gpups::cache
