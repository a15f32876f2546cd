// SPDX-License-Identifier: Apache-2.0
// The file of a checkpoint with the rows of one home that are away from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "cache/files/checksummed_file.hpp"
#include "gpups/placement.hpp"
#include "gpups/types.hpp"
#include "kernels/base/check.hpp"

namespace gpups::cache {

struct PlacedRow {
  TableId table{};
  Key key{};
  Rank owner{};
  PlacementReason reason{};
  Clock since{};
};

// Writes a new file. Throws Error.
inline FileChecksum write_placement(std::vector<PlacedRow> const& rows, std::filesystem::path const& path) {
  FileWriter writer(path);
  writer.put(std::uint64_t{rows.size()});
  for (auto const& row : rows) {
    writer.put(std::uint32_t{number(row.table)});
    writer.put(std::uint32_t{number(row.owner)});
    writer.put(std::uint64_t{number(row.key)});
    writer.put(std::int64_t{number(row.since)});
    writer.put(static_cast<std::uint8_t>(row.reason));
  }
  return writer.finish();
}

// Reads a file. tables: number of tables. Throws Error for an invalid file. REQUIRES: its checksum is verified.
inline std::vector<PlacedRow> read_placement(std::filesystem::path const& path, std::size_t tables) {
  FileReader reader(path);
  auto const count = reader.get<std::uint64_t>();
  std::vector<PlacedRow> rows;
  for (std::uint64_t i = 0; i < count; ++i) {
    PlacedRow row;
    row.table = TableId{reader.get<std::uint32_t>()};
    row.owner = Rank{reader.get<std::uint32_t>()};
    row.key = Key{reader.get<std::uint64_t>()};
    row.since = Clock{reader.get<std::int64_t>()};
    auto const reason = reader.get<std::uint8_t>();
    GPUPS_REQUIRE(number(row.table) < tables && reason <= static_cast<std::uint8_t>(PlacementReason::kPolicy),
                  "'{}' has a row of table {} that was placed for reason {} (the file is inconsistent): use another "
                  "checkpoint",
                  path.string(), number(row.table), reason);
    row.reason = static_cast<PlacementReason>(reason);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace gpups::cache
