// SPDX-License-Identifier: Apache-2.0
// The layout of rows that an owner passes to another rank, for all parts of a batch in one transfer.
//
// It begins with a bitmap for each part, one after another: which rows exist or wait for admission. Then each part has
// the columns of these rows, each at a multiple of 16 bytes: values without padding, optimizer state, and lifecycles.
// The other rows have initial values and states.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/table.hpp"

namespace gpups::cache {

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
