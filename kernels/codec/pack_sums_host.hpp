// SPDX-License-Identifier: Apache-2.0
// Packs rows on the host, of many parts at once. With one thread, rows are written directly to the result. With several
// threads, each writes some rows to a buffer in its cache, and copies them when the sizes of all buffers are known. One
// thread does the same if the result exceeds the caches, since the copy can use non-temporal stores.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/base/nontemporal.hpp"
#include "kernels/codec/pack_sums.hpp"
#include "kernels/codec/packed_row.hpp"

namespace gpups::kernels {

// Packs the rows of one part.
class PartPacker {
 public:
  explicit PartPacker(PackSums const& part)
      : part_(part), row_bytes_(part.sums.columns() * sizeof(std::int64_t)), ahead_(rows_ahead(row_bytes_)) {}

  // Writes rows first .. last - 1 one after another to `to`, and their widths to `head`, the widths of the part.
  // Returns the end of the last row.
  std::uint8_t* write(std::size_t first, std::size_t last, std::uint8_t* head, std::uint8_t* to) const {
    std::size_t const dim = part_.sums.columns();
    for (std::size_t i = first; i < last; ++i) {
      prefetch_ahead(i);
      std::uint32_t const width = width_of(row(i), dim, HostLanes{});
      head[i / 2] = static_cast<std::uint8_t>(i % 2 == 0 ? width : head[i / 2] | width << 4);
      if (width > 0) write_packed_row(row(i), dim, width, to, HostLanes{});
      to += width * dim;
    }
    return to;
  }

 private:
  static std::size_t rows_ahead(std::size_t row_bytes) { return std::clamp<std::size_t>(16384 / row_bytes, 4, 64); }
  std::int64_t const* row(std::size_t i) const { return part_.sums.row(part_.order[i]); }
  // Prefetches the first cache line of a later row, and the rest of a row that comes earlier, as in copy_rows_host.hpp.
  [[gnu::always_inline]] void prefetch_ahead(std::size_t i) const {
    std::size_t const rest = ahead_ / 2;
    if (i + ahead_ < part_.order.size()) prefetch_row<PrefetchTarget::kToL2>(row(i + ahead_), 1);
    if (i + rest < part_.order.size() && row_bytes_ > kLineBytes) {
      prefetch_row<PrefetchTarget::kToL2>(row(i + rest) + kLineBytes / sizeof(std::int64_t), row_bytes_ - kLineBytes);
    }
  }

  PackSums part_;
  std::size_t row_bytes_;
  std::size_t ahead_;  // prefetch distance in rows
};

// Rows of a part that one thread packs at a time.
struct PackTask {
  static constexpr std::size_t kRows = 4 * kBlockRows;
  std::size_t part, first, last;
};

// Collects the places of parts while their rows are packed in order.
class PackedPlaces {
 public:
  PackedPlaces(std::span<PackSums const> parts, PackedParts& packed)
      : parts_(parts), packed_(packed), first_(packed.places.data()), size_(first_ + parts.size() + 1) {}

  // Returns where the next row is written.
  std::uint8_t* at() const { return packed_.memory.data() + at_; }
  std::uint8_t* widths_of(std::size_t part) const { return packed_.memory.data() + first_[part]; }
  // Begins parts up to `part`, and ends those before it.
  void begin(std::size_t part) {
    for (; begun_ <= part; ++begun_) {
      end_last();
      first_[begun_] = at_;
      at_ += packed_header_bytes(parts_[begun_].order.size());
    }
  }
  void add(std::size_t bytes) { at_ += bytes; }
  void end() {
    if (!parts_.empty()) begin(parts_.size() - 1);
    end_last();
    first_[parts_.size()] = at_;
  }

 private:
  void end_last() {
    if (begun_ == 0) return;
    size_[begun_ - 1] = at_ - first_[begun_ - 1];
    std::size_t const next = packed_aligned(at_);
    if (next > at_) std::memset(at(), 0, next - at_);  // without rows there is no memory
    at_ = next;
  }

  std::span<PackSums const> parts_;
  PackedParts& packed_;
  std::uint64_t *first_, *size_;
  std::size_t begun_ = 0, at_ = 0;
};

// Packs tasks in buffers of the threads' caches. stream: the result exceeds the caches.
inline void write_packed_tasks(HostExec ex, std::span<PackSums const> parts, std::vector<PackTask> const& tasks,
                               bool stream, PackedParts& packed) {
  constexpr std::size_t kCachedBytes = std::size_t{1} << 20;  // per thread
  std::size_t dim_max = 1, head_bytes = 0;
  std::vector<std::size_t> head_at;
  std::vector<PartPacker> packers;
  for (auto const& part : parts) {
    dim_max = std::max(dim_max, part.sums.columns());
    head_at.push_back(head_bytes);
    head_bytes += packed_header_bytes(part.order.size());
    packers.emplace_back(part);
  }
  std::size_t const task_bytes = PackTask::kRows * dim_max * sizeof(std::int64_t);
  std::size_t const at_once =
      std::max<std::size_t>(1, kCachedBytes / task_bytes) * static_cast<std::size_t>(ex.arena->threads());
  Device const host = Device::host();
  Array<std::uint8_t> const heads(host, head_bytes), written(host, std::min(at_once, tasks.size()) * task_bytes);
  PackedPlaces places(parts, packed);
  std::vector<std::uint8_t*> target(at_once);
  std::vector<std::size_t> size(at_once);
  for (std::size_t from = 0; from < tasks.size(); from += at_once) {
    std::size_t const count = std::min(at_once, tasks.size() - from);
    ex.arena->blocks(count, [&](std::size_t t) {
      PackTask const& task = tasks[from + t];
      std::uint8_t* const begin = written.data() + t * task_bytes;
      std::uint8_t* const head = heads.data() + head_at[task.part];
      size[t] = static_cast<std::size_t>(packers[task.part].write(task.first, task.last, head, begin) - begin);
    });
    for (std::size_t t = 0; t < count; ++t) {
      places.begin(tasks[from + t].part);
      target[t] = places.at();
      places.add(size[t]);
    }
    ex.arena->blocks(count, [&](std::size_t t) {
      std::uint8_t const* const begin = written.data() + t * task_bytes;
      if (size[t] == 0) return;
      if (!stream) return void(std::memcpy(target[t], begin, size[t]));
      store_nontemporal(target[t], begin, size[t]);
      nontemporal_fence();
    });
  }
  places.end();
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto const head = packed_header_bytes(parts[p].order.size());
    if (head > 0) std::memcpy(places.widths_of(p), heads.data() + head_at[p], head);
  }
}

inline PackedParts write_packed(HostExec ex, std::span<PackSums const> parts) {
  PackedParts packed = packed_memory(parts);
  std::vector<PackTask> tasks;
  std::size_t rows = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::size_t const n = parts[p].order.size();
    rows += n;
    for (std::size_t first = 0; first < n; first += PackTask::kRows) {
      tasks.push_back({p, first, std::min(first + PackTask::kRows, n)});
    }
  }
  bool const stream = exceeds_caches(*ex.arena, packed.memory.size() / 2);  // usual results are about half the maximum
  if (rows > PackTask::kRows && (ex.arena->threads() > 1 || stream)) {
    write_packed_tasks(ex, parts, tasks, stream, packed);
    return packed;
  }
  PackedPlaces places(parts, packed);
  for (PackTask const& task : tasks) {
    places.begin(task.part);
    std::uint8_t* const to = places.at();
    std::uint8_t* const end =
        PartPacker(parts[task.part]).write(task.first, task.last, places.widths_of(task.part), to);
    places.add(static_cast<std::size_t>(end - to));
  }
  places.end();
  return packed;
}

}  // namespace gpups::kernels
