// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/pool.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/pool/bags.hpp"
#include "kernels/pool/table_entries.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/launch.hpp"
#ifdef __CUDACC__
#include "kernels/pool/pool_device.hpp"
#include "kernels/runtime/segments.hpp"
#else
#include "kernels/pool/pool_host.hpp"
#endif

namespace gpups::kernels {

inline std::size_t entries_of(PooledTable const& t) {
  if (!t.keys.empty()) return t.keys.size();
  return t.positions.empty() ? t.ids.size() : t.positions.size();
}

inline Bags bags_of(PooledTable const& t) {
  std::size_t const count = t.offsets.empty() ? entries_of(t) : t.offsets.size() - 1;
  return {count, t.offsets, t.weights, {}, t.mean, t.out};
}

inline void check(PooledTable const& t) {
  [[maybe_unused]] std::size_t const entries = entries_of(t);
  GPUPS_ASSERT(t.weights.empty() || t.weights.size() >= entries);
  GPUPS_ASSERT(t.found.empty() || t.found.size() >= entries);
  GPUPS_ASSERT(t.out.rows() >= bags_of(t).count && t.out.stride() % 4 == 0);
  GPUPS_ASSERT(t.rows.stride >= t.out.columns() && t.rows.stride % (t.rows.type == DataType::kFloat ? 4 : 8) == 0);
}

#ifdef __CUDACC__
// A table, with the work of its warps.
struct PooledByWarps {
  PooledTable table;
  Bags bags;
  WarpTasks tasks;

  explicit PooledByWarps(PooledTable const& t)
      : table(t), bags(bags_of(t)), tasks(warp_tasks(bags, t.rows.type == DataType::kFloat ? 4 : 2)) {}
};

// The most tables that fit the parameters of a kernel, which reads them faster than tables in memory.
inline constexpr std::size_t kTablesAtOnce = CUDART_VERSION >= 12010 ? 32 : 8;

// The tables of one launch. The warps first_warp[t] .. first_warp[t + 1] - 1 pool table t.
struct TablesAtOnce {
  PooledTable table[kTablesAtOnce];
  Bags bags[kTablesAtOnce];
  WarpTasks tasks[kTablesAtOnce];
  std::size_t first_warp[kTablesAtOnce + 1];
  std::uint32_t count;

  // Returns the table of a warp.
  __device__ std::uint32_t table_of(std::size_t warp) const {
    std::uint32_t low = 0;
    for (std::uint32_t high = count; high - low > 1;) {
      std::uint32_t const middle = (low + high) / 2;
      (first_warp[middle] <= warp ? low : high) = middle;
    }
    return low;
  }
};

// Pools the bags of one warp, with the source of its table.
struct PoolWarp {
  Bags const& bags;
  WarpTasks const& tasks;
  std::size_t warp;
  template <class Source>
  __device__ void operator()(Source const& source) const {
    pool_warp(source, bags, tasks, warp);
  }
};

void pool_at_once(DeviceExec ex, TablesAtOnce const& all) {
  each(ex, all.first_warp[all.count] * kWarpLanes, [all] GPUPS_FN(std::size_t thread) {
    std::size_t const warp = thread / kWarpLanes;
    std::uint32_t const t = all.table_of(warp);
    with_source(all.table[t], PoolWarp{all.bags[t], all.tasks[t], warp - all.first_warp[t]});
  });
}

// Returns a copy of a table in shared memory, which its warp reads instead of loading the table again for each bag and
// entry. All lanes of the warp call it. Valid until the next call.
__device__ PooledByWarps const& copy_for_warp(PooledByWarps const& table) {
  constexpr std::size_t kWords = sizeof table / sizeof(std::uint64_t);
  static_assert(kWords * sizeof(std::uint64_t) == sizeof table);
  __shared__ std::uint64_t copies[kBlockThreads / kWarpLanes][kWords];
  std::uint64_t* const copy = copies[threadIdx.x / kWarpLanes];
  __syncwarp();  // all lanes have pooled with the previous table
  for (std::size_t k = threadIdx.x % kWarpLanes; k < kWords; k += kWarpLanes) {
    copy[k] = reinterpret_cast<std::uint64_t const*>(&table)[k];
  }
  __syncwarp();
  return *reinterpret_cast<PooledByWarps const*>(copy);
}

// Pools tables that are too many for the parameters of a kernel.
void pool_from_memory(DeviceExec ex, std::vector<PooledByWarps> tables) {
  SegmentList const list(ex, std::move(tables), [](PooledByWarps const& t) { return t.tasks.warps * kWarpLanes; });
  each_item(ex, list.segments(), [] GPUPS_FN(PooledByWarps const& in_memory, std::size_t thread) {
    PooledByWarps const& t = copy_for_warp(in_memory);
    with_source(t.table, PoolWarp{t.bags, t.tasks, thread / kWarpLanes});
  });
}

template <Space S>
void run(Exec<S> ex, FindPooled const& f) {
  std::vector<PooledByWarps> tables;
  for (auto const& t : f.tables) {
    check(t);
    tables.emplace_back(t);
  }
  if (tables.size() > kTablesAtOnce) return pool_from_memory(ex, std::move(tables));
  TablesAtOnce all{};
  for (auto const& t : tables) {
    all.table[all.count] = t.table;
    all.bags[all.count] = t.bags;
    all.tasks[all.count] = t.tasks;
    all.first_warp[all.count + 1] = all.first_warp[all.count] + t.tasks.warps;
    ++all.count;
  }
  pool_at_once(ex, all);
}

#else
// The bags first .. last - 1 of a table.
struct PooledBlock {
  std::uint32_t table;
  std::size_t first, last;
};

template <Space S>
void run(Exec<S> ex, FindPooled const& f) {
  std::vector<Bags> bags;
  std::vector<PooledBlock> blocks;
  std::size_t bytes = 0;
  for (auto const& t : f.tables) {
    check(t);
    bags.push_back(bags_of(t));
    std::size_t const count = bags.back().count, at_once = count == 0 ? 1 : bags_at_once(bags.back());
    for (std::size_t first = 0; first < count; first += at_once) {
      blocks.push_back({static_cast<std::uint32_t>(bags.size() - 1), first, std::min(first + at_once, count)});
    }
    bytes += count * t.out.stride() * sizeof(float);
  }
  bool const large = exceeds_caches(*ex.arena, bytes);
  ex.arena->blocks(blocks.size(), [&](std::size_t b) {
    auto const& [table, first_bag, last_bag] = blocks[b];
    std::size_t const first = first_bag, last = last_bag;  // clang does not let lambdas capture structured bindings
    Bags const& of_table = bags[table];
    with_source(f.tables[table], [&](auto const& source) {
      pool_bags(source, of_table, first, last,
                large && are_lines(of_table.out.data(), of_table.out.stride() * sizeof(float)));
    });
  });
}
#endif

GPUPS_KERNEL(find_pooled, FindPooled)

template <Space S>
void run(Exec<S> ex, GatherPooled const& g) {
  std::size_t const count = g.offsets.empty() ? g.positions.size() : g.offsets.size() - 1;
  if (count == 0) return;
  GPUPS_ASSERT(g.out.stride() == g.rows.stride());
  GPUPS_ASSERT(g.targets.empty() ? g.out.rows() >= count : g.targets.size() >= count);
  GPUPS_ASSERT(g.coefficients.empty() || g.coefficients.size() >= g.positions.size());
  Bags const bags{count, g.offsets, g.coefficients, g.targets, g.mean, g.out};
  MatrixEntries const source{g.rows, g.positions};
#ifdef __CUDACC__
  WarpTasks const tasks = warp_tasks(bags, sizeof(float));
  each(ex, tasks.warps * kWarpLanes,
       [=] GPUPS_FN(std::size_t thread) { pool_warp(source, bags, tasks, thread / kWarpLanes); });
#else
  std::size_t const at_once = bags_at_once(bags);
  bool const stream = should_stream(*ex.arena, bags);
  ex.arena->blocks((count + at_once - 1) / at_once, [&](std::size_t block) {
    pool_bags(source, bags, block * at_once, std::min((block + 1) * at_once, count), stream);
  });
#endif
}

GPUPS_KERNEL(gather_pooled, GatherPooled)

GPUPS_FN inline bool is_right(BagPart const& b, std::size_t i) {
  bool const rises = i == 0 ? b.offsets[0] == 0 : b.offsets[i - 1] <= b.offsets[i];
  return rises && (i + 1 < b.offsets.size() || b.offsets[i] == b.bag_of.size());
}

#ifdef __CUDACC__
template <Space S>
void run(Exec<S> ex, ValidateBags const& c) {
  each(ex, c.parts.size(), [bad_offsets = c.bad_offsets] GPUPS_FN(std::size_t p) { bad_offsets[p] = kNoRow; });
  for (std::size_t p = 0; p < c.parts.size(); ++p) {
    BagPart const b = c.parts[p];
    std::uint32_t* const bad_row = c.bad_offsets.data() + p;
    each(ex, b.offsets.size(), [=] GPUPS_FN(std::size_t i) {
      b.kept[i] = b.offsets[i];
      if (!is_right(b, i)) atomic_min(bad_row, static_cast<std::uint32_t>(i));
    });
    each_row(ex, b.offsets.size() - 1, [=] GPUPS_FN(std::size_t bag, NativeLanes lanes) {
      if (*bad_row != kNoRow) return;
      std::uint32_t const first = b.kept[bag];
      lanes.each(b.kept[bag + 1] - first,
                 [=](std::size_t j) { b.bag_of[first + j] = static_cast<std::uint32_t>(bag); });
    });
  }
}
#else
// Parts are processed in parallel, and so are the bags of a part with many bags.
template <Space S>
void run(Exec<S> ex, ValidateBags const& c) {
  GPUPS_ASSERT(c.bad_offsets.size() == c.parts.size());
  ex.arena->blocks(c.parts.size(), [&](std::size_t p) {
    BagPart const& b = c.parts[p];
    GPUPS_ASSERT(!b.offsets.empty() && b.kept.size() == b.offsets.size());
    c.bad_offsets[p] = kNoRow;
    std::copy(b.offsets.begin(), b.offsets.end(), b.kept.begin());
    bool all = true;
    for (std::size_t i = 0; i < b.kept.size(); ++i) all &= is_right(b, i);
    for (std::uint32_t i = 0; !all && c.bad_offsets[p] == kNoRow; ++i) c.bad_offsets[p] = is_right(b, i) ? kNoRow : i;
    each(ex, all ? b.kept.size() - 1 : 0, [=](std::size_t bag) {
      std::fill(b.bag_of.data() + b.kept[bag], b.bag_of.data() + b.kept[bag + 1], static_cast<std::uint32_t>(bag));
    });
  });
}
#endif

GPUPS_KERNEL(validate_bags, ValidateBags)

}  // namespace gpups::kernels
