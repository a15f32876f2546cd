// SPDX-License-Identifier: Apache-2.0
#include "cache/store/checks.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "cache/feedback/residual_table.hpp"
#include "cache/feedback/row_mirror.hpp"
#include "cache/feedback/waiting_sums.hpp"
#include "cache/placement/owner_directory.hpp"
#include "cache/placement/replica_leases.hpp"
#include "cache/wire/key_dictionary.hpp"
#include "kernels/index/key_index.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/update/update_rows.hpp"

namespace gpups::cache {
namespace {

// Memory in bytes of the map nodes of two entries, without the entries.
constexpr std::size_t kMapNodes = 2 * 64;

}  // namespace

std::vector<MemoryPlanLine> memory_plan(TableOptions const& options, std::size_t rows, std::size_t replicas,
                                        std::size_t leases, int ranks, std::size_t dictionaries, bool rows_move) {
  using kernels::RowStorage;
  auto const name = [&](char const* what) { return fmt::format("table '{}': {}", options.name, what); };
  std::size_t const state = kernels::state_columns(options.optimizer, options.dim);
  auto const values_of = [&](std::size_t n) {
    return kernels::ValueStorage::bytes_for(n, options.dim, options.value_type);
  };
  auto const state_of = [&](std::size_t n) { return RowStorage<float>::bytes_for(n, state); };
  auto const index_of = [](std::size_t n) { return kernels::KeyIndex::bytes_for(n); };
  auto const counters_of = [=](std::size_t n) {
    std::size_t const marked = ranks > 1 ? n : 0;  // with marks of lists, and uses of replicas
    return RowStorage<std::uint32_t>::bytes_for(n, kernels::kLifecycleWords) +
           RowStorage<std::uint64_t>::bytes_for(marked, 1) + RowStorage<std::uint32_t>::bytes_for(marked, 1);
  };
  std::vector<MemoryPlanLine> plan{{name("values"), values_of(rows)},
                                   {name("optimizer state"), state_of(rows)},
                                   {name("index"), index_of(rows)},
                                   {name("counters"), counters_of(rows)}};
  if (replicas > 0) {
    auto const all_of = [&](std::size_t n) { return values_of(n) + state_of(n) + index_of(n) + counters_of(n); };
    plan.push_back({name("replicas of rows of other ranks"), all_of(rows + replicas) - all_of(rows)});
  }
  if (leases > 0) {
    plan.push_back({name("gradients that wait in leases"), WaitingSums::bytes_for(options, leases)});
    plan.push_back({name("leases"), ReplicaLeases::bytes_for(leases)});
  }
  auto const others = static_cast<std::size_t>(ranks - 1);
  if (rows_move) {
    std::size_t const away = rows * others / static_cast<std::size_t>(ranks);
    plan.push_back({name("owners of rows that are away from home"), OwnerDirectory::bytes_for(away)});
  }
  std::size_t const known =
      others == 0 ? 0 : std::min(rows, options.dictionary_keys / others);  // keys in each dictionary
  if (known > 0 && dictionaries > 0) {
    std::size_t const lists = rows_move ? 2 : 1;  // intents; and forwards, which have dictionaries of their own
    std::size_t const both_ends = KeyEncoder::bytes_for(known) + KeyDecoder::bytes_for(known) + sizeof(KeyEncoder) +
                                  sizeof(KeyDecoder) + kMapNodes;
    plan.push_back({name("key dictionaries, on the host"), dictionaries * lists * both_ends});
  }
  if (others > 0 && options.gradient_compression.enabled()) {
    std::size_t const residuals = std::min(rows, options.gradient_compression.capacity_rows);
    plan.push_back({name("residuals of gradients"), others * ResidualTable::bytes_for(options, residuals)});
  }
  if (others > 0 && options.refresh_compression.enabled()) {
    std::size_t const copied = std::min(
        rows,
        options.refresh_compression.capacity_rows);  // rows of each other rank, and rows that each other rank reads
    plan.push_back({name("mirrors"), 2 * others * RowMirror::bytes_for(options, copied)});
  }
  return plan;
}

}  // namespace gpups::cache
