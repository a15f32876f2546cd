// SPDX-License-Identifier: Apache-2.0
// Packs rows on a GPU, of many parts at once. The place of a row depends on the widths of all rows before it, so widths
// are found first; then sizes of blocks of rows, a scan over these, and the place of each part.
#pragma once

#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>
#include <span>
#include <utility>
#include <vector>

#include "kernels/codec/pack_sums.hpp"
#include "kernels/codec/packed_row.hpp"
#include "kernels/runtime/device_scratch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

// A part, and the numbers of its first row and of its first block over all parts.
struct PackedPart {
  PackSums sums;
  std::size_t first_row, first_block;
  std::uint32_t number;

  GPUPS_ANY_FN std::size_t rows() const { return sums.order.size(); }
  GPUPS_ANY_FN std::size_t dim() const { return sums.sums.columns(); }
  GPUPS_FN std::int64_t const* row(std::size_t i) const { return sums.sums.row(sums.order[i]); }
};

// Adds up the sizes of parts, with one block of threads.
struct PlaceParts {
  static constexpr unsigned kThreads = 256;
  PackedPart const* parts;
  std::uint32_t count;
  std::uint64_t const* before;  // the bytes of all blocks before each
  std::uint64_t *first, *size;  // (count + 1), (count)

  __device__ void operator()(std::size_t) const {
    using Scan = cub::BlockScan<std::uint64_t, kThreads>;
    __shared__ typename Scan::TempStorage memory;
    std::uint64_t start = 0;
    for (std::uint32_t from = 0; from < count; from += kThreads) {
      std::uint32_t const p = from + threadIdx.x;
      std::uint64_t bytes = 0, at = 0, total = 0;
      if (p < count) {
        PackedPart const& part = parts[p];
        std::size_t const blocks = (part.rows() + kPackedBlockRows - 1) / kPackedBlockRows;
        bytes = packed_header_bytes(part.rows()) + before[part.first_block + blocks] - before[part.first_block];
        size[p] = bytes;
      }
      Scan(memory).ExclusiveSum(packed_aligned(bytes), at, total);
      if (p < count) first[p] = start + at;
      start += total;
      __syncthreads();  // `memory` is used again
    }
    if (threadIdx.x == 0) first[count] = start;
  }
};

inline PackedParts write_packed(DeviceExec ex, std::span<PackSums const> parts) {
  std::vector<PackedPart> all;
  std::size_t rows = 0, sums = 0;
  for (auto const& part : parts) {
    all.push_back({part, rows, sums, static_cast<std::uint32_t>(all.size())});
    rows += part.order.size();
    sums += packed_blocks(part.order.size()) + 1;
  }
  PackedParts packed = packed_memory(parts);
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  StreamScratch const scratch(ex, sums * sizeof(std::uint64_t) + rows);
  auto* const before = static_cast<std::uint64_t*>(scratch.data());
  auto* const widths = reinterpret_cast<std::uint8_t*>(before + sums);
  auto *const firsts = packed.places.data(), *const sizes = firsts + parts.size() + 1;
  auto const blocks_of = [](PackedPart const& p) { return packed_blocks(p.rows()) + 1; };
  SegmentList<PackedPart, 2, SentSegments::kAny> const list(
      ex, std::move(all), [](PackedPart const& p) { return p.rows(); }, blocks_of);
  each_row_item(ex, list.segments(0), [widths] GPUPS_FN(PackedPart const& p, std::size_t i, NativeLanes lanes) {
    std::uint32_t const width = width_of(p.row(i), p.dim(), lanes);
    if (lanes.first()) widths[p.first_row + i] = static_cast<std::uint8_t>(width);
  });
  each_item(ex, list.segments(1), [widths, before] GPUPS_FN(PackedPart const& p, std::size_t b) {
    std::uint64_t bytes = 0;
    std::size_t const first = b * kPackedBlockRows;
    std::size_t const last = first + kPackedBlockRows < p.rows() ? first + kPackedBlockRows : p.rows();
    for (std::size_t i = first; i < last; ++i) bytes += widths[p.first_row + i] * p.dim();
    before[p.first_block + b] = bytes;
  });
  run_in_stream(ex, [&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(memory, bytes, before, before, static_cast<std::int64_t>(sums), stream);
  });
  auto const count = static_cast<std::uint32_t>(parts.size());
  each_block<PlaceParts::kThreads>(ex, 1, PlaceParts{list.segments().list, count, before, firsts, sizes});
  std::uint8_t* const bytes = packed.memory.data();
  each_row_item(ex, list.segments(0), [=] GPUPS_FN(PackedPart const& p, std::size_t i, NativeLanes lanes) {
    std::uint8_t const* const width = widths + p.first_row;
    std::uint8_t* const to = bytes + firsts[p.number];
    std::size_t const block = i / kPackedBlockRows, first = block * kPackedBlockRows;
    std::uint64_t const in_block =
        lanes.sum_words(i - first, [&](std::size_t k) { return width[first + k] * p.dim(); });
    std::uint64_t const start =
        packed_header_bytes(p.rows()) + before[p.first_block + block] - before[p.first_block] + in_block;
    if (i % 2 == 0 && lanes.first()) {
      to[i / 2] = static_cast<std::uint8_t>(width[i] | (i + 1 < p.rows() ? width[i + 1] << 4 : 0));
    }
    if (width[i] > 0) write_packed_row(p.row(i), p.dim(), width[i], to + start, lanes);
    if (i + 1 < p.rows()) return;
    std::size_t const end = start + width[i] * p.dim();
    lanes.each(packed_aligned(end) - end, [=](std::size_t k) { to[end + k] = 0; });
  });
  return packed;
}

}  // namespace gpups::kernels
