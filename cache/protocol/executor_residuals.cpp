// SPDX-License-Identifier: Apache-2.0
// RoundExecutor: gradients of tables with gradient compression, flushed residuals, and residuals in checkpoints.
#include <fmt/core.h>

#include "cache/protocol/countdown_callback.hpp"
#include "cache/protocol/round_executor.hpp"
#include "comm/wire.hpp"
#include "kernels/hash.hpp"
#include "kernels/wire/gather_keys.hpp"

namespace gpups::cache {
namespace {

// Returns the rows of a chunk that rank `me` owns.
ResidualChunk chunk_of_home(ResidualChunk const& chunk, std::size_t dim, Rank me, int ranks) {
  ResidualChunk own{.table = chunk.table, .keys = {}, .marks = {}, .sums = {}};
  for (std::size_t i = 0; i < chunk.keys.size(); ++i) {
    if (kernels::home_of(chunk.keys[i], static_cast<std::uint32_t>(ranks)) != number(me)) continue;
    own.keys.push_back(chunk.keys[i]);
    auto const marks = chunk.marks.begin() + static_cast<std::ptrdiff_t>(i * kernels::kResidualMarks);
    own.marks.insert(own.marks.end(), marks, marks + kernels::kResidualMarks);
    auto const sums = chunk.sums.begin() + static_cast<std::ptrdiff_t>(i * dim);
    own.sums.insert(own.sums.end(), sums, sums + static_cast<std::ptrdiff_t>(dim));
  }
  return own;
}

}  // namespace

// Returns the keys of a part that `owner` owns, in the order of the intent.
Array<Key> RoundExecutor::wait_keys_on_wire(PreparedPart const& part, Rank owner) {
  Array<Key> keys(stream_.device(), part.owned_by(owner));
  kernels::gather_keys(stream_, {.from = part.keys, .numbers = part.remote_positions_of(owner, me_), .to = keys});
  stream_.wait();
  return keys;
}

std::vector<FlushedList> RoundExecutor::send_flushed(Rank owner, std::vector<std::function<void()>>& sends) {
  std::vector<FlushedList> all;
  auto const step = static_cast<std::uint64_t>(number(round_.clock()));
  for (auto const& [table, flushed] : residuals_.wait_take_flushed(stream_, owner, round_.clock())) {
    std::size_t const list = all.size();
    auto const keys = std::make_shared<std::vector<std::uint8_t>>();
    encoder_for(owner, table).wait_encode_known(on_host_, View<Key const>(flushed.keys), *keys);
    all.push_back({table, flushed.keys.size(), keys->size(), flushed.bytes->size, flushed.exact});
    messenger_.count_flushed(&Traffic::gradients, keys->size() + flushed.bytes->size);
    sends.push_back([=, this, sums = flushed.bytes] {
      messenger_.send_data(on_host_, owner, tag(Section::kFlushedKeys, step, list), keys->data(), keys->size(),
                           &Traffic::gradients, keys);
      messenger_.send_data(stream_, owner, tag(Section::kFlushedSums, step, list), sums->memory.data(), sums->size,
                           &Traffic::gradients, sums);
    });
  }
  return all;
}

void RoundExecutor::receive_compressed(Rank from, ReaderPart& part, std::size_t number_of_part,
                                       GradientBytes const& sizes, std::function<void()> const& taken) {
  auto const step = static_cast<std::uint64_t>(number(round_.clock()));
  part.compressed = std::make_shared<Array<std::uint8_t>>();
  part.sent = sizes.sent;
  auto const allocate = [compressed = part.compressed, device = stream_.device(), bytes = sizes.sums] {
    *compressed = Array<std::uint8_t>(device, bytes);
    return compressed->data();
  };
  messenger_.receive_data(stream_, from, tag(Section::kGradients, step, number_of_part), sizes.sums, allocate, taken);
}

// Throws PeerError for flushed residuals of a table without gradient compression, and for impossible sizes.
void RoundExecutor::check_flushed(Rank from, std::vector<FlushedList> const& flushed) const {
  for (auto const& rows : flushed) {
    if (number(rows.table) >= tables_.size() ||
        !tables_[number(rows.table)]->options().gradient_compression.enabled()) {
      throw_peer_error(from, "sent residuals for a table without gradient compression");
    }
    auto const& options = tables_[number(rows.table)]->options();
    if (!RowCoder(options, options.gradient_compression, rows.exact).is_valid_size(rows.bytes, rows.rows)) {
      throw_peer_error(from, "sent residuals whose size is impossible for their rows");
    }
  }
}

void RoundExecutor::receive_flushed(Rank from, std::vector<FlushedList> const& flushed,
                                    std::function<void()> const& taken) {
  auto const step = static_cast<std::uint64_t>(number(round_.clock()));
  for (std::size_t list = 0; list < flushed.size(); ++list) {
    auto const& rows = flushed[list];
    auto const& part = flushed_.emplace_back(
        ReceivedFlush{from, rows, std::make_shared<Array<std::uint8_t>>(), std::make_shared<Array<std::uint8_t>>()});
    auto const keys_there = [keys = part.keys, size = rows.key_bytes] {
      *keys = Array<std::uint8_t>(Device::host(), size);
      return keys->data();
    };
    messenger_.receive_data(on_host_, from, tag(Section::kFlushedKeys, step, list), rows.key_bytes, keys_there, taken);
    auto const sums_there = [bytes = part.bytes, device = stream_.device(), size = rows.bytes] {
      *bytes = Array<std::uint8_t>(device, size);
      return bytes->data();
    };
    messenger_.receive_data(stream_, from, tag(Section::kFlushedSums, step, list), rows.bytes, sums_there, taken);
  }
}

RowSums RoundExecutor::wait_decode_compressed(Rank from, ReaderPart& part) {
  auto const& options = tables_[number(part.table)]->options();
  auto rows = GradientSection(options).wait_read(stream_, *part.compressed, part.sent, part.ids.size());
  if (!rows) throw_peer_error(from, "sent gradients of a different number of rows than its message says");
  part.decoded_sums = std::move(rows->sums);
  return {.ids = part.ids, .sums = part.decoded_sums, .counts = part.counts.view().flat(), .marked = rows->marked};
}

// Returns the keys of flushed residuals in ascending order, which is the order of their sums. REQUIRES: the intents of
// this round are decoded and none of the next round is, because both change the key dictionary.
std::vector<Key> RoundExecutor::keys_of(ReceivedFlush const& part) try {
  std::string_view bytes(reinterpret_cast<char const*>(part.keys->data()), part.keys->size());
  auto keys = decoder_for(part.from, part.rows.table).decode_known(bytes, part.rows.rows);
  if (!bytes.empty()) throw comm::WireError("more bytes than its keys need");
  sort_keys(keys);
  return keys;
} catch (comm::WireError const& error) {
  throw_peer_error(part.from, fmt::format("sent residuals with {}", error.what()));
}

// Decodes flushed residuals into `room`. Residuals of keys without a row are dropped, because these rows were erased.
RowSums RoundExecutor::wait_decode_flushed(ReceivedFlush const& part, FlushedSums& room) {
  auto& shard = *tables_[number(part.rows.table)];
  auto const n = static_cast<std::size_t>(part.rows.rows);
  auto const all_keys = keys_of(part);
  auto const known = shard.wait_known(stream_, to_device(stream_, all_keys));
  std::vector<std::uint32_t> places(n);  // by key: its position in the sums; keys that have rows come first
  std::uint32_t taken = 0, other = static_cast<std::uint32_t>(n);
  std::vector<Key> keys;
  for (std::size_t i = 0; i < n; ++i) {
    places[i] = known[i] ? taken++ : --other;
    if (known[i]) keys.push_back(all_keys[i]);
  }
  room.sums = Matrix<std::int64_t>(stream_.device(), n, shard.dim());
  memory::fill_bytes(stream_, room.sums.view().data(), 0, room.sums.view().flat().bytes());
  RowCoder const coder(shard.options(), shard.options().gradient_compression, part.rows.exact);
  if (!coder.wait_add(stream_, *part.bytes, n, to_device(stream_, places), room.sums)) {
    throw_peer_error(part.from, "sent residuals that do not match the number of their rows");
  }
  auto const list = resolved(keys, part.rows.table, room);
  TableShard::ShardKeys const named{&shard, {}, room.ids};
  if (TableShard::wait_find_repeated(stream_, {&named, 1})) {
    throw_peer_error(part.from, "sent two residuals of one key");
  }
  return list;
}

// Finds or reserves the rows of `keys`; their sums are the first rows of room.sums. They count as no occurrences.
RowSums RoundExecutor::resolved(std::vector<Key> const& keys, TableId table, FlushedSums& room) {
  room.ids = Array<std::uint32_t>(stream_.device(), keys.size());
  tables_[number(table)]->wait_resolve(stream_, to_device(stream_, keys), room.ids);
  room.counts = Array<std::int64_t>(stream_.device(), keys.size());
  memory::fill_bytes(stream_, room.counts.data(), 0, room.counts.bytes());
  return {.ids = room.ids, .sums = room.sums.view().slice(0, keys.size()), .counts = room.counts};
}

void RoundExecutor::wait_drop(TableId table, View<Key const> keys) {
  residuals_.wait_drop(stream_, table, keys);
  for (auto* const copies : {&sent_mirrors_, &received_mirrors_}) {
    for (auto& [of, rows] : *copies) {
      if (of.second == table) rows->wait_drop(stream_, keys);
    }
  }
}

// -- checkpoints --

ResidualFile RoundExecutor::wait_save_residuals() const {
  ResidualFile file{.writer = me_,
                    .writers = static_cast<std::uint32_t>(ranks_),
                    .samples = samples_,
                    .chunks = residuals_.wait_save(stream_),
                    .resends_all_values = resends_all_values_};
  for (auto const& chunk : restored_) file.chunks.push_back(chunk);
  for (auto const& [of, copies] : sent_mirrors_) {
    auto& chunk = file.mirrors.emplace_back(copies->wait_save(stream_));
    chunk.reader = of.first;
    chunk.table = of.second;
  }
  return file;
}

void RoundExecutor::wait_load_residuals(ResidualFile const& file) {
  samples_ = file.samples;
  for (auto const& chunk : file.chunks) {
    auto const& options = tables_[number(chunk.table)]->options();
    if (file.writers == static_cast<std::uint32_t>(ranks_) && options.gradient_compression.enabled() &&
        chunk.peer != file.writer) {
      if (file.writer == me_) {
        residuals_.of(chunk.peer, chunk.table, stream_.device(), options).wait_load(stream_, chunk);
      }
      continue;
    }
    auto own = chunk_of_home(chunk, options.dim, me_, ranks_);
    own.peer = me_;
    if (!own.keys.empty()) restored_.push_back(std::move(own));
  }
  if (file.writers != static_cast<std::uint32_t>(ranks_)) return;
  if (file.writer == me_) resends_all_values_ = file.resends_all_values;
  for (auto const& chunk : file.mirrors) {
    if (!tables_[number(chunk.table)]->sends_deltas()) continue;
    if (file.writer == me_) mirror_of(sent_mirrors_, chunk.reader, chunk.table).wait_load(stream_, chunk);
    if (chunk.reader == me_) mirror_of(received_mirrors_, file.writer, chunk.table).wait_load(stream_, chunk);
  }
}

RowSums RoundExecutor::wait_read_restored(ResidualChunk const& chunk, FlushedSums& room) {
  room.sums = padded_sums(stream_, chunk, tables_[number(chunk.table)]->dim());
  return resolved(chunk.keys, chunk.table, room);
}

}  // namespace gpups::cache
