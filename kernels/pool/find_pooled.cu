// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/find_pooled.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/pool/bags.hpp"
#include "kernels/pool/table_entries.hpp"
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

}  // namespace gpups::kernels
