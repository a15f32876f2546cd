// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/exchange/value_exchange.hpp"

#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/selected_rows.hpp"

namespace gpups::cache {

// -- the owner's end --

// Finds the rows of lists that exist. lists: by reader.
void ValueExchange::find_existing(std::map<Rank, std::vector<ListPart> const*> const& lists, ExistingLists& existing,
                                  kernels::HostReads& reads) const {
  auto& stream = state_.stream;
  existing = {};
  std::size_t words = 0, count = 0;
  for (auto const& [reader, parts] : lists) {
    existing.of[reader].first = count;
    count += parts->size();
    for (auto const& part : *parts) {
      if (!state_.table(part.table).sends_deltas()) words += kernels::bitmap_words(part.ids.size()) + part.ids.size();
    }
  }
  existing.words = Array<std::uint32_t>(stream.device(), words);
  existing.counts = Array<std::uint32_t>(stream.device(), count);
  auto take = [&, at = std::size_t{0}](std::size_t size) mutable {
    at += size;
    return existing.words.view().slice(at - size, size);
  };
  std::vector<kernels::MarkExisting> marks;
  std::vector<kernels::ListMarked> marked;
  for (auto const& [reader, parts] : lists) {
    auto& rows = existing.of[reader];
    for (auto const& part : *parts) {
      auto const& shard = state_.table(part.table);
      rows.bitmaps.push_back(take(shard.sends_deltas() ? 0 : kernels::bitmap_words(part.ids.size())));
    }
    for (std::size_t p = 0; p < parts->size(); ++p) {
      auto const& part = (*parts)[p];
      auto const& shard = state_.table(part.table);
      bool const is_plain = !shard.sends_deltas();
      rows.ids.push_back(take(is_plain ? part.ids.size() : 0));
      if (is_plain) marks.push_back(shard.mark_existing(part.ids, rows.bitmaps[p]));
      marked.push_back({.bitmap = rows.bitmaps[p], .n = rows.ids[p].size(), .from = part.ids, .taken = rows.ids[p]});
    }
  }
  if (marks.empty()) return;
  kernels::mark_existing(stream, marks);
  kernels::list_marked(stream, marked, existing.counts);
  reads.add<std::uint32_t>(existing.counts.view(), existing.count);
}

void ValueExchange::find_existing(Clock clock, ExistingLists& existing, kernels::HostReads& reads) const {
  GPUPS_ASSERT(clock == state_.round.applied() + 1);
  std::map<Rank, std::vector<ListPart> const*> lists;
  for (auto const& [id, batch] : state_.reader_batches) {
    if (id.second == clock && !batch.is_late && has_rows(batch, kReadRoles)) lists[id.first] = &batch.reads;
  }
  find_existing(lists, existing, reads);
}

// Packs the values of all parts, except for those that `gathers` copy.
ValueExchange::PackedValues ValueExchange::wait_pack_parts(ReaderBatchId const& to, std::vector<ListPart> const& parts,
                                                           ExistingLists const& existing,
                                                           std::vector<kernels::GatherNumbers>& gathers) {
  auto& stream = state_.stream;
  auto const& rows = existing.of.at(to.first);
  // The lists are those of find_existing().
  GPUPS_ASSERT(rows.bitmaps.size() == parts.size() && rows.ids.size() == parts.size());
  std::vector<ValueBody::PartRows> all, fewer;
  std::map<std::size_t, RowMirror::Changes> changes;
  PackedValues packed{.sent = {}, .parts = parts.size(), .plain = 0, .bytes = {}};
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto const& part = parts[p];
    auto& shard = state_.table(part.table);
    std::size_t const n = part.ids.size();
    std::size_t sent = n;
    GPUPS_ASSERT(shard.sends_deltas() ? part.keys.size() == n : rows.ids[p].size() == n);
    if (shard.sends_deltas() && n > 0) {
      Matrix<float> const values(stream.device(), n, shard.dim());
      shard.gather(stream, part.ids, values);
      changes[p] = mirror_of(sent_mirrors_, to.first, part.table)
                       .wait_send(stream, to.second, part.keys, values, residuals_.resends_all_values());
      sent = changes[p].sent;
    }
    all.push_back({&shard.options(), n, sent});
    fewer.push_back({&shard.options(), n, shard.sends_deltas() ? sent : existing.count[rows.first + p]});
    packed.plain += n * shard.dim() * sizeof(float);
  }
  ValueBody const with_all(all), with_fewer(fewer);
  bool const send_fewer = with_fewer.bytes() < with_all.bytes();
  auto const& body = send_fewer ? with_fewer : with_all;
  auto const bytes = packed.bytes = std::make_shared<Array<std::uint8_t>>(stream.device(), body.bytes());
  bool all_rows = true;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::size_t const sent = (send_fewer ? fewer : all)[p].sent;
    packed.sent.push_back(sent);
    all_rows = all_rows && sent == parts[p].ids.size();
    auto const section = bytes->view().slice(body.section_first(p), body.section_size(p));
    auto& shard = state_.table(parts[p].table);
    if (shard.sends_deltas()) {
      if (section.size() > 0) copy<std::uint8_t>(stream, section, changes[p].bytes->view());
    } else if (sent > 0) {
      auto const ids = send_fewer ? View<std::uint32_t const>(rows.ids[p]).slice(0, sent) : parts[p].ids;
      gathers.push_back(shard.gather_numbers(ids, shard.numbers_at(section, sent)));
    }
  }
  if (body.has_bitmaps()) {
    View<std::uint32_t> const to_words(reinterpret_cast<std::uint32_t*>(bytes->data()), body.bitmap_words(),
                                       stream.device());
    copy<std::uint32_t>(stream, to_words, {rows.bitmaps[0].data(), body.bitmap_words(), stream.device()});
  }
  if (all_rows) packed.sent.clear();
  return packed;
}

std::map<Rank, ValueExchange::PackedValues> ValueExchange::wait_pack(Clock clock, ExistingLists const& existing) {
  std::map<Rank, PackedValues> packed;
  std::vector<kernels::GatherNumbers> gathers;
  for (auto const& [reader, rows] : existing.of) {
    ReaderBatchId const to{reader, clock};
    packed[reader] = wait_pack_parts(to, state_.reader_batches.at(to).reads, existing, gathers);
  }
  kernels::gather_numbers(state_.stream, gathers);
  return packed;
}

void ValueExchange::send(Rank reader, Clock clock, PackedValues const& packed) {
  auto const step = static_cast<std::uint64_t>(number(clock));
  send_packed(reader, packed, tag(Section::kValues, step, 0), &Traffic::refreshes);
}

void ValueExchange::send_packed(Rank to, PackedValues const& packed, std::uint64_t tag, TrafficKind kind) {
  auto const& bytes = packed.bytes;
  state_.messenger.count_compression(kind, packed.plain, bytes->size());
  state_.messenger.send_data(state_.stream, to, tag, bytes->data(), bytes->size(), kind, bytes);
}

void ValueExchange::wait_send_late(ReaderBatchId const& to, std::vector<ListPart> const& parts, LateFetchReply reply) {
  ExistingLists existing;
  kernels::HostReads reads(state_.stream);
  find_existing({{to.first, &parts}}, existing, reads);
  reads.wait();
  std::vector<kernels::GatherNumbers> gathers;
  auto const packed = wait_pack_parts(to, parts, existing, gathers);
  kernels::gather_numbers(state_.stream, gathers);
  reply.sent = packed.sent;
  state_.messenger.send(to.first, reply);
  send_packed(to.first, packed, tag(Section::kLateFetchValues, reply.id, 0), &Traffic::late_fetches);
}

// -- the reader's end --

void ValueExchange::receive(Rank from, PendingBatch& pending, std::uint64_t tag, std::optional<Rank> home,
                            std::vector<std::uint64_t> const& sent, std::function<void()> then) {
  GPUPS_ASSERT(pending.routed && !pending.placed);  // the list of `from` is known, and nothing is decoded yet
  auto const& parts = pending.batch->parts;
  if (!sent.empty() && sent.size() != parts.size()) {
    state_.throw_peer_error(from, "sent values for other rows than were announced");
  }
  std::vector<ValueBody::PartRows> rows;
  std::vector<ReadRows> listed;
  std::vector<std::size_t> sent_rows;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto const& of_part = listed.emplace_back(read_rows(pending, p, from, home));
    if (!sent.empty() && sent[p] > of_part.size) {
      state_.throw_peer_error(from, "sent values for other rows than were announced");
    }
    sent_rows.push_back(sent.empty() ? of_part.size : sent[p]);
    rows.push_back({&state_.table(parts[p].table).options(), of_part.size, sent_rows.back()});
  }
  auto const values = std::make_shared<ReceivedValues>(
      ReceivedValues{.from = from, .body = ValueBody(rows), .rows = std::move(listed), .sent = std::move(sent_rows)});
  pending.values.push_back(values);  // mirrors change in the order in which an owner has sent the values
  auto const allocate = [values, device = state_.stream.device()] {
    values->bytes = Array<std::uint8_t>(device, values->body.bytes());
    return values->bytes.data();
  };
  state_.messenger.receive_data(state_.stream, from, tag, values->body.bytes(), allocate, std::move(then));
}

// -- mirrors --

RowMirror& ValueExchange::mirror_of(Mirrors& all, Rank peer, TableId table) {
  auto& mirror = all[{peer, table}];
  if (mirror == nullptr) mirror = std::make_unique<RowMirror>(state_.stream.device(), state_.table(table));
  return *mirror;
}

void ValueExchange::wait_drop(TableId table, View<Key const> keys) {
  for (auto* const mirrors : {&sent_mirrors_, &received_mirrors_}) {
    for (auto& [of, rows] : *mirrors) {
      if (of.second == table) rows->wait_drop(state_.stream, keys);
    }
  }
}

void ValueExchange::wait_save(ResidualFile& file) const {
  for (auto const& [of, mirror] : sent_mirrors_) {
    auto& chunk = file.mirrors.emplace_back(mirror->wait_save(state_.stream));
    chunk.reader = of.first;
    chunk.table = of.second;
  }
}

void ValueExchange::wait_load(ResidualFile const& file) {
  for (auto const& chunk : file.mirrors) {
    if (!state_.table(chunk.table).sends_deltas()) continue;
    if (file.writer == state_.me) mirror_of(sent_mirrors_, chunk.reader, chunk.table).wait_load(state_.stream, chunk);
    if (chunk.reader == state_.me) {
      mirror_of(received_mirrors_, file.writer, chunk.table).wait_load(state_.stream, chunk);
    }
  }
}

}  // namespace gpups::cache
