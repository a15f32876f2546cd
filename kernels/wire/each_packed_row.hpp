// SPDX-License-Identifier: Apache-2.0
// The loops over the rows of packed_rows.hpp. The start of a row depends on the widths of all rows before it. On the
// host, a task has some blocks of rows and adds up widths as it proceeds. On a GPU, a scan over blocks runs first, and
// each row adds up the widths before it in its block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/nontemporal.hpp"
#include "kernels/read_back.hpp"
#include "kernels/wire/pack_sums.hpp"
#include "kernels/wire/packed_rows.hpp"

#ifdef __CUDACC__
#include <cub/device/device_scan.cuh>

#include "kernels/device_scratch.hpp"
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

#ifdef __CUDACC__

// Replaces starts[b] by the sum of all starts before b, for b <= blocks, and returns the last one. Blocks.
inline std::uint64_t wait_add_up(DeviceExec ex, Device device, std::uint64_t* starts, std::size_t blocks) {
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  auto const scratch = run_with_scratch(ex, device, [&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(memory, bytes, starts, starts, static_cast<std::int64_t>(blocks + 1), stream);
  });
  return wait_read(ex, starts + blocks, "reading a size");
}

// Writes the start of each block and, at the end, the total size, which it returns. Blocks.
inline std::uint64_t wait_find_starts(DeviceExec ex, PackedRows const& rows, View<std::uint64_t> starts) {
  std::size_t const blocks = packed_blocks(rows.rows);
  each(ex, blocks + 1, [=] GPUPS_FN(std::size_t b) { starts[b] = b < blocks ? packed_block_bytes(rows, b) : 0; });
  return wait_add_up(ex, rows.bytes.device(), starts.data(), blocks);
}

// Calls row(i, width, start, lanes) for each row.
template <class Row>
void each_packed_row(DeviceExec ex, PackedRows const& rows, View<std::uint64_t const> starts, Row row) {
  each_row(ex, rows.rows, [=] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::size_t const block = i / kPackedBlockRows, first = block * kPackedBlockRows;
    std::uint64_t const before = lanes.sum_words(
        i - first, [=](std::size_t k) { return packed_width(rows.bytes.data(), first + k) * rows.dim; });
    row(i, packed_width(rows.bytes.data(), i), starts[block] + before, lanes);
  });
}

// Packs n rows. writer.width(i, lanes) returns the bytes per element of row i, and writer.write() writes the row.
// Blocks.
template <class Writer>
PackedBytes write_packed(DeviceExec ex, Device device, std::size_t n, std::size_t dim, Writer writer) {
  std::size_t const blocks = packed_blocks(n), head = packed_header_bytes(n);
  Array<std::uint8_t> widths(device, n), packed(device, head);
  std::uint8_t *const width = widths.data(), *const pairs = packed.data();
  each_row(ex, n, [=] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::uint32_t const w = writer.width(i, lanes);
    if (lanes.first()) width[i] = static_cast<std::uint8_t>(w);
  });
  each(ex, head, [=] GPUPS_FN(std::size_t k) {
    pairs[k] = static_cast<std::uint8_t>(width[2 * k] | (2 * k + 1 < n ? width[2 * k + 1] << 4 : 0));
  });
  Array<std::uint64_t> starts(device, blocks + 1);
  PackedRows rows{packed, n, dim};
  std::size_t const size = head + wait_find_starts(ex, rows, starts);
  PackedBytes bytes{Array<std::uint8_t>(device, size), size};
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  check_cuda(cudaMemcpyAsync(bytes.memory.data(), pairs, head, cudaMemcpyDeviceToDevice, stream), "copying widths");
  std::uint8_t* const to = bytes.memory.data() + head;
  each_packed_row(ex, rows, starts, [=] GPUPS_FN(std::size_t i, std::uint32_t w, std::size_t start, NativeLanes lanes) {
    if (w > 0) writer.write(i, w, to + start, lanes);
  });
  wait_for(ex, "waiting for rows");
  return bytes;
}

#else

// The rows of a task.
inline constexpr std::size_t kPackTaskRows = 4 * kBlockRows;

// Writes the start of each block and, at the end, the total size, which it returns.
inline std::uint64_t wait_find_starts(HostExec ex, PackedRows const& rows, View<std::uint64_t> starts) {
  std::uint64_t total = 0;
  for (std::size_t b = 0; b < packed_blocks(rows.rows); ++b) {
    starts[b] = total;
    total += packed_block_bytes(rows, b);
  }
  starts[packed_blocks(rows.rows)] = total;
  wait_for(ex, "waiting for a size");
  return total;
}

// Calls row(i, width, start, lanes) for each row.
template <class Row>
void each_packed_row(HostExec ex, PackedRows const& rows, View<std::uint64_t const> starts, Row row) {
  ex.arena->blocks((rows.rows + kPackTaskRows - 1) / kPackTaskRows, [&](std::size_t task) {
    std::size_t const first = task * kPackTaskRows;
    std::uint64_t start = starts[first / kPackedBlockRows];
    for (std::size_t i = first; i < std::min(first + kPackTaskRows, rows.rows); ++i) {
      std::uint32_t const width = packed_width(rows.bytes.data(), i);
      row(i, width, start, HostLanes{});
      start += width * rows.dim;
    }
  });
}

// Writes rows first .. last - 1 one after another, and their widths to `head`. Returns the end of the last row.
template <class Writer>
std::uint8_t* write_packed_rows(Writer const& writer, std::size_t first, std::size_t last, std::size_t dim,
                                std::uint8_t* head, std::uint8_t* to) {
  for (std::size_t i = first; i < last; ++i) {
    std::uint32_t const width = writer.width(i, HostLanes{});
    head[i / 2] = static_cast<std::uint8_t>(i % 2 == 0 ? width : head[i / 2] | width << 4);
    if (width > 0) writer.write(i, width, to, HostLanes{});
    to += width * dim;
  }
  return to;
}

// As above. With one thread, rows are written directly to the result. With several threads, each writes some rows to a
// buffer in its cache, and copies them when the sizes of all buffers are known. One thread does the same if the result
// exceeds the caches, since the copy can use non-temporal stores.
template <class Writer>
PackedBytes write_packed(HostExec ex, Device device, std::size_t n, std::size_t dim, Writer writer) {
  wait_for(ex, "waiting for rows");
  constexpr std::size_t kCachedBytes = std::size_t{1} << 20;  // per thread
  auto const threads = static_cast<std::size_t>(ex.arena->threads());
  std::size_t const head = packed_header_bytes(n), task_bytes = kPackTaskRows * dim * sizeof(std::int64_t);
  PackedBytes bytes{Array<std::uint8_t>(device, packed_rows_bytes_max(n, dim)), 0};
  std::uint8_t *const widths = bytes.memory.data(), *to = widths + head;
  bool const stream = exceeds_caches(*ex.arena, bytes.memory.size() / 2);  // usual results are about half the maximum
  if (n <= kPackTaskRows || (threads == 1 && !stream)) {
    bytes.size = static_cast<std::size_t>(write_packed_rows(writer, 0, n, dim, widths, to) - widths);
    return bytes;
  }
  std::size_t const at_once = std::max<std::size_t>(1, kCachedBytes / task_bytes) * threads;
  Array<std::uint8_t> const written(device, at_once * task_bytes);
  std::vector<std::uint8_t*> target(at_once + 1);
  for (std::size_t from = 0; from < n; from += at_once * kPackTaskRows) {
    std::size_t const tasks = std::min(at_once, (n - from + kPackTaskRows - 1) / kPackTaskRows);
    std::vector<std::size_t> size(tasks);
    ex.arena->blocks(tasks, [&](std::size_t task) {
      std::size_t const first = from + task * kPackTaskRows;
      std::uint8_t* const begin = written.data() + task * task_bytes;
      size[task] = static_cast<std::size_t>(
          write_packed_rows(writer, first, std::min(first + kPackTaskRows, n), dim, widths, begin) - begin);
    });
    target[0] = to;
    for (std::size_t task = 0; task < tasks; ++task) target[task + 1] = target[task] + size[task];
    ex.arena->blocks(tasks, [&](std::size_t task) {
      std::uint8_t const* const begin = written.data() + task * task_bytes;
      if (!stream) return void(std::memcpy(target[task], begin, size[task]));
      store_nontemporal(target[task], begin, size[task]);
      nontemporal_fence();
    });
    to = target[tasks];
  }
  bytes.size = static_cast<std::size_t>(to - widths);
  return bytes;
}

#endif

}  // namespace gpups::kernels
