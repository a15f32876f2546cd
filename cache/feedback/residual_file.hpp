// SPDX-License-Identifier: Apache-2.0
// Files of a checkpoint with residuals and mirrors. Each rank that has some writes one file.
//
// A file starts with its writer and the number of ranks (u32 each) and the samples of the last step (u64). A list of
// residual chunks follows. A chunk has: table and 2^31 + its kind (u32 each), the steps and the threshold of its filter
// (u64, f32), rows (u64), and the columns keys (u64), marks (2 x u32 each) and sums (dim each, i64). The table number
// 2^32 - 1 ends the list. Older files have the rank of an owner instead of a kind, or the writer's for kWaits. A list
// of mirror chunks follows, which checkpoints of format 4 do not have. These chunks have table and reader, the last
// step (i64) after the threshold, and values (dim each, f32) instead of sums. At the end, a 1 (u32) means that the next
// refresh sends all changed values, ignoring the filter. The byte order is the machine's.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/feedback/adaptive_threshold.hpp"
#include "cache/files/checksummed_file.hpp"
#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// Residuals of one rank's gradients for rows of one table. On the host, without padding.
struct ResidualChunk {
  enum class Kind : std::uint32_t {
    kResidual,
    kEarly,  // the next step sends them
    kWaits,  // the next step sends them, from the home of the rows
    kOwned,  // the next step adds them: the writer has become the owner of the rows
  };
  TableId table{};
  Kind kind = Kind::kResidual;
  AdaptiveThreshold::State threshold{};
  std::vector<Key> keys;
  std::vector<std::uint32_t> marks;  // (n, kResidualMarks)
  std::vector<std::int64_t> sums;    // (n, dim)
};

// The mirrors that another rank has of the writer's rows of one table. After a restore both ranks load them.
struct MirrorChunk {
  TableId table{};
  Rank reader{};
  AdaptiveThreshold::State threshold{};
  Clock step{};  // the last step for which rows were sent
  std::vector<Key> keys;
  std::vector<std::uint32_t> marks;  // (n, kResidualMarks)
  std::vector<float> values;         // (n, dim)
};

// The contents of a file. writers: number of ranks that wrote the checkpoint; samples: over all ranks, of the last step
// with samples.
struct ResidualFile {
  Rank writer{};
  std::uint32_t writers = 0;
  std::uint64_t samples = 0;
  std::vector<ResidualChunk> chunks;
  std::vector<MirrorChunk> mirrors{};
  bool resends_all_values = false;
};

// Copies the sums of a chunk to the stream's device: (n, dim), with zeros in the padding. Waits for `stream`.
Matrix<std::int64_t> padded_sums(Stream& stream, ResidualChunk const& chunk, std::size_t dim);

// Writes a new file. Throws Error.
FileChecksum write_residuals(ResidualFile const& file, std::filesystem::path const& path);
// Reads a file. dims: dim of each table. Throws Error for an invalid file. REQUIRES: the file's checksum is verified.
ResidualFile read_residuals(std::filesystem::path const& path, std::vector<std::size_t> const& dims);

}  // namespace gpups::cache
