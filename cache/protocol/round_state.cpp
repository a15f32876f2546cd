// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/round_state.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "gpups/error.hpp"
#include "kernels/gather_elements.hpp"

namespace gpups::cache {

std::vector<Rank> RoundState::others() const {
  std::vector<Rank> all;
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks); ++q) {
    if (Rank{q} != me) all.push_back(Rank{q});
  }
  return all;
}

HostKeys::HostKeys(PreparedBatch::Impl const& batch, kernels::HostReads& reads) : keys_(batch.pattern->keys.view()) {
  if (!keys_.device().is_host()) reads.add<Key>(keys_, copied_);
}

View<Key const> HostKeys::of(View<Key const> keys) const {
  if (keys_.device().is_host()) return keys;
  return View<Key const>(copied_).slice(static_cast<std::size_t>(keys.data() - keys_.data()), keys.size());
}

bool has_list(PreparedBatch::Impl const& batch, Rank rank) {
  return std::any_of(batch.parts.begin(), batch.parts.end(),
                     [=](auto const& part) { return part.list_size(rank) > 0; });
}

void RoundState::throw_peer_error(Rank peer, std::string const& what) const {
  throw PeerError(peer, fmt::format("rank {} {} (rank {} cannot continue): check that all ranks run the same "
                                    "program and configuration",
                                    number(peer), what, number(me)));
}

Array<Key> keys_at(Stream& stream, PreparedPart const& part, View<std::uint32_t const> positions) {
  Array<Key> keys(stream.device(), positions.size());
  kernels::gather_elements(stream, kernels::GatherElements<Key>{part.keys, positions, keys});
  return keys;
}

namespace {

// Returns the elements of all arrays.
template <class T>
Array<T> concatenate(Stream& stream, std::vector<View<T const>> const& pieces) {
  std::size_t size = 0;
  for (auto const& piece : pieces) size += piece.size();
  Array<T> all(stream.device(), size);
  std::size_t at = 0;
  for (auto const& piece : pieces) {
    copy<T>(stream, all.view().slice(at, piece.size()), piece);
    at += piece.size();
  }
  return all;
}

ReaderPart join_part(Stream& stream, std::map<Rank, HomeList>& homes, std::size_t part) {
  ReaderPart joined;
  if (homes.size() == 1) {
    static_cast<ListPart&>(joined) = std::move(homes.begin()->second.parts[part]);
    return joined;
  }
  std::vector<View<std::uint32_t const>> ids;
  std::vector<View<Key const>> keys;
  for (auto const& [home, list] : homes) {
    auto const& piece = list.parts[part];
    joined.table = piece.table;
    joined.keys += piece.keys;
    ids.push_back(piece.ids);
    if (piece.key_list != nullptr) keys.push_back(*piece.key_list);
  }
  joined.ids_memory = std::make_shared<Array<std::uint32_t>>(concatenate(stream, ids));
  joined.ids = *joined.ids_memory;
  if (!keys.empty()) joined.key_list = std::make_shared<Array<Key>>(concatenate(stream, keys));
  return joined;
}

}  // namespace

bool has_rows(ReaderBatch const& batch) {
  for (auto const& [home, list] : batch.homes) {
    if (std::any_of(list.parts.begin(), list.parts.end(), [](auto const& part) { return part.keys > 0; })) return true;
  }
  return false;
}

void join(Stream& stream, ReaderBatch& batch) {
  if (!batch.parts.empty() || batch.homes.empty()) return;
  for (std::size_t p = 0; p < batch.homes.begin()->second.parts.size(); ++p) {
    batch.parts.push_back(join_part(stream, batch.homes, p));
  }
  for (auto& [home, list] : batch.homes) {
    for (auto& part : list.parts) part.ids = {}, part.ids_memory = {}, part.key_list = {};
  }
}

}  // namespace gpups::cache
