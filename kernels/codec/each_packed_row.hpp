// SPDX-License-Identifier: Apache-2.0
// The loops over received rows of packed_rows.hpp, of many parts at once. The start of a row depends on the widths of
// all rows before it. On the host, a task has some blocks of rows and adds up widths as it proceeds. On a GPU, a scan
// over blocks runs first, and each row adds up the widths before it in its block.
//
// And the addition of received rows to others, for add_packed_sums() and, on the host, for merge_gradients().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/base/atomic.hpp"
#include "kernels/codec/pack_sums.hpp"
#include "kernels/codec/packed_row.hpp"
#include "kernels/codec/packed_rows.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/read_back.hpp"
#include "kernels/runtime/segments.hpp"
#ifdef __CUDACC__
#include <cub/device/device_scan.cuh>

#include "kernels/runtime/device_scratch.hpp"
#endif

namespace gpups::kernels {

// Returns the bytes of the rows of block b.
GPUPS_FN inline std::uint64_t packed_block_bytes(PackedRows const& rows, std::size_t b) {
  std::uint64_t bytes = 0;
  std::size_t const first = b * kPackedBlockRows;
  std::size_t const last = first + kPackedBlockRows < rows.rows ? first + kPackedBlockRows : rows.rows;
  for (std::size_t i = first; i < last; ++i) {
    bytes += packed_width(rows.bytes.data(), i) * rows.dim;
  }
  return bytes;
}

// Writes the starts of all blocks of each part, and the total size at the end. Sets *wrong to the first part whose size
// is not that of its bytes, or to `none`.
#ifdef __CUDACC__
struct BlocksOfPart {
  PackedRowStarts part;
  std::size_t first;  // the number of the first block in the scan over all parts
  std::uint32_t number;
};

inline void find_starts(DeviceExec ex, std::vector<PackedRowStarts> const& parts, std::uint32_t none,
                        std::uint32_t* wrong) {
  send_to_device(ex, wrong, &none, sizeof none);
  if (parts.empty()) return;
  std::vector<BlocksOfPart> all;
  std::size_t sums = 0;
  for (auto const& part : parts) {
    all.push_back({part, sums, static_cast<std::uint32_t>(all.size())});
    sums += packed_blocks(part.rows.rows) + 1;
  }
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  StreamScratch const scratch(ex, sums * sizeof(std::uint64_t));
  auto* const before = static_cast<std::uint64_t*>(scratch.data());
  SegmentList const list(ex, std::move(all), [](BlocksOfPart const& p) { return packed_blocks(p.part.rows.rows) + 1; });
  each_item(ex, list.segments(), [before] GPUPS_FN(BlocksOfPart const& p, std::size_t b) {
    bool const is_block = b * kPackedBlockRows < p.part.rows.rows;
    before[p.first + b] = is_block ? packed_block_bytes(p.part.rows, b) : 0;
  });
  run_in_stream(ex, [&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(memory, bytes, before, before, static_cast<std::int64_t>(sums), stream);
  });
  each_item(ex, list.segments(), [before, wrong] GPUPS_FN(BlocksOfPart const& p, std::size_t b) {
    std::uint64_t const start = before[p.first + b] - before[p.first];
    p.part.starts[b] = start;
    bool const is_end = b * kPackedBlockRows >= p.part.rows.rows;
    std::size_t const head = packed_header_bytes(p.part.rows.rows);
    if (is_end && start != p.part.rows.bytes.size() - head) atomic_min(wrong, p.number);
  });
}
#else
inline void find_starts(HostExec ex, std::vector<PackedRowStarts> const& parts, std::uint32_t none,
                        std::uint32_t* wrong) {
  *wrong = none;
  auto const find = [&](std::size_t p) {
    auto const& [rows, starts] = parts[p];
    std::uint64_t total = 0;
    for (std::size_t b = 0; b < packed_blocks(rows.rows); ++b) {
      starts[b] = total;
      total += packed_block_bytes(rows, b);
    }
    starts[packed_blocks(rows.rows)] = total;
    if (total != rows.bytes.size() - packed_header_bytes(rows.rows)) atomic_min(wrong, static_cast<std::uint32_t>(p));
  };
  // Waking another thread takes longer than a little work.
  constexpr std::size_t kFewRows = 16384;
  std::size_t rows = 0;
  for (auto const& part : parts) rows += part.rows.rows;
  if (rows > kFewRows) {
    ex.arena->blocks(parts.size(), find);
  } else {
    for (std::size_t p = 0; p < parts.size(); ++p) find(p);
  }
}
#endif

// Calls part(i, width, address, lanes) for each row of each part. The member functions part.rows() and part.starts()
// return its PackedRows and starts.
#ifdef __CUDACC__
template <class Part>
void each_packed_row(DeviceExec ex, std::vector<Part> parts) {
  SegmentList const list(ex, std::move(parts), [](Part const& part) { return part.rows().rows; });
  each_row_item(ex, list.segments(), [] GPUPS_FN(Part const& part, std::size_t i, NativeLanes lanes) {
    PackedRows const& rows = part.rows();
    std::size_t const block = i / kPackedBlockRows, first = block * kPackedBlockRows;
    std::uint64_t const before = lanes.sum_words(
        i - first, [&](std::size_t k) { return packed_width(rows.bytes.data(), first + k) * rows.dim; });
    std::size_t const start = packed_header_bytes(rows.rows) + part.starts()[block] + before;
    part(i, packed_width(rows.bytes.data(), i), rows.bytes.data() + start, lanes);
  });
}
#else
// The rows of a task.
inline constexpr std::size_t kPackTaskRows = 4 * kBlockRows;

template <class Part>
void each_packed_row(HostExec ex, std::vector<Part> parts) {
  SegmentList const list(ex, std::move(parts), [](Part const& part) { return part.rows().rows; });
  each_item_range(ex, list.segments(), kPackTaskRows, [](Part const& part, std::size_t first, std::size_t last) {
    PackedRows const rows = part.rows();
    std::size_t const block = first / kPackedBlockRows;
    std::uint8_t const* at = rows.bytes.data() + packed_header_bytes(rows.rows) + part.starts()[block];
    for (std::size_t i = block * kPackedBlockRows; i < last; ++i) {
      std::uint32_t const width = packed_width(rows.bytes.data(), i);
      if (i >= first) part(i, width, at, HostLanes{});
      at += width * rows.dim;
    }
  });
}
#endif

// For each_packed_row(): adds a row to its target.
struct AddPackedRow {
  AddPackedSums a;

  GPUPS_ANY_FN PackedRows const& rows() const { return a.rows; }
  GPUPS_FN View<std::uint64_t const> const& starts() const { return a.starts; }
  GPUPS_FN std::uint32_t slot(std::size_t i) const {
    return a.slots.empty() ? static_cast<std::uint32_t>(i) : a.slots[i];
  }
  GPUPS_FN void operator()(std::size_t i, std::uint32_t width, std::uint8_t const* from, NativeLanes lanes) const {
    std::size_t const dim = a.rows.dim;
    if (i + kRowsAhead < a.rows.rows) {
      lanes.prefetch(a.target(slot(i + kRowsAhead)), dim * sizeof(std::int64_t));
    }
    if (width == 0) return;
    bool const overflows = add_packed_row(from, dim, width, a.target(slot(i)), lanes);
    if (overflows && lanes.first()) atomic_min(a.bad_row.data(), slot(i));
  }
};

}  // namespace gpups::kernels
