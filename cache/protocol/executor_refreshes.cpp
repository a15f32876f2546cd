// SPDX-License-Identifier: Apache-2.0
// RoundExecutor: sends values of this rank's rows to readers, and receives those of other ranks' rows. Tables with
// refresh compression send changes against mirrors, other tables send whole values.
#include "cache/protocol/countdown_callback.hpp"
#include "cache/protocol/round_executor.hpp"
#include "kernels/number_matrix.hpp"

namespace gpups::cache {

void RoundExecutor::send_values(Rank to, Message message, Section section, TrafficKind kind) {
  Clock const clock = section == Section::kValues ? message.clock + 1 : message.clock;
  auto& use = reader_batches_.at({to, clock});
  struct Bytes {
    std::uint64_t tag;
    void const* data;
    std::size_t size, plain;
    std::shared_ptr<void const> keep;
  };
  std::vector<Bytes> sections;
  for (std::size_t p = 0; p < use.parts.size(); ++p) {
    auto& part = use.parts[p];
    auto& shard = *tables_[number(part.table)];
    std::size_t const plain = part.ids.size() * shard.dim() * sizeof(float);
    std::uint64_t const to_there = tag(section, static_cast<std::uint64_t>(number(clock)), p);
    if (shard.sends_deltas() && !part.ids.empty()) {
      auto const changes = wait_encode_deltas(to, clock, part);
      message.sent.resize(use.parts.size());
      message.sent[p] = changes.sent;
      sections.push_back({to_there, changes.bytes->data(), changes.bytes->view().bytes(), plain, changes.bytes});
    } else {
      auto const values = std::make_shared<kernels::NumberMatrix>(shard.numbers(stream_.device(), part.ids.size()));
      shard.gather_numbers(stream_, part.ids, values->view());
      sections.push_back({to_there, values->view().data, values->view().bytes(), plain, values});
    }
  }
  messenger_.send(to, message);
  for (auto const& s : sections) {
    messenger_.count_compression(kind, s.plain, s.size);
    messenger_.send_data(stream_, to, s.tag, s.data, s.size, kind, s.keep);
  }
}

void RoundExecutor::receive_refreshes(Rank from, Clock clock, Section section, std::vector<std::uint64_t> const& sent,
                                      std::function<void()> then) {
  auto& announced = batches_.at(clock);
  auto const& batch = announced.batch;
  std::size_t sections = 0;
  for (auto const& part : batch->parts) sections += part.owned_by(from) > 0 ? 1 : 0;
  auto const changes = std::make_shared<std::vector<Array<std::uint8_t>>>(batch->parts.size());
  auto const read = [this, from, clock, sections, sent, changes, then = std::move(then)] {
    auto& here = batches_.at(clock);
    for (std::size_t p = 0; p < changes->size(); ++p) {
      if ((*changes)[p].size() > 0) wait_decode_deltas(from, clock, here.batch->parts[p], (*changes)[p], sent[p]);
    }
    here.missing -= sections;
    then();
  };
  auto const taken = countdown_callback(sections, read);
  for (std::size_t p = 0; p < batch->parts.size(); ++p) {
    auto const& part = batch->parts[p];
    std::size_t const rows = part.owned_by(from);
    if (rows == 0) continue;
    auto const& table = *tables_[number(part.table)];
    std::uint64_t const from_there = tag(section, static_cast<std::uint64_t>(number(clock)), p);
    if (table.sends_deltas()) {
      if (sent.size() != batch->parts.size() || sent[p] > rows)
        throw_peer_error(from, "sent values for other rows than were announced");
      std::size_t const bytes = RowMirror::bytes(table.options(), sent[p], rows);
      auto const allocate = [changes, p, device = stream_.device(), bytes] {
        (*changes)[p] = Array<std::uint8_t>(device, bytes);
        return (*changes)[p].data();
      };
      messenger_.receive_data(stream_, from, from_there, bytes, allocate, taken);
    } else {
      messenger_.receive_data(
          stream_, from, from_there, table.bytes_of_numbers(rows),
          [this, from, batch, p] { return values_from(from, batch->parts[p]).data; }, taken);
    }
  }
}

// Returns the place of an owner's rows in the batch, which is allocated at the first call.
kernels::NumberView RoundExecutor::values_from(Rank owner, PreparedPart& part) {
  if (part.values.view().rows == 0) {
    part.values = tables_[number(part.table)]->numbers(stream_.device(), part.rows - part.owned_by(me_));
  }
  return part.values_of(owner, me_);
}

RowMirror& RoundExecutor::mirror_of(Mirrors& all, Rank peer, TableId table) {
  auto& copies = all[{peer, table}];
  if (copies == nullptr) copies = std::make_unique<RowMirror>(stream_.device(), *tables_[number(table)]);
  return *copies;
}

RowMirror::Changes RoundExecutor::wait_encode_deltas(Rank reader, Clock clock, ReaderPart& part) {
  auto& shard = *tables_[number(part.table)];
  Matrix<float> const values(stream_.device(), part.ids.size(), shard.dim());
  shard.gather(stream_, part.ids, values);
  return mirror_of(sent_mirrors_, reader, part.table)
      .wait_send(stream_, clock, *part.key_list, values, resends_all_values_);
}

void RoundExecutor::wait_decode_deltas(Rank owner, Clock clock, PreparedPart& part, View<std::uint8_t const> section,
                                       std::size_t sent) {
  auto const values = values_from(owner, part);
  MatrixView<float> const out(values.flat<float>().data(), values.rows, values.columns, values.stride(), values.device);
  if (!mirror_of(received_mirrors_, owner, part.table)
           .wait_read(stream_, clock, wait_keys_on_wire(part, owner), section, sent, out)) {
    throw_peer_error(owner, "sent values of a different number of rows than its message says");
  }
}

}  // namespace gpups::cache
