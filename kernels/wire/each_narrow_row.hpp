// SPDX-License-Identifier: Apache-2.0
// The loops over rows of narrow_rows.hpp: where each lies depends on the widths of all before it. On the host a task
// has some blocks of rows and adds widths up as it goes; on a GPU a scan over blocks comes first, and each row adds up
// those of its block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/wire/narrow_rows.hpp"
#include "kernels/wire/narrow_sums.hpp"

#ifdef __CUDACC__
#include <cub/device/device_scan.cuh>

#include "kernels/device_scratch.hpp"
#endif

namespace gpups::kernels {

// The bytes of the rows of block b.
GPUPS_FN inline std::uint64_t narrow_block_bytes(NarrowRows const& rows, std::size_t b) {
  std::uint64_t bytes = 0;
  std::size_t const first = b * kNarrowBlock;
  std::size_t const last = first + kNarrowBlock < rows.rows ? first + kNarrowBlock : rows.rows;
  for (std::size_t i = first; i < last; ++i) {
    bytes += narrow_width(rows.bytes.data(), i) * rows.dim;
  }
  return bytes;
}

#ifdef __CUDACC__

// starts[b] = sum of starts before b, for b <= blocks; returns the last. Waits.
inline std::uint64_t wait_add_up(DeviceExec ex, Device device, std::uint64_t* starts, std::size_t blocks) {
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  auto const scratch = run_with_scratch(device, [&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(memory, bytes, starts, starts, static_cast<std::int64_t>(blocks + 1), stream);
  });
  std::uint64_t total = 0;
  check_cuda(cudaMemcpyAsync(&total, starts + blocks, sizeof total, cudaMemcpyDeviceToHost, stream), "reading a size");
  check_cuda(cudaStreamSynchronize(stream), "waiting for a size");
  return total;
}

inline std::uint64_t wait_find_starts(DeviceExec ex, NarrowRows const& rows, View<std::uint64_t> starts) {
  std::size_t const blocks = narrow_blocks(rows.rows);
  each(ex, blocks + 1, [=] GPUPS_FN(std::size_t b) { starts[b] = b < blocks ? narrow_block_bytes(rows, b) : 0; });
  return wait_add_up(ex, rows.bytes.device(), starts.data(), blocks);
}

// Calls row(i, width, start, lanes) for each row.
template <class Row>
void each_narrow_row(DeviceExec ex, NarrowRows const& rows, View<std::uint64_t const> starts, Row row) {
  each_row(ex, rows.rows, [=] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::size_t const block = i / kNarrowBlock, first = block * kNarrowBlock;
    std::uint64_t const before = lanes.sum_words(
        i - first, [=](std::size_t k) { return narrow_width(rows.bytes.data(), first + k) * rows.dim; });
    row(i, narrow_width(rows.bytes.data(), i), starts[block] + before, lanes);
  });
}

template <class Writer>
NarrowBytes write_narrow(DeviceExec ex, Device device, std::size_t n, std::size_t dim, Writer writer) {
  std::size_t const blocks = narrow_blocks(n), head = narrow_head(n);
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
  NarrowRows rows{packed, n, dim};
  std::size_t const size = head + wait_find_starts(ex, rows, starts);
  NarrowBytes bytes{Array<std::uint8_t>(device, size), size};
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  check_cuda(cudaMemcpyAsync(bytes.memory.data(), pairs, head, cudaMemcpyDeviceToDevice, stream), "copying widths");
  std::uint8_t* const to = bytes.memory.data() + head;
  each_narrow_row(ex, rows, starts, [=] GPUPS_FN(std::size_t i, std::uint32_t w, std::size_t start, NativeLanes lanes) {
    if (w > 0) writer.write(i, w, to + start, lanes);
  });
  check_cuda(cudaStreamSynchronize(stream), "waiting for rows");
  return bytes;
}

#else

// Rows of a task, and its blocks.
inline constexpr std::size_t kNarrowTaskRows = 4 * kBlockRows, kNarrowTask = kNarrowTaskRows / kNarrowBlock;

inline std::uint64_t wait_find_starts(HostExec, NarrowRows const& rows, View<std::uint64_t> starts) {
  std::uint64_t total = 0;
  for (std::size_t b = 0; b < narrow_blocks(rows.rows); ++b) {
    starts[b] = total;
    total += narrow_block_bytes(rows, b);
  }
  starts[narrow_blocks(rows.rows)] = total;
  return total;
}

// Calls row(i, width, start, lanes) for the rows of blocks first .. last - 1, some of which may be behind the end.
template <class Row>
void each_narrow_row_of(NarrowRows const& rows, std::uint64_t const* starts, std::size_t first, std::size_t last,
                        Row row) {
  if (first >= last) return;
  std::uint64_t start = starts[first];
  std::size_t const end = std::min(last * kNarrowBlock, rows.rows);
  for (std::size_t i = first * kNarrowBlock; i < end; ++i) {
    std::uint32_t const width = narrow_width(rows.bytes.data(), i);
    row(i, width, start, HostLanes{});
    start += width * rows.dim;
  }
}

template <class Row>
void each_narrow_row(HostExec ex, NarrowRows const& rows, View<std::uint64_t const> starts, Row row) {
  std::size_t const blocks = narrow_blocks(rows.rows);
  ex.arena->blocks((blocks + kNarrowTask - 1) / kNarrowTask, [&](std::size_t task) {
    each_narrow_row_of(rows, starts.data(), task * kNarrowTask, std::min((task + 1) * kNarrowTask, blocks), row);
  });
}

// Looks at some rows for their widths and then writes them, while they are in a cache; then at the next.
template <class Writer>
NarrowBytes write_narrow(HostExec ex, Device device, std::size_t n, std::size_t dim, Writer writer) {
  constexpr std::size_t kCachedBytes = std::size_t{1} << 20;  // of each thread
  std::size_t const blocks = narrow_blocks(n), head = narrow_head(n);
  std::size_t const task_bytes = kNarrowTaskRows * row_stride(dim) * sizeof(std::int64_t);
  std::size_t const tasks =
      std::max<std::size_t>(1, kCachedBytes / task_bytes) * static_cast<std::size_t>(ex.arena->threads());
  NarrowBytes bytes{Array<std::uint8_t>(device, narrow_bytes_max(n, dim)), head};
  NarrowRows const rows{bytes.memory, n, dim};
  std::vector<std::uint64_t> starts(blocks + 1, 0);
  for (std::size_t from = 0; from < blocks; from += tasks * kNarrowTask) {
    std::size_t const to = std::min(from + tasks * kNarrowTask, blocks),
                      some = (to - from + kNarrowTask - 1) / kNarrowTask;
    auto const first = [=](std::size_t task) { return from + task * kNarrowTask; };
    auto const last = [=](std::size_t task) { return std::min(from + (task + 1) * kNarrowTask, to); };
    ex.arena->blocks(some, [&](std::size_t task) {
      for (std::size_t b = first(task); b < last(task); ++b) {
        for (std::size_t i = b * kNarrowBlock; i < std::min((b + 1) * kNarrowBlock, n); i += 2) {
          std::uint32_t const low = writer.width(i, HostLanes{}),
                              high = i + 1 < n ? writer.width(i + 1, HostLanes{}) : 0;
          bytes.memory[i / 2] = static_cast<std::uint8_t>(low | high << 4);
          starts[b + 1] += (low + high) * dim;
        }
      }
    });
    for (std::size_t b = from; b < to; ++b) starts[b + 1] += starts[b];
    ex.arena->blocks(some, [&](std::size_t task) {
      each_narrow_row_of(rows, starts.data(), first(task), last(task),
                         [&](std::size_t i, std::uint32_t width, std::size_t start, HostLanes lanes) {
                           if (width > 0) writer.write(i, width, bytes.memory.data() + head + start, lanes);
                         });
    });
  }
  bytes.size = head + starts[blocks];
  return bytes;
}

#endif

}  // namespace gpups::kernels
