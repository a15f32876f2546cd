// SPDX-License-Identifier: Apache-2.0
// Under bounded staleness: a batch, divided into rows that it announces and rows that it reads from replicas as they
// are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// A part of a batch that is divided. Its keys are grouped by home.
struct UndividedPart {
  TableId table{};
  View<Key const> keys{};                  // (rows), distinct
  std::span<std::uint32_t const> homes{};  // (ranks + 1): keys of home q are homes[q] .. homes[q + 1] - 1
  View<std::uint32_t const> offsets{};     // (rows + 1), of entries; or empty, if these are not counted
  View<std::uint32_t const> owners{};      // of the rows of this rank's home, in the step: ranks
};

// How a batch is divided: the rows that it announces, and those that are read as they are. Columns are on the device.
struct DividedRows {
  // The announced rows of a table are keys[first] .. keys[first + homes.back() - 1]. A row that several parts use is
  // announced once.
  struct OfTable {
    std::uint32_t first = 0;
    std::vector<std::uint32_t> homes{};  // (ranks + 1), from 0 on
    View<std::uint32_t const> begun{};   // announced rows of the table with which leases begin
  };
  struct OfPart {
    View<std::uint32_t const> whole_rows{}, announced_rows{};  // (k): the same rows in the part and in its table
    // Rows that are read as they are.
    std::uint32_t first = 0;  // of the leased rows of all parts
    View<std::uint32_t const> leased_rows{}, records{}, entries{};
    View<Key const> leased_keys{};
    std::size_t leased_elsewhere = 0;  // those with other homes
  };
  std::vector<OfTable> tables{};
  std::vector<OfPart> parts{};          // as they were given
  std::vector<std::size_t> by_table{};  // their order in columns
  Array<Key> keys{};                    // of announced rows
  Array<std::uint32_t> offsets{};       // (announced rows + 1): their occurrences, added up
  std::size_t due_elsewhere = 0;        // announced rows of other homes that no sample uses
  // Of the rows of all parts. The leased ones are the last elements.
  Array<std::uint32_t> rows{}, announced{}, leased_records{}, leased_entries{}, begun{};
  Array<Key> leased_keys{};
};

}  // namespace gpups::cache
