// SPDX-License-Identifier: Apache-2.0
// Gradients of tables that hold some of them back: those that come late, and reading both.
#include <fmt/core.h>

#include "cache/after_calls.hpp"
#include "cache/exchange.hpp"
#include "comm/wire.hpp"
#include "kernels/hash.hpp"
#include "kernels/wire/take_keys.hpp"

namespace gpups::cache {
namespace {

// The rows of a piece that this rank owns.
HeldPiece piece_of_home(HeldPiece const& piece, std::size_t dim, Rank me, int ranks) {
  HeldPiece own{.table = piece.table, .keys = {}, .marks = {}, .sums = {}};
  for (std::size_t i = 0; i < piece.keys.size(); ++i) {
    if (kernels::home_of(piece.keys[i], static_cast<std::uint32_t>(ranks)) != number(me)) continue;
    own.keys.push_back(piece.keys[i]);
    auto const marks = piece.marks.begin() + static_cast<std::ptrdiff_t>(i * kernels::kHeldMarks);
    own.marks.insert(own.marks.end(), marks, marks + kernels::kHeldMarks);
    auto const sums = piece.sums.begin() + static_cast<std::ptrdiff_t>(i * dim);
    own.sums.insert(own.sums.end(), sums, sums + static_cast<std::ptrdiff_t>(dim));
  }
  return own;
}

}  // namespace

// An owner's keys in the order that it knows.
Array<Key> Exchange::wait_keys_on_wire(PreparedPart const& part, Rank owner) {
  Array<Key> keys(stream_.device(), part.owned_by(owner));
  kernels::take_keys(stream_, {.from = part.keys, .numbers = part.places_of(owner, me_), .to = keys});
  stream_.wait();
  return keys;
}

std::vector<LateRows> Exchange::send_late(Rank owner, std::vector<std::function<void()>>& sends) {
  std::vector<LateRows> all;
  auto const step = static_cast<std::uint64_t>(number(round_.clock()));
  for (auto const& [table, late] : held_.wait_take_late(stream_, owner, round_.clock())) {
    std::size_t const list = all.size();
    auto const keys = std::make_shared<std::vector<std::uint8_t>>();
    named_to(owner, table).wait_list(on_host_, View<Key const>(late.keys), *keys);
    all.push_back({table, late.keys.size(), keys->size(), late.bytes->size, late.exact});
    mail_.count_late(&Traffic::gradients, keys->size() + late.bytes->size);
    sends.push_back([=, this, sums = late.bytes] {
      mail_.send_data(on_host_, owner, tag(Section::kLateKeys, step, list), keys->data(), keys->size(),
                      &Traffic::gradients, keys);
      mail_.send_data(stream_, owner, tag(Section::kLateSums, step, list), sums->memory.data(), sums->size,
                      &Traffic::gradients, sums);
    });
  }
  return all;
}

void Exchange::take_held(Rank from, UsePart& part, std::size_t number_of_part, GradientBytes const& sizes,
                         std::function<void()> const& taken) {
  auto const step = static_cast<std::uint64_t>(number(round_.clock()));
  part.held = std::make_shared<Array<std::uint8_t>>();
  part.sent = sizes.sent;
  auto const where = [held = part.held, device = stream_.device(), bytes = sizes.sums] {
    *held = Array<std::uint8_t>(device, bytes);
    return held->data();
  };
  mail_.take_data(stream_, from, tag(Section::kGradients, step, number_of_part), sizes.sums, where, taken);
}

// Rows come late only of tables that hold some back, and in as many bytes as they may have.
void Exchange::check_late(Rank from, std::vector<LateRows> const& late) const {
  for (auto const& rows : late) {
    if (number(rows.table) >= tables_.size() || !tables_[number(rows.table)]->options().gradients.holds_back()) {
      refuse_peer(from, "sent gradients late for a table that holds none back");
    }
    auto const& options = tables_[number(rows.table)]->options();
    if (!RowCoder(options, options.gradients, rows.exact).may_have(rows.bytes, rows.rows)) {
      refuse_peer(from, "sent gradients late whose size is not that of their rows");
    }
  }
}

void Exchange::take_late(Rank from, std::vector<LateRows> const& late, std::function<void()> const& taken) {
  auto const step = static_cast<std::uint64_t>(number(round_.clock()));
  for (std::size_t list = 0; list < late.size(); ++list) {
    auto const& rows = late[list];
    auto const& part = late_.emplace_back(
        LatePart{from, rows, std::make_shared<Array<std::uint8_t>>(), std::make_shared<Array<std::uint8_t>>()});
    auto const keys_there = [keys = part.keys, size = rows.key_bytes] {
      *keys = Array<std::uint8_t>(Device::host(), size);
      return keys->data();
    };
    mail_.take_data(on_host_, from, tag(Section::kLateKeys, step, list), rows.key_bytes, keys_there, taken);
    auto const sums_there = [bytes = part.bytes, device = stream_.device(), size = rows.bytes] {
      *bytes = Array<std::uint8_t>(device, size);
      return bytes->data();
    };
    mail_.take_data(stream_, from, tag(Section::kLateSums, step, list), rows.bytes, sums_there, taken);
  }
}

RowSums Exchange::wait_read_held(Rank from, UsePart& part) {
  auto const& options = tables_[number(part.table)]->options();
  auto rows = GradientSection(options).wait_read(stream_, *part.held, part.sent, part.ids.size());
  if (!rows) refuse_peer(from, "sent gradients of other rows than it counted");
  part.held_sums = std::move(rows->sums);
  return {.ids = part.ids, .sums = part.held_sums, .counts = part.counts.view().flat(), .marked = rows->marked};
}

// In the order of their sums. REQUIRES: of the keys that a round announces, all of this one have been heard, and none
// of the next.
std::vector<Key> Exchange::keys_of(LatePart const& part) try {
  std::string_view bytes(reinterpret_cast<char const*>(part.keys->data()), part.keys->size());
  auto keys = heard_from(part.from, part.rows.table).take_list(bytes, part.rows.rows);
  if (!bytes.empty()) throw comm::WireError("more bytes of keys than it has rows");
  sort_keys(keys);
  return keys;
} catch (comm::WireError const& error) {
  refuse_peer(part.from, fmt::format("sent a list of late rows with {}", error.what()));
}

// Forgotten rows stay forgotten: what comes late for them is dropped. Rows that this step begins are reserved.
RowSums Exchange::wait_read_late(LatePart const& part, LateSums& room) {
  auto& shard = *tables_[number(part.rows.table)];
  auto const n = static_cast<std::size_t>(part.rows.rows);
  auto const all_keys = keys_of(part);
  auto const known = shard.wait_known(stream_, to_device(stream_, all_keys));
  std::vector<std::uint32_t> places(n);  // those that have rows come first
  std::uint32_t taken = 0, other = static_cast<std::uint32_t>(n);
  std::vector<Key> keys;
  for (std::size_t i = 0; i < n; ++i) {
    places[i] = known[i] ? taken++ : --other;
    if (known[i]) keys.push_back(all_keys[i]);
  }
  room.sums = Matrix<std::int64_t>(stream_.device(), n, shard.dim());
  memory::fill_bytes(stream_, room.sums.view().data(), 0, room.sums.view().flat().bytes());
  RowCoder const coder(shard.options(), shard.options().gradients, part.rows.exact);
  if (!coder.wait_add(stream_, *part.bytes, n, to_device(stream_, places), room.sums)) {
    refuse_peer(part.from, "sent gradients late that are not of their rows");
  }
  auto const list = resolved(keys, part.rows.table, room);
  TableShard::KeysOfShard const named{&shard, {}, room.ids};
  if (TableShard::wait_find_repeated(stream_, {&named, 1})) {
    refuse_peer(part.from, "sent gradients late of a key twice");
  }
  return list;
}

// The rows of keys, and the first sums of the room; they are no sightings.
RowSums Exchange::resolved(std::vector<Key> const& keys, TableId table, LateSums& room) {
  room.ids = Array<std::uint32_t>(stream_.device(), keys.size());
  tables_[number(table)]->wait_resolve(stream_, to_device(stream_, keys), room.ids);
  room.counts = Array<std::int64_t>(stream_.device(), keys.size());
  memory::fill_bytes(stream_, room.counts.data(), 0, room.counts.bytes());
  return {.ids = room.ids, .sums = room.sums.view().slice(0, keys.size()), .counts = room.counts};
}

// Forgotten rows leave nothing behind.
void Exchange::wait_drop(TableId table, View<Key const> keys) {
  held_.wait_drop(stream_, table, keys);
  for (auto* const copies : {&sent_copies_, &read_copies_}) {
    for (auto& [of, rows] : *copies) {
      if (of.second == table) rows->wait_drop(stream_, keys);
    }
  }
}

// -- checkpoints --

HeldFile Exchange::wait_save_held() const {
  HeldFile file{.writer = me_,
                .writers = static_cast<std::uint32_t>(ranks_),
                .samples = samples_,
                .pieces = held_.wait_save(stream_),
                .sends_all_changes = sends_all_changes_};
  for (auto const& piece : restored_) file.pieces.push_back(piece);
  for (auto const& [of, copies] : sent_copies_) {
    auto& piece = file.copies.emplace_back(copies->wait_save(stream_));
    piece.reader = of.first;
    piece.table = of.second;
  }
  return file;
}

void Exchange::wait_load_held(HeldFile const& file) {
  samples_ = file.samples;
  for (auto const& piece : file.pieces) {
    auto const& options = tables_[number(piece.table)]->options();
    if (file.writers == static_cast<std::uint32_t>(ranks_) && options.gradients.holds_back() &&
        piece.peer != file.writer) {
      if (file.writer == me_) {
        held_.of(piece.peer, piece.table, stream_.device(), options).wait_load(stream_, piece);
      }
      continue;
    }
    auto own = piece_of_home(piece, options.dim, me_, ranks_);
    own.peer = me_;
    if (!own.keys.empty()) restored_.push_back(std::move(own));
  }
  if (file.writers != static_cast<std::uint32_t>(ranks_)) return;
  if (file.writer == me_) sends_all_changes_ = file.sends_all_changes;
  for (auto const& piece : file.copies) {
    if (!tables_[number(piece.table)]->sends_changes()) continue;
    if (file.writer == me_) copies_of(sent_copies_, piece.reader, piece.table).wait_load(stream_, piece);
    if (piece.reader == me_) copies_of(read_copies_, file.writer, piece.table).wait_load(stream_, piece);
  }
}

RowSums Exchange::wait_read_restored(HeldPiece const& piece, LateSums& room) {
  room.sums = padded_sums(stream_, piece, tables_[number(piece.table)]->dim());
  return resolved(piece.keys, piece.table, room);
}

}  // namespace gpups::cache
