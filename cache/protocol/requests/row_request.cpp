// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/requests/row_request.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/index/unique_keys.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/runtime/require_memory.hpp"

namespace gpups::cache {
namespace {

// Up to this number of keys, finding repeated keys takes longer than reading their rows twice.
constexpr std::size_t kFewKeys = 2048;

char const* name_of(RowRequest::Kind kind) {
  switch (kind) {
    case RowRequest::Kind::kLookup:
      return "lookup";
    case RowRequest::Kind::kAssign:
      return "assign";
    case RowRequest::Kind::kErase:
      return "erase";
    case RowRequest::Kind::kWhere:
      return "where";
    default:
      return "expire";
  }
}

// Throws Error for keys that the function `call` of a Store cannot use.
void require_keys(Stream const& stream, char const* call, View<Key const> keys) {
  kernels::require_memory(keys, call, "keys");
  GPUPS_REQUIRE(keys.size() <= kernels::kUniqueKeysMax,
                "{}() was called with {} keys (the maximum is {}): use several calls", call, keys.size(),
                kernels::kUniqueKeysMax);
  GPUPS_REQUIRE(keys.empty() || keys.device() == stream.device(),
                "keys are on {} and the stream is on {} (the stream's device reads the keys): copy them first",
                to_string(keys.device()), to_string(stream.device()));
}

// Groups keys on the host by home, without merging repeated keys.
void group_by_home(View<Key const> keys, View<std::uint32_t> positions, RowRequest& request) {
  auto const ranks = static_cast<std::uint32_t>(request.targets.size() - 1);
  auto& first = request.targets;
  for (Key const key : keys) ++first[kernels::home_of(key, ranks) + 1];
  for (std::uint32_t q = 0; q < ranks; ++q) first[q + 1] += first[q];
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    positions[i] = next[kernels::home_of(keys[i], ranks)]++;
    request.keys[positions[i]] = keys[i];
  }
}

}  // namespace

std::shared_ptr<RowRequest> make_request(Stream& stream, RowRequest::Kind kind, TableId table, View<Key const> keys,
                                         std::size_t dim, std::size_t state_columns, int ranks,
                                         Array<std::uint32_t>& positions) {
  bool const lookup = kind == RowRequest::Kind::kLookup;
  require_keys(stream, name_of(kind), keys);
  auto request = std::make_shared<RowRequest>();
  request->kind = kind;
  request->table = table;
  request->targets.resize(static_cast<std::size_t>(ranks) + 1);
  request->keys = Array<Key>(stream.device(), keys.size());
  positions = Array<std::uint32_t>(stream.device(), keys.size());
  if (lookup && stream.device().is_host() && keys.size() <= kFewKeys) {
    group_by_home(keys, positions, *request);
  } else {
    kernels::KeyPart const part{
        .keys = keys, .unique = request->keys, .positions = positions, .home_offsets = request->targets};
    kernels::wait_unique_keys(stream, {.parts = {&part, 1}, .homes = static_cast<std::uint32_t>(ranks)});
  }
  request->allocate(stream.device(), dim, state_columns);
  return request;
}

KeysOfHomes wait_group_by_home(Stream& stream, char const* call, View<Key const> keys, int ranks) {
  require_keys(stream, call, keys);
  KeysOfHomes homes;
  homes.first.resize(static_cast<std::size_t>(ranks) + 1);
  Array<Key> const unique(stream.device(), keys.size());
  Array<std::uint32_t> const positions(stream.device(), keys.size());
  kernels::KeyPart const part{.keys = keys, .unique = unique, .positions = positions, .home_offsets = homes.first};
  kernels::wait_unique_keys(stream, {.parts = {&part, 1}, .homes = static_cast<std::uint32_t>(ranks)});
  homes.keys = to_host(stream, View<Key const>(unique).slice(0, homes.first.back()));
  return homes;
}

std::shared_ptr<RowRequest> make_owned_request(Stream& stream, RowRequest::Kind kind, TableId table,
                                               std::span<Key const> keys, std::span<Rank const> owners, std::size_t dim,
                                               std::size_t state_columns, int ranks,
                                               std::vector<std::uint32_t>& positions) {
  auto request = std::make_shared<RowRequest>();
  request->kind = kind;
  request->table = table;
  std::vector<std::vector<std::uint32_t>> lists(static_cast<std::size_t>(ranks));
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    if (owners[i] != kNoOwner) lists[number(owners[i])].push_back(i);
  }
  std::vector<Key> grouped;
  positions.clear();
  request->targets.push_back(0);
  for (auto const& list : lists) {
    for (auto const i : list) grouped.push_back(keys[i]);
    positions.insert(positions.end(), list.begin(), list.end());
    request->targets.push_back(static_cast<std::uint32_t>(grouped.size()));
  }
  request->keys = to_device(stream, grouped);
  request->allocate(stream.device(), dim, state_columns);
  return request;
}

void RowRequest::allocate(Device device, std::size_t dim, std::size_t state_columns) {
  std::size_t const rows = targets.back();
  if (kind == Kind::kLookup || kind == Kind::kAssign || kind == Kind::kTake) values = Matrix<float>(device, rows, dim);
  if (kind == Kind::kLookup || kind == Kind::kTake) found = Array<std::uint8_t>(device, rows);
  if (kind == Kind::kWhere) width = kWhereWords;
  if (kind == Kind::kTake) width = state_columns + kernels::kLifecycleWords;
  words = Array<std::uint32_t>(device, rows * width);
}

}  // namespace gpups::cache
