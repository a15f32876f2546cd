// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/gather_pooled.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/pool/bags.hpp"
#include "kernels/runtime/launch.hpp"
#ifdef __CUDACC__
#include "kernels/pool/pool_device.hpp"
#else
#include "kernels/pool/pool_host.hpp"
#endif

namespace gpups::kernels {

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

}  // namespace gpups::kernels
