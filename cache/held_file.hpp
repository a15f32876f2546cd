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

#include "cache/checkpoint_file.hpp"
#include "cache/send_bound.hpp"
#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// On the host, without padding.
struct HeldPiece {
  TableId table{};
  Rank peer{};  // the owner of the rows, or the writer where it has them for itself
  SendBound::State bound{};
  std::vector<Key> keys;
  std::vector<std::uint32_t> marks;  // (n, kHeldMarks)
  std::vector<std::int64_t> sums;    // (n, dim)
};

// The copies that another rank has of the writer's rows. Both ends of the pair go on with them.
struct CopyPiece {
  TableId table{};
  Rank reader{};
  SendBound::State bound{};
  Clock step{};  // that rows were sent for last
  std::vector<Key> keys;
  std::vector<std::uint32_t> marks;  // (n, kHeldMarks)
  std::vector<float> values;         // (n, dim)
};

struct HeldFile {
  Rank writer{};
  std::uint32_t writers = 0;
  std::uint64_t samples = 0;
  std::vector<HeldPiece> pieces;
  std::vector<CopyPiece> copies{};
  bool sends_all_changes = false;
};

// The sums of a piece on the stream's device, (n, dim), zeros in the padding. Waits for `stream`.
Matrix<std::int64_t> padded_sums(Stream& stream, HeldPiece const& piece, std::size_t dim);

FileSeal write_held(HeldFile const& file, std::filesystem::path const& path);
// dims: of the tables. Throws Error for what no store has written. REQUIRES: the file is verified.
HeldFile read_held(std::filesystem::path const& path, std::vector<std::size_t> const& dims);

}  // namespace gpups::cache
