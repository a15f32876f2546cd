// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/list_keys.hpp"

#include <cstddef>

#include "cache/wire/key_coding.hpp"
#include "kernels/base/check.hpp"
#include "kernels/runtime/host_reads.hpp"
#include "kernels/runtime/upload.hpp"

namespace gpups::cache {
namespace {

// Adds the keys of all parts, in ascending order. to: the same parts, with other keys.
void merge_keys(std::vector<PartKeys>& to, std::vector<PartKeys> const& parts) {
  for (std::size_t p = 0; p < parts.size(); ++p) {
    to[p].keys.insert(to[p].keys.end(), parts[p].keys.begin(), parts[p].keys.end());
    sort_keys(to[p].keys);
  }
}

}  // namespace

void add_keys(KeysByUse<PartKeys>& list, RowRole role, std::vector<PartKeys> const& parts) {
  if (list.reads.empty()) list.reads = without_keys(parts);
  bool const both = role == RowRole::kReadAndUpdate;
  if ((role == RowRole::kRead || role == RowRole::kUpdate) && !list.other_updates) list.other_updates = list.reads;
  if (both || role == RowRole::kRead) merge_keys(list.reads, parts);
  if ((both || role == RowRole::kUpdate) && list.other_updates) merge_keys(*list.other_updates, parts);
  if (role != RowRole::kMove) return;
  if (list.moves.empty()) list.moves = without_keys(list.reads);
  merge_keys(list.moves, parts);
}

std::vector<PartKeys> wait_download_keys(Stream& stream, std::vector<ListKeys> const& parts) {
  kernels::HostReads reads(stream);
  std::vector<PartKeys> downloaded(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    downloaded[p].table = parts[p].table;
    reads.add<Key>(parts[p].keys, downloaded[p].keys);
  }
  reads.wait();
  return downloaded;
}

std::vector<KeysByUse<ListKeys>> upload_keys(Stream& stream, std::span<KeysByUse<PartKeys> const* const> lists) {
  std::vector<Key> all;
  auto const append = [&](std::vector<PartKeys> const& parts) {
    for (auto const& part : parts) all.insert(all.end(), part.keys.begin(), part.keys.end());
  };
  for (auto const* const list : lists) {
    append(list->reads);
    if (list->other_updates) append(*list->other_updates);
    append(list->moves);
  }
  auto const memory = std::make_shared<Array<Key>>(stream.device(), all.size());
  kernels::upload<Key>(stream, *memory, all);
  std::size_t first = 0;
  auto const uploaded = [&](std::vector<PartKeys> const& parts) {
    std::vector<ListKeys> there;
    for (auto const& [table, keys] : parts) {
      there.push_back({table, memory->view().slice(first, keys.size()), memory});
      first += keys.size();
    }
    return there;
  };
  std::vector<KeysByUse<ListKeys>> on_device;
  for (auto const* const list : lists) {
    auto& to = on_device.emplace_back();
    to.reads = uploaded(list->reads);
    if (list->other_updates) to.other_updates = uploaded(*list->other_updates);
    to.moves = uploaded(list->moves);
  }
  GPUPS_ASSERT(first == all.size());
  return on_device;
}

}  // namespace gpups::cache
