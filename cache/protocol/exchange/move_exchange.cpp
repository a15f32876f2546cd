// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/exchange/move_exchange.hpp"

#include <deque>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/rows/selected_rows.hpp"

namespace gpups::cache {
namespace {

// Returns a part of a body as words.
template <class T>
View<T> words_at(View<std::uint8_t> bytes, MovedBody::Place place) {
  return {reinterpret_cast<T*>(bytes.data() + place.first), place.size / sizeof(T), bytes.device()};
}

}  // namespace

TableShard::MovedColumns MoveExchange::columns(TableId table, MovedBody::PartPlaces const& places,
                                               View<std::uint8_t> bytes) const {
  auto const values = bytes.slice(places.values.first, places.values.size);
  return {.values = state_.table(table).numbers_at(values, places.sent),
          .state = words_at<float>(bytes, places.state),
          .lifecycle = words_at<std::uint32_t>(bytes, places.lifecycle)};
}

// -- the owner before the step --

void MoveExchange::find_leaving(Clock clock, MarkedLists& leaving, kernels::HostReads& reads) const {
  auto& stream = state_.stream;
  leaving = {};
  std::size_t words = 0, count = 0;
  std::map<Rank, std::vector<ListPart> const*> lists;
  for (auto const& [id, batch] : state_.reader_batches) {
    if (id.second != clock || batch.is_late || !has_rows(batch, kMoveRoles)) continue;
    lists[id.first] = &batch.moves;
    leaving.first[id.first] = count;
    count += batch.moves.size();
    for (auto const& part : batch.moves) words += kernels::bitmap_words(part.ids.size()) + part.ids.size();
  }
  if (lists.empty()) return;
  leaving.words = Array<std::uint32_t>(stream.device(), words);
  leaving.counts = Array<std::uint32_t>(stream.device(), count);
  std::size_t at = 0;
  auto const take = [&](std::size_t size) {
    at += size;
    return leaving.words.view().slice(at - size, size);
  };
  std::vector<kernels::MarkExisting> marks;
  std::vector<kernels::ListMarked> listed;
  for (auto const& [reader, parts] : lists) {
    for (auto const& part : *parts) {
      std::size_t const rows = part.ids.size();
      auto const bitmap = take(kernels::bitmap_words(rows));
      auto const& marked = leaving.of[reader].emplace_back(MarkedRows{bitmap, take(rows)});
      marks.push_back(state_.table(part.table).mark_moved(part.ids, marked.bitmap));
      listed.push_back({.bitmap = marked.bitmap, .n = rows, .from = part.ids, .taken = marked.listed});
    }
  }
  kernels::mark_existing(stream, marks);
  kernels::list_marked(stream, listed, leaving.counts);
  reads.add<std::uint32_t>(leaving.counts.view(), leaving.count);
}

std::map<Rank, MoveExchange::PackedMoves> MoveExchange::pack(Clock clock, MarkedLists const& leaving) {
  GPUPS_ASSERT(clock == state_.round.applied() + 1);
  std::map<Rank, PackedMoves> all;
  std::vector<kernels::CopyWords> bitmaps;
  std::vector<TableShard::ShardIds> sent, left;
  for (auto const& [reader, marked] : leaving.of) {
    auto const& parts = state_.reader_batches.at({reader, clock}).moves;
    std::size_t const first_count = leaving.first.at(reader);
    GPUPS_ASSERT(marked.size() == parts.size() && first_count + parts.size() <= leaving.count.size());
    auto& packed = all[reader];
    std::vector<MovedBody::RowsOfPart> rows;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      GPUPS_ASSERT(leaving.count[first_count + p] <= parts[p].ids.size());
      packed.sent.push_back(leaving.count[first_count + p]);
      rows.push_back({&state_.table(parts[p].table).options(), parts[p].ids.size(), packed.sent[p]});
    }
    MovedBody const body(rows);
    packed.bytes = std::make_shared<Array<std::uint8_t>>(state_.stream.device(), body.bytes());
    for (std::size_t p = 0; p < parts.size(); ++p) {
      auto const& places = body.parts()[p];
      auto const bytes = packed.bytes->view();
      auto* const shard = &state_.table(parts[p].table);
      rows_ += places.rows;
      if (places.rows > 0) {
        bitmaps.push_back({marked[p].bitmap, words_at<std::uint32_t>(bytes, places.bitmap)});
        left.push_back({shard, parts[p].ids});
      }
      if (places.sent == 0) continue;
      sent.push_back({shard, marked[p].listed.slice(0, places.sent), columns(parts[p].table, places, bytes)});
    }
  }
  if (left.empty()) return all;
  kernels::copy_words(state_.stream, bitmaps);
  TableShard::read_columns(state_.stream, sent);
  TableShard::make_replicas(state_.stream, left, clock - 1);
  return all;
}

void MoveExchange::send(Rank reader, Clock clock, PackedMoves const& packed) {
  auto const& bytes = packed.bytes;
  state_.messenger.send_data(state_.stream, reader, tag_of_moved_rows(clock), bytes->data(), bytes->size(),
                             &Traffic::moves, bytes);
}

// -- the owner in the step --

void MoveExchange::receive(Rank from, PendingBatch& pending, std::vector<std::uint64_t> const& sent,
                           std::function<void()> then) {
  GPUPS_ASSERT(pending.routed && !pending.placed);  // the list of `from` is known, and nothing is decoded yet
  auto const& parts = pending.batch->parts;
  std::vector<MovedBody::RowsOfPart> rows;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::size_t const count = parts[p].arriving.size_of(from);
    if (sent.size() != parts.size() || sent[p] > count) {
      state_.throw_peer_error(from, "passed other rows than its home has announced");
    }
    rows.push_back({&state_.table(parts[p].table).options(), count, sent[p]});
  }
  auto const arrived = std::make_shared<ArrivedRows>(ArrivedRows{.from = from, .body = MovedBody(rows)});
  pending.arrived.push_back(arrived);
  auto const allocate = [arrived, device = state_.stream.device()] {
    arrived->bytes = Array<std::uint8_t>(device, arrived->body.bytes());
    return arrived->bytes.data();
  };
  state_.messenger.receive_data(state_.stream, from, tag_of_moved_rows(pending.batch->clock), arrived->body.bytes(),
                                allocate, std::move(then));
}

void MoveExchange::find_arrived(PendingBatch const& pending, MarkedLists& found, kernels::HostReads& reads) const {
  auto& stream = state_.stream;
  found = {};
  std::size_t words = 0, count = 0;
  for (auto const& arrived : pending.arrived) {
    GPUPS_ASSERT(!found.first.contains(arrived->from));  // an owner passes the rows of a batch in one message
    GPUPS_ASSERT(arrived->bytes.size() == arrived->body.bytes());
    found.first[arrived->from] = count;
    count += 2 * arrived->body.parts().size();
    for (auto const& places : arrived->body.parts()) words += 2 * places.rows;
  }
  if (count == 0) return;
  found.words = Array<std::uint32_t>(stream.device(), words);
  found.counts = Array<std::uint32_t>(stream.device(), count);
  std::vector<kernels::ListMarked> listed;
  std::size_t at = 0;
  for (auto const& arrived : pending.arrived) {
    for (std::size_t p = 0; p < arrived->body.parts().size(); ++p) {
      auto const& places = arrived->body.parts()[p];
      auto const words_of = [&](std::size_t first) { return found.words.view().slice(first, places.rows); };
      MarkedRows const marked{words_at<std::uint32_t>(arrived->bytes, places.bitmap), words_of(at),
                              words_of(at + places.rows)};
      at += 2 * places.rows;
      found.of[arrived->from].push_back(marked);
      auto const positions = pending.batch->parts[p].arriving.of(arrived->from);
      listed.push_back({.bitmap = marked.bitmap, .n = places.rows, .from = positions, .taken = marked.listed});
      listed.push_back(
          {.bitmap = marked.bitmap, .n = places.rows, .from = positions, .taken = marked.others, .marked = false});
    }
  }
  kernels::list_marked(stream, listed, found.counts);
  reads.add<std::uint32_t>(found.counts.view(), found.count);
}

void MoveExchange::write(PendingBatch& pending, MarkedLists const& found) {
  GPUPS_ASSERT(pending.placed);  // the rows are replicas, with numbers
  GPUPS_ASSERT(found.count.size() == found.counts.size() && found.first.size() == pending.arrived.size());
  auto& stream = state_.stream;
  std::deque<Array<std::uint32_t>> memory;
  std::vector<kernels::GatherElements<std::uint32_t>> gathers;
  auto const add = [&](std::vector<TableShard::ShardIds>& lists, PreparedPart const& part,
                       View<std::uint32_t const> positions, TableShard::MovedColumns const& columns) {
    if (positions.empty()) return;
    auto const& ids = memory.emplace_back(stream.device(), positions.size());
    gathers.push_back({part.ids, positions, ids});
    lists.push_back({&state_.table(part.table), ids, columns});
  };
  std::vector<TableShard::ShardIds> owned, reset, written;
  for (auto const& part : pending.batch->parts) add(owned, part, part.arriving.positions, {});
  for (auto const& arrived : pending.arrived) {
    for (std::size_t p = 0; p < arrived->body.parts().size(); ++p) {
      auto const& part = pending.batch->parts[p];
      auto const& places = arrived->body.parts()[p];
      if (found.count[found.first.at(arrived->from) + 2 * p] != places.sent) {
        state_.throw_peer_error(arrived->from, "passed a different number of rows than its message says");
      }
      auto const& marked = found.of.at(arrived->from)[p];
      add(reset, part, marked.others.slice(0, places.rows - places.sent), {});
      add(written, part, marked.listed.slice(0, places.sent), columns(part.table, places, arrived->bytes.view()));
    }
  }
  if (owned.empty()) return;
  kernels::gather_elements(stream, gathers);
  TableShard::make_owned(stream, owned);
  TableShard::reset_columns(stream, reset);
  TableShard::write_columns(stream, written);
  pending.arrived.clear();  // the work that reads them is queued
}

}  // namespace gpups::cache
