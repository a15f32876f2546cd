// SPDX-License-Identifier: Apache-2.0
#include "trainer/doctor/run_probe.hpp"

#include <optional>

#include "gpups/gpups.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/step/session.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;

// Calls `call`, and adds the message of an exception to the errors.
template <class Call>
void attempt(RunFacts& facts, Call call) {
  try {
    call();
  } catch (std::exception const& error) {
    facts.errors.emplace_back(error.what());
  }
}

std::size_t state_floats(TableOptions const& table) {
  switch (table.optimizer.kind) {
    case Optimizer::Kind::kSgd:
      return 0;
    case Optimizer::Kind::kAdagrad:
      return table.dim;
    case Optimizer::Kind::kRowwiseAdagrad:
      return 1;
    case Optimizer::Kind::kAdam:
    case Optimizer::Kind::kLamb:
    case Optimizer::Kind::kFtrl:
      return 2 * table.dim;
  }
  return 0;
}

std::uint64_t table_bytes(std::vector<TableOptions> const& tables) {
  std::uint64_t bytes = 0;
  for (TableOptions const& table : tables) {
    std::size_t const value = table.value_type == DataType::kFloat ? sizeof(float) : 2;
    bytes += table.expected_rows * (sizeof(Key) + value * table.dim + sizeof(float) * state_floats(table));
  }
  return bytes;
}

void look_at_data(RunFacts& facts, Config const& config) {
  auto const data = read_data(config);
  facts.notices = data->notices();
  facts.data_digest = data->digest();
  facts.data = "the data has " + data->summary();
  TaskContext const place{.group = Group::alone(), .device = Device::host(), .microbatches = 1, .schedule_steps = 1};
  facts.table_bytes = table_bytes(data->make_task(config, place)->tables());
}

}  // namespace

RunProbe probe_run(fs::path const& file, std::vector<SettingOverride> const& overrides, int rank, int local_rank) {
  RunProbe probe;
  RunFacts& facts = probe.facts;
  facts.config = file.string();
  std::optional<Config> config;
  attempt(facts, [&] {
    config = load_config(file, overrides);
    require_effect(*config, file.string());
  });
  if (!config) return probe;
  facts.settings = common_settings(*config);
  facts.join_timeout_s = config->cluster.join_timeout_s;
  facts.peer_timeout_s = config->cluster.peer_timeout_s;
  facts.ranks = static_cast<int>(config->run.ranks);
  attempt(facts, [&] { facts.device = to_string(device_from(config->run.device, local_rank)); });
  attempt(facts, [&] { look_at_data(facts, *config); });
  if (rank != 0) return probe;
  attempt(facts, [&] {
    probe.folder_lock = std::make_unique<RunFolderLock>(config->run.folder, file.stem().string(), file);
    facts.folder = fs::absolute(probe.folder_lock->path()).string();
    facts.folder_free_bytes = fs::space(facts.folder).available;
  });
  return probe;
}

}  // namespace gpups::trainer
