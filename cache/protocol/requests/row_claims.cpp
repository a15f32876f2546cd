// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/requests/row_claims.hpp"

#include <fmt/core.h>

#include <utility>

#include "cache/protocol/requests/collective_call.hpp"
#include "comm/base/serialization.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/index/unique_keys.hpp"

namespace gpups::cache {
namespace {

template <class T>
std::string encode_list(std::span<T const> list) {
  comm::Writer writer(list.size_bytes() + sizeof(std::uint64_t));
  writer.put_list(list);
  return writer.take();
}

template <class T>
std::vector<T> decode_list(Rank from, std::string const& bytes) {
  return parse_result(number(from), [&] {
    comm::Reader reader(bytes);
    auto list = reader.get_list<T>();
    reader.end();
    return list;
  });
}

// The distinct keys of all claims, and the index of each claim, in the order of the ranks, among them.
struct ClaimedKeys {
  std::vector<Key> keys;
  std::vector<std::uint32_t> positions;
};

ClaimedKeys wait_join(Stream& stream, std::span<std::vector<Key> const> claims) {
  std::vector<Key> all;
  for (auto const& claim : claims) all.insert(all.end(), claim.begin(), claim.end());
  GPUPS_REQUIRE(all.size() <= kernels::kUniqueKeysMax,
                "all ranks together claim {} rows of one home in a call of localize() (the maximum is {}): use several "
                "calls",
                all.size(), kernels::kUniqueKeysMax);
  auto const keys = to_device(stream, all);
  Array<Key> const unique(stream.device(), all.size());
  Array<std::uint32_t> const positions(stream.device(), all.size());
  std::vector<std::uint32_t> offsets(2);
  kernels::KeyPart const part{.keys = keys, .unique = unique, .positions = positions, .home_offsets = offsets};
  kernels::wait_unique_keys(stream, {.parts = {&part, 1}, .homes = 1});
  return {to_host(stream, View<Key const>(unique).slice(0, offsets[1])),
          to_host(stream, View<std::uint32_t const>(positions))};
}

}  // namespace

std::string encode_claim(std::span<Key const> keys) { return encode_list(keys); }
std::string encode_grant(std::span<Rank const> from) { return encode_list(from); }

std::vector<Key> decode_claim(Rank claimant, std::string const& bytes, Rank home, int ranks) {
  auto keys = decode_list<Key>(claimant, bytes);
  for (Key const key : keys) {
    if (kernels::home_of(key, static_cast<std::uint32_t>(ranks)) == number(home)) continue;
    throw_invalid_result(number(claimant), fmt::format("a claim of key {}, whose home is another rank", number(key)));
  }
  return keys;
}

std::vector<Rank> decode_grant(Rank home, std::string const& bytes, std::size_t claimed, int ranks) {
  auto from = decode_list<Rank>(home, bytes);
  if (from.size() != claimed) {
    throw_invalid_result(number(home),
                         fmt::format("grants of {} rows, of which {} were claimed", from.size(), claimed));
  }
  for (Rank const rank : from) {
    if (rank == kNoOwner || number(rank) < static_cast<std::uint32_t>(ranks)) continue;
    throw_invalid_result(number(home), fmt::format("a grant of a row of rank {}, which does not exist", number(rank)));
  }
  return from;
}

DecidedClaims wait_decide(Stream& stream, OwnerDirectory const& directory, std::span<std::vector<Key> const> claims,
                          Clock now) {
  auto const [keys, positions] = wait_join(stream, claims);
  auto const owners = directory.wait_owners(stream, View<Key const>(keys), now);
  std::vector<Rank> to(keys.size(), kNoOwner);
  auto position = positions.begin();
  for (std::uint32_t q = 0; q < claims.size(); ++q) {
    for (std::size_t i = 0; i < claims[q].size(); ++i) {
      auto& claimant = to[*position++];
      if (claimant == kNoOwner) claimant = Rank{q};
    }
  }

  DecidedClaims decided{.grants = std::vector<std::vector<Rank>>(claims.size()), .moved = {}, .entries = {}};
  for (std::size_t k = 0; k < keys.size(); ++k) {
    if (owners[k] == to[k]) continue;
    decided.moved.push_back(keys[k]);
    decided.entries.push_back({to[k], PlacementReason::kLocalized, now});
  }

  position = positions.begin();
  for (std::uint32_t q = 0; q < claims.size(); ++q) {
    decided.grants[q].reserve(claims[q].size());
    for (std::size_t i = 0; i < claims[q].size(); ++i) {
      auto const k = *position++;
      decided.grants[q].push_back(to[k] == Rank{q} && owners[k] != Rank{q} ? owners[k] : kNoOwner);
    }
  }
  return decided;
}

}  // namespace gpups::cache
