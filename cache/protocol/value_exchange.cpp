// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/value_exchange.hpp"

#include "cache/protocol/countdown_callback.hpp"
#include "kernels/number_matrix.hpp"

namespace gpups::cache {

void ValueExchange::wait_send(ReaderBatchId const& to, Message message, Section section, TrafficKind kind) {
  auto const& [reader, clock] = to;
  auto& list = state_.reader_batches.at(to);
  struct Bytes {
    std::uint64_t tag;
    void const* data;
    std::size_t size, plain;
    std::shared_ptr<void const> keep;
  };
  std::vector<Bytes> sections;
  for (std::size_t p = 0; p < list.parts.size(); ++p) {
    auto& part = list.parts[p];
    auto& shard = state_.table(part.table);
    std::size_t const plain = part.ids.size() * shard.dim() * sizeof(float);
    std::uint64_t const to_there = tag(section, static_cast<std::uint64_t>(number(clock)), p);
    if (shard.sends_deltas() && !part.ids.empty()) {
      auto const changes = wait_encode_changes(reader, clock, part);
      message.sent.resize(list.parts.size());
      message.sent[p] = changes.sent;
      sections.push_back({to_there, changes.bytes->data(), changes.bytes->view().bytes(), plain, changes.bytes});
    } else {
      auto const values =
          std::make_shared<kernels::NumberMatrix>(shard.numbers(state_.stream.device(), part.ids.size()));
      shard.gather_numbers(state_.stream, part.ids, values->view());
      sections.push_back({to_there, values->view().data, values->view().bytes(), plain, values});
    }
  }
  state_.messenger.send(reader, message);
  for (auto const& s : sections) {
    state_.messenger.count_compression(kind, s.plain, s.size);
    state_.messenger.send_data(state_.stream, reader, s.tag, s.data, s.size, kind, s.keep);
  }
}

void ValueExchange::receive(Rank from, Clock clock, Section section, std::vector<std::uint64_t> const& sent,
                            std::function<void()> then) {
  auto const& batch = state_.batches.at(clock).batch;
  std::size_t sections = 0;
  for (auto const& part : batch->parts) sections += part.owned_by(from) > 0 ? 1 : 0;
  auto const changes = std::make_shared<std::vector<Array<std::uint8_t>>>(batch->parts.size());
  auto const read = [this, from, clock, sections, sent, changes, then = std::move(then)] {
    auto& here = state_.batches.at(clock);
    for (std::size_t p = 0; p < changes->size(); ++p) {
      if ((*changes)[p].size() > 0) wait_decode_changes(from, clock, here.batch->parts[p], (*changes)[p], sent[p]);
    }
    here.missing -= sections;
    then();
  };
  auto const taken = countdown_callback(sections, read);
  for (std::size_t p = 0; p < batch->parts.size(); ++p) {
    auto const& part = batch->parts[p];
    std::size_t const rows = part.owned_by(from);
    if (rows == 0) continue;
    auto const& table = state_.table(part.table);
    std::uint64_t const from_there = tag(section, static_cast<std::uint64_t>(number(clock)), p);
    if (table.sends_deltas()) {
      if (sent.size() != batch->parts.size() || sent[p] > rows)
        state_.throw_peer_error(from, "sent values for other rows than were announced");
      std::size_t const bytes = RowMirror::bytes(table.options(), sent[p], rows);
      auto const allocate = [changes, p, device = state_.stream.device(), bytes] {
        (*changes)[p] = Array<std::uint8_t>(device, bytes);
        return (*changes)[p].data();
      };
      state_.messenger.receive_data(state_.stream, from, from_there, bytes, allocate, taken);
    } else {
      state_.messenger.receive_data(
          state_.stream, from, from_there, table.bytes_of_numbers(rows),
          [this, from, batch, p] { return values_from(from, batch->parts[p]).data; }, taken);
    }
  }
}

// Returns the place of an owner's rows in the batch, which is allocated at the first call.
kernels::NumberView ValueExchange::values_from(Rank owner, PreparedPart& part) {
  if (part.values.view().rows == 0) {
    part.values = state_.table(part.table).numbers(state_.stream.device(), part.rows - part.owned_by(state_.me));
  }
  return part.values_of(owner, state_.me);
}

// -- mirrors --

RowMirror& ValueExchange::mirror_of(Mirrors& all, Rank peer, TableId table) {
  auto& mirror = all[{peer, table}];
  if (mirror == nullptr) mirror = std::make_unique<RowMirror>(state_.stream.device(), state_.table(table));
  return *mirror;
}

RowMirror::Changes ValueExchange::wait_encode_changes(Rank reader, Clock clock, ReaderPart& part) {
  auto& shard = state_.table(part.table);
  Matrix<float> const values(state_.stream.device(), part.ids.size(), shard.dim());
  shard.gather(state_.stream, part.ids, values);
  return mirror_of(sent_mirrors_, reader, part.table)
      .wait_send(state_.stream, clock, *part.key_list, values, residuals_.resends_all_values());
}

void ValueExchange::wait_decode_changes(Rank owner, Clock clock, PreparedPart& part, View<std::uint8_t const> section,
                                        std::size_t sent) {
  auto const values = values_from(owner, part);
  MatrixView<float> const out(values.flat<float>().data(), values.rows, values.columns, values.stride(), values.device);
  if (!mirror_of(received_mirrors_, owner, part.table)
           .wait_read(state_.stream, clock, wait_keys_on_wire(state_, part, owner), section, sent, out)) {
    state_.throw_peer_error(owner, "sent values of a different number of rows than its message says");
  }
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
