// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/owner_directory.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/rows/gather_elements.hpp"

namespace gpups::cache {
namespace {

constexpr std::size_t kEntryWords = 4;  // of an entry that is read

}  // namespace

std::size_t OwnerDirectory::bytes_for(std::size_t rows) {
  return kernels::KeyIndex::bytes_for(rows, kernels::Growth::kByMoving) +
         kernels::RowStorage<std::uint32_t>::bytes_for(rows, kernels::kOwnerWords, kernels::Growth::kByMoving);
}

std::vector<OwnerDirectory::Entry> OwnerDirectory::wait_entries(Stream& stream, View<Key const> keys,
                                                                Clock step) const {
  std::vector<Entry> all(keys.size(), Entry{.owner = home_});
  if (entries() == 0 || keys.empty()) return all;
  Array<std::uint32_t> const ids(device_, keys.size());
  index_.find(stream, to_device(stream, std::vector<Key>(keys.begin(), keys.end())), ids);
  return wait_read(stream, ids, step);
}

// Returns what is known about rows with these numbers. Rows that have returned to their home are as if they had never
// moved.
std::vector<OwnerDirectory::Entry> OwnerDirectory::wait_read(Stream& stream, View<std::uint32_t const> ids,
                                                             Clock step) const {
  Array<std::uint32_t> const words(device_, kEntryWords * ids.size());
  kernels::ReadEntries const list{entries_.const_ref(), ids, words};
  kernels::read_entries(stream, {&list, 1}, home_, step);
  auto const read = to_host(stream, words.view());
  std::vector<Entry> all(ids.size(), Entry{.owner = home_});
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const* const w = &read[kEntryWords * i];
    if (Rank{w[0]} == home_) continue;
    all[i] = {Rank{w[0]}, static_cast<PlacementReason>(w[1]),
              Clock{static_cast<std::int64_t>(w[2] | std::uint64_t{w[3]} << 32)}};
  }
  return all;
}

std::vector<Rank> OwnerDirectory::wait_owners(Stream& stream, View<Key const> keys, Clock step) const {
  std::vector<Rank> owners;
  for (auto const& entry : wait_entries(stream, keys, step)) owners.push_back(entry.owner);
  return owners;
}

std::vector<OwnerDirectory::KeyedEntry> OwnerDirectory::wait_list(Stream& stream, Clock step) const {
  std::vector<KeyedEntry> all;
  if (entries() == 0) return all;
  auto const ids = index_.list_ids(stream);
  Array<std::uint64_t> const keys_there(device_, ids.size());
  kernels::gather_stored(stream, kernels::GatherStored<std::uint64_t>{index_.keys(), ids, keys_there});
  auto const keys = to_host(stream, keys_there.view());
  auto const known = wait_read(stream, ids, step);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (known[i].owner != home_) all.push_back({Key{keys[i]}, known[i]});
  }
  std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.key < b.key; });
  return all;
}

// Makes room for the entries of all numbers.
void OwnerDirectory::reserve(Stream& stream) {
  if (entries_.rows_reserved() == 0) {
    entries_ = kernels::RowStorage<std::uint32_t>(device_, kernels::kOwnerWords, kernels::NewRows::kUndefined,
                                                  kernels::Growth::kByMoving);
  }
  entries_.reserve(stream, index_.ids_end());
}

void OwnerDirectory::wait_return(Stream& stream, View<Key const> keys, Clock now) {
  wait_set(stream, keys, std::vector<Entry>(keys.size(), Entry{.owner = home_}), now);
}

void OwnerDirectory::wait_set(Stream& stream, View<Key const> keys, std::span<Entry const> entries_of_keys, Clock now) {
  GPUPS_ASSERT(entries_of_keys.size() == keys.size());
  wait_drop_returned(stream, now + 1);
  std::vector<Key> away, back;
  std::vector<std::uint32_t> words;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto const& [owner, reason, since] = entries_of_keys[i];
    (owner == home_ ? back : away).push_back(keys[i]);
    if (owner == home_) continue;
    auto const from = static_cast<std::uint64_t>(number(since));
    words.insert(words.end(), {number(owner), static_cast<std::uint32_t>(reason), static_cast<std::uint32_t>(from),
                               static_cast<std::uint32_t>(from >> 32)});
  }
  if (entries() > 0 && !back.empty()) index_.wait_erase(stream, to_device(stream, back));
  if (away.empty()) return;
  if (index_.capacity() == 0) index_ = kernels::KeyIndex(device_, 0, kernels::Growth::kByMoving);
  Array<std::uint32_t> const ids(device_, away.size());
  index_.wait_find_or_insert(stream, to_device(stream, away), ids);
  reserve(stream);
  kernels::set_entries(stream, {entries_.ref(), ids, to_device(stream, words)});
  stream.wait();  // the arrays end here
}

// Forgets rows that were at home before a step.
void OwnerDirectory::wait_drop_returned(Stream& stream, Clock step) {
  if (returned_ == 0) return;
  auto const ids = index_.list_ids(stream);
  Array<std::uint32_t> const returned(device_, ids.size());
  auto const count = kernels::wait_list_returned(stream, {entries_.const_ref(), ids, returned, home_, step});
  GPUPS_ASSERT(count <= returned_);
  kernels::KeyIndex::Erasure const erasure{&index_, returned.view().slice(0, count), true};
  kernels::KeyIndex::wait_erase_ids(stream, {&erasure, 1});
  returned_ -= count;
}

void OwnerDirectories::start(Device device, Rank home, int ranks, std::size_t tables) {
  GPUPS_ASSERT(directories_.empty());
  ranks_ = static_cast<std::uint32_t>(ranks);
  for (std::size_t t = 0; t < tables; ++t) directories_.emplace_back(device, home);
}

void OwnerDirectories::find_owners(Stream& stream, std::span<OwnersOfRows const> lists, Clock step) const {
  std::vector<kernels::KeyIndex::Search> searches;
  std::vector<kernels::ReadEntries> reads;
  for (auto const& [table, keys, owners] : lists) {
    auto const& directory = at(table);
    memory::fill_bytes(stream, owners.data(), 0xFF, owners.bytes());  // kNoRow
    if (directory.entries() > 0) searches.push_back({&directory.index_, keys, owners});
    reads.push_back({directory.entries_.const_ref(), owners, owners});
  }
  if (!searches.empty()) kernels::KeyIndex::find(stream, searches);
  kernels::read_owners(stream, reads, directories_[0].home_, step);
}

PlannedOwners OwnerDirectories::choose(Stream& stream, UsedRows const& used,
                                       std::span<kernels::RowsOfTable const> tables, kernels::HostsOfRanks const& hosts,
                                       Clock step) const {
  std::size_t const n = used.keys.size(), count = tables.size();
  auto const words = [&](std::size_t size) { return Array<std::uint32_t>(stream.device(), size); };
  PlannedOwners planned{words(n), words(n), words(n), words(n), words(n), {stream.device(), n}, words(3 * count)};
  memory::fill_bytes(stream, planned.ids.data(), 0xFF, planned.ids.bytes());  // kNoRow
  std::vector<kernels::KeyIndex::Search> searches;
  std::vector<kernels::ReadEntries> reads;
  std::vector<kernels::MovedRows> moved;
  for (std::size_t t = 0; t < count; ++t) {
    auto const& rows = tables[t];
    auto const of_table = [&](auto const& column) { return column.view().slice(rows.first, rows.size); };
    if (directories_[t].entries() > 0) {
      searches.push_back({&directories_[t].index_, of_table(used.keys), of_table(planned.ids)});
    }
    reads.push_back({directories_[t].entries_.const_ref(), of_table(planned.ids), of_table(planned.before)});
    moved.push_back({static_cast<std::uint32_t>(rows.first), static_cast<std::uint32_t>(rows.size),
                     of_table(planned.moved), of_table(planned.moved_ids), of_table(planned.moved_keys)});
  }
  if (!searches.empty()) kernels::KeyIndex::find(stream, searches);
  Rank const home = directories_[0].home_;
  kernels::read_owners(stream, reads, home, step);
  Array<std::int64_t> const sent(stream.device(), used.users.size());
  kernels::choose_owners(stream, {.step = step,
                                  .ranks = ranks_,
                                  .tables = tables,
                                  .keys = used.keys,
                                  .owners = planned.before,
                                  .first_user = used.first_user,
                                  .user_count = used.user_count,
                                  .users = used.users,
                                  .sent = sent,
                                  .hosts = hosts,
                                  .chosen = planned.in_step});
  kernels::list_moved(stream, {moved, used.keys, planned.ids, planned.before, planned.in_step, home, planned.counts});
  return planned;
}

void OwnerDirectories::wait_plan(Stream& stream, UsedRows const& used, PlannedOwners const& planned,
                                 std::span<std::uint32_t const> counts, Clock step) {
  std::size_t const tables = directories_.size();
  GPUPS_ASSERT(counts.size() == 3 * tables);
  std::vector<kernels::KeyIndex::Insertion> insertions;
  std::vector<kernels::MoveEntries> moves;
  std::size_t all = 0;
  auto const moved_of = [&](auto const& column, std::size_t t) {
    return column.view().slice(used.tables[t].first, counts[t]);
  };
  for (std::size_t t = 0; t < tables; ++t) {
    std::uint32_t const absent = counts[tables + t];
    auto& directory = directories_[t];
    all += counts[t];
    if (absent == 0) continue;
    if (directory.index_.capacity() == 0) {
      directory.index_ = kernels::KeyIndex(stream.device(), 0, kernels::Growth::kByMoving);
    }
    insertions.push_back({.index = &directory.index_,
                          .keys = moved_of(planned.moved_keys, t),
                          .ids = moved_of(planned.moved_ids, t),
                          .missing = absent,
                          .distinct = true});
  }
  if (all == 0) return;
  if (!insertions.empty()) kernels::KeyIndex::wait_insert(stream, insertions);
  for (std::size_t t = 0; t < tables; ++t) {
    if (counts[t] == 0) continue;
    directories_[t].reserve(stream);
    moves.push_back({directories_[t].entries_.ref(), moved_of(planned.moved, t), moved_of(planned.moved_ids, t)});
  }
  kernels::plan_moves(stream, {moves, planned.ids, planned.before, planned.in_step, directories_[0].home_, step});
  for (std::size_t t = 0; t < tables; ++t) {
    auto& directory = directories_[t];
    directory.returned_ += static_cast<std::size_t>(static_cast<std::int32_t>(counts[2 * tables + t]));
    GPUPS_ASSERT(directory.returned_ <= directory.entries());
    // An erased key leaves a mark that lengthens searches, so many are erased at once.
    constexpr std::size_t kFewReturned = 4096;
    if (directory.returned_ > kFewReturned && directory.returned_ > directory.entries() / 2) {
      directory.wait_drop_returned(stream, step - 1);
    }
  }
}

}  // namespace gpups::cache
