// SPDX-License-Identifier: Apache-2.0
// What a rank holds back of its gradients, and what it has sent of its rows' changes, in a checkpoint: a file of each
// rank that does so.
//
// A file begins with its writer, the number of ranks (u32 each) and the samples of the last step (u64). A list of
// pieces follows: table and peer (u32 each), the steps and the bound of its filter (u64, f32), rows (u64), and the
// columns keys, marks (2 each) and sums (dim each, i64), in the machine's byte order. 2^32 - 1 ends it. Then come the
// copies: pieces that have the last step (i64) behind the bound, and values (dim each, f32) for sums; in checkpoints of
// format 4 there are none. A 1 (u32) behind them says that the values of the next step are sent whatever the filter.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/adaptive_threshold.hpp"
#include "cache/checksummed_file.hpp"
#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// On the host, without padding.
struct ResidualChunk {
  TableId table{};
  Rank peer{};  // the owner of the rows, or the writer where it has them for itself
  AdaptiveThreshold::State threshold{};
  std::vector<Key> keys;
  std::vector<std::uint32_t> marks;  // (n, kResidualMarks)
  std::vector<std::int64_t> sums;    // (n, dim)
};

// The copies that another rank has of the writer's rows. Both ends of the pair go on with them.
struct MirrorChunk {
  TableId table{};
  Rank reader{};
  AdaptiveThreshold::State threshold{};
  Clock step{};  // that rows were sent for last
  std::vector<Key> keys;
  std::vector<std::uint32_t> marks;  // (n, kResidualMarks)
  std::vector<float> values;         // (n, dim)
};

struct ResidualFile {
  Rank writer{};
  std::uint32_t writers = 0;
  std::uint64_t samples = 0;
  std::vector<ResidualChunk> chunks;
  std::vector<MirrorChunk> mirrors{};
  bool resends_all_values = false;
};

// The sums of a chunk on the stream's device, (n, dim), zeros in the padding. Waits for `stream`.
Matrix<std::int64_t> padded_sums(Stream& stream, ResidualChunk const& chunk, std::size_t dim);

FileChecksum write_residuals(ResidualFile const& file, std::filesystem::path const& path);
// dims: of the tables. Throws Error for what no store has written. REQUIRES: the file is verified.
ResidualFile read_residuals(std::filesystem::path const& path, std::vector<std::size_t> const& dims);

}  // namespace gpups::cache
