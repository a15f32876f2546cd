// SPDX-License-Identifier: Apache-2.0
// RoundExecutor: checkpoints, and rows that are erased or moved between steps.
#include <algorithm>

#include "cache/protocol/round_executor.hpp"
#include "cache/wire/key_coding.hpp"

namespace gpups::cache {

void RoundExecutor::wait_drop(TableId table, View<Key const> keys) {
  wait_drop_residuals(table, keys);
  values_.wait_drop(table, keys);
}

std::vector<Key> RoundExecutor::wait_residual_keys(TableId table) const {
  auto keys = residuals_.wait_keys(table);
  auto const waiting = leased_.wait_keys(table);
  keys.insert(keys.end(), waiting.begin(), waiting.end());
  sort_keys(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

void RoundExecutor::wait_drop_residuals(TableId table, View<Key const> keys) {
  residuals_.wait_drop(table, keys);
  leased_.wait_drop(table, keys);
}

ResidualFile RoundExecutor::wait_save_residuals() const {
  ResidualFile file;
  residuals_.wait_save(file);
  leased_.wait_save(file);
  values_.wait_save(file);
  return file;
}

void RoundExecutor::wait_move(TableId table, std::vector<Key> const& keys, Rank to) {
  residuals_.wait_move(table, keys, to);
  if (state_.table(table).sends_deltas()) values_.wait_drop(table, to_device(state_.stream, keys));
}

void RoundExecutor::wait_load_residuals(ResidualFile const& file, OwnsRow const& owns) {
  residuals_.wait_load(file, owns);
  if (file.writers == static_cast<std::uint32_t>(state_.ranks)) values_.wait_load(file);
}

}  // namespace gpups::cache
