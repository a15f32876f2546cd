// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/base/checksum.hpp"
#include "trainer/config/table_settings.hpp"
#include "trainer/placement/placement.hpp"

namespace gpups::trainer {
Config with_policy(Config config, Group const& group) {
  if (config.placement.policy != name_of(PlacementPolicy::kAuto)) return config;
  std::int64_t const per_host = config.placement.ranks_per_host;
  bool const one_host = per_host > 0 ? per_host >= group.size() : group.location().local_ranks == group.size();
  config.placement.policy = name_of(one_host ? PlacementPolicy::kStatic : PlacementPolicy::kAdaptive);
  return config;
}

Session open_session(Config const& config, Data const& data, Group const& group, RunPlan const& plan,
                     std::function<void()> const& before_waiting) {
  Device const device = device_from(config.run.device, group.location().local_rank);
  auto task = data.make_task(config, {.group = group,
                                      .device = device,
                                      .microbatches = plan.microbatches,
                                      .schedule_steps = plan.schedule_steps,
                                      .placement = plan.placement});
  before_waiting();
  std::string gpu_interconnect =
      group.wait_connect_devices(device, {.nccl = config.cluster.nccl, .timeout_s = config.cluster.wait_timeout_s});
  group.set_wait_timeout_s(config.cluster.wait_timeout_s);
  Store store(group, {.device = device,
                      .threads = static_cast<int>(config.run.threads),
                      .seed = static_cast<std::uint64_t>(config.train.seed),
                      .replica_fraction = config.placement.replica_fraction,
                      .placement = placement_policy(config.placement.policy),
                      .placement_window = placement_window(lookahead_steps(config, group.size())),
                      .placement_bytes_min = config.placement.bytes_min,
                      .ranks_per_host = static_cast<int>(config.placement.ranks_per_host),
                      .staleness = config.placement.staleness,
                      .key_format = key_format(config.cluster.key_format),
                      .wait_timeout_s = config.cluster.wait_timeout_s});
  for (TableOptions table : task->tables()) {
    table.gradient_compression = row_compression(config.gradient_compression, table.dim);
    table.refresh_compression = row_compression(config.refresh_compression, table.dim);
    store.add_table(table);
  }
  return {std::move(task), std::move(store), std::move(gpu_interconnect)};
}

void wait_restore(Session& session, std::filesystem::path const& checkpoint) {
  auto const blobs = session.store.restore(checkpoint);
  Stream stream = session.store.make_stream();
  session.task->wait_restore(stream, blobs);
}

void wait_check_consistency(Store& store, Config const& config, std::uint64_t data_digest) {
  std::string settings;
  for (auto const& [name, value] : common_settings(config)) settings += fmt::format("\n{} = {}", name, value);
  std::string mine = fmt::format("{:016x}", data_digest);
  std::size_t const digest_length = mine.size();
  // A checksum, so that ranks do not exchange all settings.
  mine += fmt::format("{:016x}", kernels::checksum(settings.data(), settings.size()));
  auto const all = store.wait_allgather(mine);
  auto const differs = std::find_if(all.begin(), all.end(), [&](auto const& other) { return other != all[0]; });
  if (differs == all.end()) return;
  try {
    // Waits until all ranks have the result. The other ranks would report a rank that left earlier as the cause.
    store.wait_barrier();
  } catch (Error const&) {
  }
  bool const same_data = differs->substr(0, digest_length) == all[0].substr(0, digest_length);
  throw Error(fmt::format("rank {} has {} than rank 0 (they cannot train together): give every rank the same {}",
                          differs - all.begin(), same_data ? "another configuration" : "other data",
                          same_data ? "configuration" : "files"));
}

void wait_place_rows(Store& store, Placement const& placement) {
  auto const rank = number(store.rank()), ranks = static_cast<std::uint32_t>(store.ranks());
  auto const first = first_microbatch(rank, ranks, placement.parts());
  auto const end = first_microbatch(rank + 1, ranks, placement.parts());
  Stream stream = store.make_stream();
  for (TableId const table : placement.tables()) {
    store.localize(stream, table, to_device(stream, placement.keys(table, first, end)));
  }
}

}  // namespace gpups::trainer
