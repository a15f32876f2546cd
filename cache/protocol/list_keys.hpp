// SPDX-License-Identifier: Apache-2.0
// The keys of lists of rows, which a reader and an owner have in the same order: on the device, where the rows are, and
// on the host, where homes plan.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cache/wire/message.hpp"
#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// The keys of one part of a batch, in the order of its list.
struct PartKeys {
  TableId table{};
  std::vector<Key> keys;
};
// The same on the device of the store.
struct ListKeys {
  TableId table{};
  View<Key const> keys{};
  std::shared_ptr<Array<Key> const> memory{};  // which the parts of a message share
};
// Returns the same parts, without keys.
template <class Part>
std::vector<Part> without_keys(std::vector<Part> const& parts) {
  std::vector<Part> empty;
  for (auto const& part : parts) empty.push_back({.table = part.table, .keys = {}});
  return empty;
}
// Returns the keys of all parts on the host.
std::vector<PartKeys> wait_download_keys(Stream& stream, std::vector<ListKeys> const& parts);

// The keys of a reader's batch by what this rank does with their rows, by part. Part: PartKeys or ListKeys.
template <class Part>
struct KeysByUse {
  std::vector<Part> reads{};                         // it sends their values
  std::optional<std::vector<Part>> other_updates{};  // it gets their gradients; nullopt: those of `reads`
  std::vector<Part> moves{};                         // it passes them to the reader; empty, or one element a part

  std::vector<Part> const& updates() const { return other_updates ? *other_updates : reads; }
};
// Adds the keys that a home has forwarded with a role, in ascending order.
void add_keys(KeysByUse<PartKeys>& list, RowRole role, std::vector<PartKeys> const& parts);
// Copies lists of keys to the device, all at once. Queued on the stream.
std::vector<KeysByUse<ListKeys>> upload_keys(Stream& stream, std::span<KeysByUse<PartKeys> const* const> lists);
inline KeysByUse<ListKeys> upload_keys(Stream& stream, KeysByUse<PartKeys> const& list) {
  auto const* const one = &list;
  return std::move(upload_keys(stream, {&one, 1})[0]);
}

}  // namespace gpups::cache
