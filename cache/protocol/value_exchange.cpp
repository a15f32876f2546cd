// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/value_exchange.hpp"

#include <utility>

#include "cache/protocol/countdown_callback.hpp"
#include "kernels/gather_elements.hpp"
#include "kernels/number_matrix.hpp"
#include "kernels/wire/list_rows.hpp"
#include "kernels/wire/select_above.hpp"

namespace gpups::cache {

// -- the owner's end --

std::size_t ValueExchange::bytes_of(TableOptions const& table, std::size_t sent, std::size_t rows) {
  if (table.refresh_compression.enabled()) return RowMirror::bytes(table, sent, rows);
  std::size_t const values = kernels::NumberView{nullptr, sent, table.dim, table.value_type}.bytes();
  return values + (sent < rows ? kernels::bitmap_words(rows) * sizeof(std::uint32_t) : 0);
}

// Encodes the section of a part, and sets `sent` to the number of rows in it.
Array<std::uint8_t> ValueExchange::wait_encode(ReaderBatchId const& to, ListPart const& part, std::uint64_t& sent) {
  auto& stream = state_.stream;
  auto& shard = state_.table(part.table);
  std::size_t const rows = part.ids.size();
  if (shard.sends_deltas()) {
    Matrix<float> const values(stream.device(), rows, shard.dim());
    shard.gather(stream, part.ids, values);
    auto changes = mirror_of(sent_mirrors_, to.first, part.table)
                       .wait_send(stream, to.second, *part.key_list, values, residuals_.resends_all_values());
    sent = changes.sent;
    return std::move(*changes.bytes);
  }
  auto const existing = shard.wait_list_existing(stream, part.ids);
  bool const fewer = bytes_of(shard.options(), existing.count, rows) < bytes_of(shard.options(), rows, rows);
  sent = fewer ? existing.count : rows;
  Array<std::uint8_t> bytes(stream.device(), bytes_of(shard.options(), sent, rows));
  auto const ids = fewer ? existing.ids.view().slice(0, sent) : part.ids.view();
  auto const values = shard.numbers_at(bytes, sent);
  shard.gather_numbers(stream, ids, values);
  if (fewer) {
    auto* const bitmap = reinterpret_cast<std::uint32_t*>(bytes.data() + values.bytes());
    kernels::indices_to_bitmap(stream, {.indices = existing.positions.view().slice(0, sent),
                                        .bitmap = {bitmap, kernels::bitmap_words(rows), stream.device()}});
  }
  return bytes;
}

// Sends one section for each part, with the tags tag, tag + part 1 ...
template <class Part>
void ValueExchange::wait_send_parts(ReaderBatchId const& to, std::vector<Part> const& parts, Message message,
                                    std::uint64_t tag, TrafficKind kind) {
  std::vector<std::shared_ptr<Array<std::uint8_t>>> sections;
  message.sent.resize(parts.size());
  bool all_rows = true;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    sections.push_back(std::make_shared<Array<std::uint8_t>>());
    if (!parts[p].ids.empty()) *sections[p] = wait_encode(to, parts[p], message.sent[p]);
    all_rows = all_rows && message.sent[p] == parts[p].ids.size();
  }
  if (all_rows) message.sent.clear();
  state_.messenger.send(to.first, message);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto const& bytes = sections[p];
    state_.messenger.count_compression(kind, parts[p].ids.size() * state_.table(parts[p].table).dim() * sizeof(float),
                                       bytes->size());
    state_.messenger.send_data(state_.stream, to.first, with_part(tag, p), bytes->data(), bytes->size(), kind, bytes);
  }
}

void ValueExchange::wait_send(ReaderBatchId const& to, Message message) {
  auto& list = state_.reader_batches.at(to);
  wait_join(state_.stream, list);
  message.parts = list.parts.size();
  wait_send_parts(to, list.parts, message, tag(Section::kValues, static_cast<std::uint64_t>(number(to.second)), 0),
                  &Traffic::refreshes);
}

void ValueExchange::wait_send_late(ReaderBatchId const& to, Rank home, Message message) {
  wait_send_parts(to, state_.reader_batches.at(to).homes.at(home).parts, message,
                  tag(Section::kLateFetchValues, message.id, 0), &Traffic::late_fetches);
}

// -- the reader's end --

// Gives replicas to the rows of the batch that other ranks own.
void ValueExchange::wait_place_replicas(PreparedBatch::Impl& batch) {
  auto& stream = state_.stream;
  for (auto& part : batch.parts) {
    std::size_t const rows = part.remote_positions.size();
    if (rows == 0) continue;
    Array<Key> const keys(stream.device(), rows);
    kernels::gather_elements(stream, kernels::GatherElements<Key>{part.keys, part.remote_positions, keys});
    part.replicas = Array<std::uint32_t>(stream.device(), rows);
    state_.table(part.table).wait_place_replicas(stream, keys, part.replicas, batch.clock);
    kernels::scatter_elements(stream, {.from = part.replicas, .positions = part.remote_positions, .to = part.ids});
  }
}

void ValueExchange::wait_free_replicas(PreparedBatch::Impl& batch) {
  for (auto& part : batch.parts) {
    if (!part.replicas.empty()) {
      state_.table(part.table).wait_free_replicas(state_.stream, part.replicas, batch.clock);
    }
    part.end_step();
  }
}

void ValueExchange::receive(Rank from, PendingBatch& pending, std::uint64_t tag, std::optional<Rank> home,
                            std::vector<std::uint64_t> const& sent, std::function<void()> then) {
  auto const& batch = pending.batch;
  auto const& parts = batch->parts;
  auto const sections = std::make_shared<std::vector<ReceivedSection>>();
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto const rows = parts[p].list_slice(from, home);
    if (!sent.empty() && (sent.size() != parts.size() || sent[p] > rows.size)) {
      state_.throw_peer_error(from, "sent values for other rows than were announced");
    }
    if (rows.size > 0) sections->push_back({.part = p, .sent = sent.empty() ? rows.size : sent[p], .rows = rows});
  }
  if (!std::exchange(pending.placed, true)) wait_place_replicas(*batch);
  auto const taken = countdown_callback(sections->size(), [this, from, batch, sections, then = std::move(then)] {
    for (auto const& each : *sections) wait_decode(from, *batch, each);
    then();
  });
  for (auto& each : *sections) {
    std::size_t const bytes = bytes_of(state_.table(parts[each.part].table).options(), each.sent, each.rows.size);
    auto const allocate = [sections, &each, device = state_.stream.device(), bytes] {
      each.bytes = Array<std::uint8_t>(device, bytes);
      return each.bytes.data();
    };
    state_.messenger.receive_data(state_.stream, from, with_part(tag, each.part), bytes, allocate, taken);
  }
}

void ValueExchange::wait_decode(Rank from, PreparedBatch::Impl const& batch, ReceivedSection const& section) {
  auto& stream = state_.stream;
  auto& part = batch.parts[section.part];
  auto& shard = state_.table(part.table);
  if (shard.sends_deltas()) return wait_decode_changes(from, batch.clock, part, section);
  auto const replicas = part.replicas.view().slice(section.rows.first, section.rows.size);
  auto const values = shard.numbers_at(section.bytes, section.sent);
  if (section.sent == replicas.size()) return shard.set_replicas(stream, replicas, values);

  std::size_t const rows = replicas.size();
  View<std::uint32_t const> const bitmap(reinterpret_cast<std::uint32_t const*>(section.bytes.data() + values.bytes()),
                                         kernels::bitmap_words(rows), stream.device());
  Array<std::uint32_t> const sent(stream.device(), rows), others(stream.device(), rows);
  std::size_t const marked =
      kernels::wait_list_marked(stream, {.bitmap = bitmap, .n = rows, .from = replicas, .taken = sent});
  if (marked != section.sent) {
    state_.throw_peer_error(from, "sent values of a different number of rows than its message says");
  }
  kernels::wait_list_marked(stream, {.bitmap = bitmap, .n = rows, .from = replicas, .taken = others, .marked = false});
  auto const initial = others.view().slice(0, rows - marked);
  shard.set_replicas(stream, sent.view().slice(0, marked), values);
  shard.init_replicas(stream, initial, shard.wait_keys_of(stream, initial));
}

// -- mirrors --

RowMirror& ValueExchange::mirror_of(Mirrors& all, Rank peer, TableId table) {
  auto& mirror = all[{peer, table}];
  if (mirror == nullptr) mirror = std::make_unique<RowMirror>(state_.stream.device(), state_.table(table));
  return *mirror;
}

void ValueExchange::wait_decode_changes(Rank from, Clock clock, PreparedPart const& part,
                                        ReceivedSection const& section) {
  auto& stream = state_.stream;
  auto& shard = state_.table(part.table);
  auto const [first, rows] = section.rows;
  auto const keys = wait_keys_at(stream, part, part.remote_positions.view().slice(first, rows));
  Matrix<float> const values(stream.device(), rows, shard.dim());
  if (!mirror_of(received_mirrors_, from, part.table)
           .wait_read(stream, clock, keys, section.bytes, section.sent, values)) {
    state_.throw_peer_error(from, "sent values of a different number of rows than its message says");
  }
  shard.set_replicas(stream, part.replicas.view().slice(first, rows), values);
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
