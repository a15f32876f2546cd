// SPDX-License-Identifier: Apache-2.0
// ValueExchange: decodes the values that have arrived for a batch.
#include <algorithm>
#include <deque>
#include <utility>

#include "cache/protocol/exchange/value_exchange.hpp"
#include "kernels/base/check.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/rows/selected_rows.hpp"

namespace gpups::cache {

// Memory of a batch while its values are decoded, and what the host reads.
struct ValueExchange::DecodedBatch {
  Array<Key> keys;                               // of the replicas
  std::vector<TableShard::ShardKeys> replicas;   // of each table
  std::vector<kernels::ScatterElements> placed;  // their numbers, to PreparedPart::ids
  // Lists of rows that have received values, and of rows that have initial values, one of each for each section with a
  // bitmap. They contain positions in the section's rows.
  struct SplitSection {
    ReceivedValues const* values;
    std::size_t part;
    View<std::uint32_t> sent, initial;
  };
  Array<std::uint32_t> positions, counts;
  std::vector<SplitSection> split;
  std::vector<std::uint32_t> count;  // read from `counts`: sent and initial rows of each split section
};

// Gathers the keys of the rows that need replicas: those that other ranks own before the step or in it. Those of a
// table are one after another.
void ValueExchange::find_replicas(PendingBatch& pending, DecodedBatch& decoded) {
  if (std::exchange(pending.placed, true)) return;
  auto& stream = state_.stream;
  std::vector<PreparedPart*> parts;
  std::size_t count = 0;
  for (auto& part : pending.batch->parts) {
    parts.push_back(&part);
    count += part.reads.size() + part.arriving.size() + part.placed.size();
  }
  std::stable_sort(parts.begin(), parts.end(), [](auto const* a, auto const* b) { return a->table < b->table; });
  decoded.keys = Array<Key>(stream.device(), count);
  auto const ids = std::make_shared<Array<std::uint32_t>>(stream.device(), count);
  std::vector<kernels::GatherElements<Key>> gathers;
  std::size_t end = 0;
  for (auto* const part : parts) {
    std::size_t const begin = end;
    for (auto const& positions : {part->reads.positions, part->arriving.positions, part->placed.positions}) {
      std::size_t const n = positions.size();
      gathers.push_back({part->keys, positions, decoded.keys.view().slice(end, n)});
      decoded.placed.push_back({.from = ids->view().slice(end, n), .positions = positions, .to = part->ids});
      end += n;
    }
    part->replicas = ids->view().slice(begin, part->reads.size());
    part->replicas_memory = ids;
    if (end == begin) continue;
    auto* const shard = &state_.table(part->table);
    bool const same_table = !decoded.replicas.empty() && decoded.replicas.back().shard == shard;
    std::size_t const first = begin - (same_table ? decoded.replicas.back().keys.size() : 0);
    if (same_table) decoded.replicas.pop_back();
    decoded.replicas.push_back({.shard = shard,
                                .keys = decoded.keys.view().slice(first, end - first),
                                .ids = ids->view().slice(first, end - first),
                                .distinct = !same_table});  // parts may share keys
  }
  kernels::gather_elements(stream, gathers);
}

// Divides the rows of sections that do not have values for all rows.
void ValueExchange::find_sent(PendingBatch const& pending, DecodedBatch& decoded) {
  auto& stream = state_.stream;
  std::size_t words = 0;
  for (auto const& values : pending.values) {
    if (!values->body.has_bitmaps()) continue;
    for (std::size_t p = 0; p < values->rows.size(); ++p) {
      if (state_.table(pending.batch->parts[p].table).sends_deltas() || values->rows[p].size == 0) continue;
      decoded.split.push_back({.values = values.get(), .part = p, .sent = {}, .initial = {}});
      words += 2 * values->rows[p].size;
    }
  }
  if (decoded.split.empty()) return;
  decoded.positions = Array<std::uint32_t>(stream.device(), words);
  decoded.counts = Array<std::uint32_t>(stream.device(), 2 * decoded.split.size());
  std::vector<kernels::ListMarked> lists;
  std::size_t at = 0;
  for (auto& section : decoded.split) {
    std::size_t const rows = section.values->rows[section.part].size;
    section.sent = decoded.positions.view().slice(at, rows);
    section.initial = decoded.positions.view().slice(at + rows, rows);
    at += 2 * rows;
    auto const* const bitmaps = reinterpret_cast<std::uint32_t const*>(section.values->bytes.data());
    View<std::uint32_t const> const bitmap(bitmaps + section.values->body.bitmap_first(section.part),
                                           kernels::bitmap_words(rows), stream.device());
    lists.push_back({.bitmap = bitmap, .n = rows, .from = {}, .taken = section.sent});
    lists.push_back({.bitmap = bitmap, .n = rows, .from = {}, .taken = section.initial, .marked = false});
  }
  kernels::list_marked(stream, lists, decoded.counts);
}

// Writes received and initial values to replicas.
void ValueExchange::write_replicas(PendingBatch const& pending, DecodedBatch const& decoded) {
  auto& stream = state_.stream;
  auto const& parts = pending.batch->parts;
  Array<std::uint32_t> const ids(stream.device(), decoded.positions.size());
  std::vector<kernels::GatherElements<std::uint32_t>> gathers;
  std::vector<kernels::ScatterNumbers> scatters;
  std::vector<kernels::InitRows> inits;
  std::deque<Array<std::uint32_t>> taken;
  auto const rows_of = [&](ReceivedValues const& values, std::size_t p) {
    GPUPS_ASSERT(parts[p].replicas.size() == parts[p].reads.size());  // replicas have numbers before they get values
    return take_rows(stream, parts[p].replicas, values.rows[p], taken);
  };
  auto const scatter = [&](ReceivedValues const& values, std::size_t p, View<std::uint32_t const> to) {
    auto& shard = state_.table(parts[p].table);
    auto const section = values.bytes.view().slice(values.body.section_first(p), values.body.section_size(p));
    if (!to.empty()) scatters.push_back(shard.scatter_numbers(shard.numbers_at(section, values.sent[p]), to));
  };
  for (std::size_t s = 0; s < decoded.split.size(); ++s) {
    auto const& [values, part, sent, initial] = decoded.split[s];
    auto const rows = rows_of(*values, part);
    auto const gather = [&](View<std::uint32_t> positions, std::uint32_t count) {
      auto const first = static_cast<std::size_t>(positions.data() - decoded.positions.data());
      auto const to = ids.view().slice(first, count);
      gathers.push_back({rows, positions.slice(0, count), to});
      return to;
    };
    scatter(*values, part, gather(sent, decoded.count[2 * s]));
    auto const others = gather(initial, decoded.count[2 * s + 1]);
    if (!others.empty()) inits.push_back(state_.table(parts[part].table).init_values(others));
  }
  for (auto const& values : pending.values) {
    if (values->body.has_bitmaps()) continue;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (!state_.table(parts[p].table).sends_deltas()) scatter(*values, p, rows_of(*values, p));
    }
  }
  if (!gathers.empty()) kernels::gather_elements(stream, gathers);
  kernels::scatter_numbers(stream, scatters);
  if (!inits.empty()) kernels::init_rows(stream, inits);
}

void ValueExchange::wait_decode(PendingBatch& pending, kernels::HostReads& reads) {
  auto& stream = state_.stream;
  auto const& parts = pending.batch->parts;
  GPUPS_ASSERT(pending.routed && pending.fetches == 0);
  for ([[maybe_unused]] auto const& values : pending.values) GPUPS_ASSERT(values->bytes.size() == values->body.bytes());
  DecodedBatch decoded;
  find_sent(pending, decoded);
  if (!decoded.split.empty()) reads.add<std::uint32_t>(decoded.counts.view(), decoded.count);
  find_replicas(pending, decoded);
  if (!decoded.replicas.empty()) {
    TableShard::wait_place_replicas(stream, decoded.replicas, pending.batch->clock, reads);
    kernels::scatter_elements(stream, decoded.placed);
  } else {
    reads.wait();
  }
  for (std::size_t s = 0; s < decoded.split.size(); ++s) {
    auto const& [values, part, sent, initial] = decoded.split[s];
    if (decoded.count[2 * s] != values->sent[part]) {
      state_.throw_peer_error(values->from, "sent values of a different number of rows than its message says");
    }
  }
  write_replicas(pending, decoded);
  for (auto const& values : pending.values) {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (state_.table(parts[p].table).sends_deltas() && values->rows[p].size > 0) {
        wait_decode_changes(*pending.batch, *values, p);
      }
    }
  }
  pending.values.clear();
}

void ValueExchange::wait_decode_changes(PreparedBatch::Impl const& batch, ReceivedValues const& values, std::size_t p) {
  auto& stream = state_.stream;
  auto& part = batch.parts[p];
  auto& shard = state_.table(part.table);
  std::size_t const rows = values.rows[p].size;
  std::deque<Array<std::uint32_t>> taken;
  auto const section = values.bytes.view().slice(values.body.section_first(p), values.body.section_size(p));
  auto const keys = keys_at(stream, part, take_rows(stream, part.reads.positions, values.rows[p], taken));
  Matrix<float> const decoded(stream.device(), rows, shard.dim());
  if (!mirror_of(received_mirrors_, values.from, part.table)
           .wait_read(stream, batch.clock, keys, section, values.sent[p], decoded)) {
    state_.throw_peer_error(values.from, "sent values of a different number of rows than its message says");
  }
  shard.set_replicas(stream, take_rows(stream, part.replicas, values.rows[p], taken), decoded);
}

}  // namespace gpups::cache
