// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/exchange/gradient_exchange.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cache/wire/gradient_section.hpp"
#include "kernels/base/check.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/runtime/upload.hpp"

namespace gpups::cache {
namespace {

// Returns true if this rank sends gradients of the batch to a rank.
bool has_updates(PreparedBatch::Impl const& batch, Rank owner) {
  return std::any_of(batch.parts.begin(), batch.parts.end(),
                     [=](auto const& part) { return part.updates().size_of(owner) > 0; });
}

}  // namespace

// Returns the numbers 0 .. n - 1.
View<std::uint32_t const> GradientExchange::ascending(std::size_t n) {
  if (ascending_.size() < n) {
    std::vector<std::uint32_t> numbers(2 * n);
    std::iota(numbers.begin(), numbers.end(), 0);
    ascending_ = Array<std::uint32_t>(state_.stream.device(), numbers.size());
    kernels::upload<std::uint32_t>(state_.stream, ascending_, numbers);
  }
  return View<std::uint32_t const>(ascending_).slice(0, n);
}

void GradientExchange::pack(kernels::HostReads& reads) {
  GPUPS_ASSERT(packed_ == nullptr);  // end_step() has ended the step before
  packed_ = std::make_shared<PackedGradients>();
  if (state_.current == nullptr) return;
  auto& stream = state_.stream;
  auto const& parts = state_.current->parts;
  std::size_t counts_max = 0;
  for (auto const& part : parts) counts_max = std::max(counts_max, rows_of_counts(part.updates().size()));
  auto const rows = ascending(counts_max);
  std::vector<kernels::PackSums> packs;
  std::deque<Matrix<std::int64_t>> counts;
  std::vector<kernels::CountEntries> counted;
  for (Rank const owner : state_.others()) {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      auto const& part = parts[p];
      auto const& shard = state_.table(part.table);
      auto const positions = part.updates().of(owner);
      if (positions.empty()) continue;
      if (!shard.options().gradient_compression.enabled()) {
        packs.push_back({.sums = part.sums, .order = positions});
        packed_->sections.push_back({owner, p, false});
      }
      if (!shard.counts_occurrences()) continue;
      auto& of_list = counts.emplace_back(stream.device(), rows_of_counts(positions.size()), kCountsPerRow);
      counted.push_back({.offsets = part.offsets, .rows = positions, .counts = of_list.view().flat()});
      packs.push_back({.sums = of_list, .order = rows.slice(0, of_list.rows())});
      packed_->sections.push_back({owner, p, true});
    }
  }
  if (packs.empty()) return;
  if (!counted.empty()) kernels::count_entries(stream, counted);
  packed_->bytes = kernels::pack_sums(stream, packs);
  reads.add<std::uint64_t>(packed_->bytes.places.view(), packed_->places);
}

std::vector<GradientBytes> GradientExchange::wait_send(Rank owner, std::vector<std::function<void()>>& sends) {
  auto const& batch = state_.current;
  if (batch == nullptr || !has_updates(*batch, owner)) return {};
  GPUPS_ASSERT(packed_ != nullptr && packed_->places.size() == packed_->bytes.places.size());  // pack() and its reads
  auto& bytes = packed_->bytes;
  if (bytes.first.empty() && !packed_->places.empty()) bytes.set_places(packed_->places);
  GPUPS_ASSERT(bytes.size.size() == packed_->sections.size());
  std::vector<GradientBytes> sizes(batch->parts.size());
  std::size_t first = 0, end = 0, plain = 0;
  for (std::size_t k = 0; k < packed_->sections.size(); ++k) {
    auto const& section = packed_->sections[k];
    if (section.owner != owner) continue;
    if (end == 0) first = bytes.first[k];
    end = bytes.first[k] + bytes.size[k];
    auto const& part = batch->parts[section.part];
    std::size_t const rows = part.updates().size_of(owner);
    (section.is_counts ? sizes[section.part].occurrences : sizes[section.part].sums) = bytes.size[k];
    plain += section.is_counts ? rows * sizeof(std::int64_t) : rows * state_.table(part.table).dim() * sizeof(float);
  }
  if (end > 0) {
    state_.messenger.count_compression(&Traffic::gradients, plain, end - first);
    sends.push_back([=, this, packed = packed_, step = state_.step()] {
      state_.messenger.send_data(state_.stream, owner, tag(Section::kGradientBody, step, 0),
                                 packed->bytes.memory.data() + first, end - first, &Traffic::gradients, packed);
    });
  }
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    auto const& part = batch->parts[p];
    auto const& shard = state_.table(part.table);
    if (part.updates().size_of(owner) == 0 || !shard.options().gradient_compression.enabled()) continue;
    auto const order = part.updates().of(owner);
    auto& stream = state_.stream;
    auto taken = residuals_.of(part.table)
                     .wait_compress(stream, state_.round.clock(), keys_at(stream, part, order), part.sums, order);
    sizes[p].sent_rows = taken.sent;
    sizes[p].sums = taken.bytes->size;
    state_.messenger.count_compression(&Traffic::gradients, order.size() * shard.dim() * sizeof(float),
                                       taken.bytes->size);
    sends.push_back([=, this, step = state_.step()] {
      state_.messenger.send_data(state_.stream, owner, tag(Section::kGradients, step, p), taken.bytes->memory.data(),
                                 taken.bytes->size, &Traffic::gradients, taken.bytes);
    });
  }
  return sizes;
}

void GradientExchange::check(Rank from, std::vector<GradientBytes> const& sizes) {
  auto const found = state_.reader_batches.find({from, state_.round.clock()});
  if (found == state_.reader_batches.end()) {
    if (!sizes.empty()) state_.throw_peer_error(from, "sent gradients for rows that it did not announce");
    return;
  }
  auto& list = found->second;
  if (std::any_of(list.homes.begin(), list.homes.end(), [](auto const& home) { return !home.second.keys_received; })) {
    state_.throw_peer_error(from, "ended a step before it sent the keys of the step");
  }
  join_updates(list);
  if (sizes.empty()) return;
  if (list.updates.size() != sizes.size()) {
    state_.throw_peer_error(from, "sent gradients for rows that it did not announce");
  }
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    auto const& part = list.updates[p];
    auto const& table = state_.table(part.table);
    std::size_t const counted = table.counts_occurrences() ? part.count : 0;
    ReceivedSums const sums{.count = part.count, .dim = table.dim()};
    ReceivedSums const occurrences{.count = rows_of_counts(counted), .dim = kCountsPerRow};
    bool const enabled = table.options().gradient_compression.enabled() && part.count > 0;
    bool const may_be =
        enabled ? GradientSection(table.options()).is_valid_size(sizes[p].sums, sizes[p].sent_rows, part.count)
                : sums.is_valid_size(sizes[p].sums);
    if (!may_be || !occurrences.is_valid_size(sizes[p].occurrences)) {
      state_.throw_peer_error(from, "sent gradients whose size is impossible for the rows of its batch");
    }
  }
}

template <class F>
void GradientExchange::each_section(ReaderBatch& list, std::vector<GradientBytes> const& sizes, F f) {
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    auto& part = list.updates[p];
    if (part.count == 0) continue;
    auto const& table = state_.table(part.table);
    if (!table.options().gradient_compression.enabled()) {
      f(part.sums.emplace(ReceivedSums{.count = part.count, .dim = table.dim()}), sizes[p].sums);
    }
    if (!table.counts_occurrences()) continue;
    f(part.occurrences.emplace(ReceivedSums{.count = rows_of_counts(part.count), .dim = kCountsPerRow}),
      sizes[p].occurrences);
  }
}

std::size_t GradientExchange::transfers(Rank from, std::vector<GradientBytes> const& sizes) const {
  std::size_t transfers = sizes.empty() ? 0 : 1;  // the body
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    auto const& part = state_.reader_batches.at({from, state_.round.clock()}).updates[p];
    if (part.count > 0 && state_.table(part.table).options().gradient_compression.enabled()) ++transfers;
  }
  return transfers;
}

void GradientExchange::receive(Rank from, std::vector<GradientBytes> const& sizes, std::function<void()> const& taken) {
  if (sizes.empty()) return;
  auto& list = state_.reader_batches.at({from, state_.round.clock()});
  GPUPS_ASSERT(list.updates.size() == sizes.size());  // check() has joined the lists, and compared their number
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    auto& part = list.updates[p];
    if (part.count == 0 || !state_.table(part.table).options().gradient_compression.enabled()) continue;
    receive_compressed(from, part, tag(Section::kGradients, state_.step(), p), sizes[p], taken);
  }
  receive_body(from, sizes, taken);
}

void GradientExchange::receive_body(Rank from, std::vector<GradientBytes> const& sizes,
                                    std::function<void()> const& taken) {
  ReaderBatchId const id{from, state_.round.clock()};
  std::size_t next = 0, end = 0;
  each_section(state_.reader_batches.at(id), sizes, [&](ReceivedSums const&, std::size_t bytes) {
    end = next + bytes;
    next = after_section(next, bytes);
  });
  auto const body = std::make_shared<Array<std::uint8_t>>();
  auto const allocate = [body, device = state_.stream.device(), end] {
    *body = Array<std::uint8_t>(device, end);
    return body->data();
  };
  state_.messenger.receive_data(state_.stream, from, tag(Section::kGradientBody, state_.step(), 0), end, allocate,
                                [this, id, body, sizes, taken] {
                                  auto& list = state_.reader_batches.at(id);
                                  std::size_t at = 0;
                                  each_section(list, sizes, [&](ReceivedSums& sums, std::size_t bytes) {
                                    sums.bytes = body->view().slice(at, bytes);
                                    at = after_section(at, bytes);
                                  });
                                  list.body = body;
                                  taken();
                                });
}

void GradientExchange::receive_compressed(Rank from, UpdatedPart& part, std::uint64_t tag, GradientBytes const& sizes,
                                          std::function<void()> const& taken) {
  part.compressed = std::make_shared<Array<std::uint8_t>>();
  part.sent = sizes.sent_rows;
  auto const allocate = [compressed = part.compressed, device = state_.stream.device(), bytes = sizes.sums] {
    *compressed = Array<std::uint8_t>(device, bytes);
    return compressed->data();
  };
  state_.messenger.receive_data(state_.stream, from, tag, sizes.sums, allocate, taken);
}

void GradientExchange::find(kernels::HostReads& reads) {
  auto& stream = state_.stream;
  std::vector<ReceivedSums*> all;
  std::size_t blocks = 0;
  senders_.clear();
  for (auto& [id, list] : state_.reader_batches) {
    if (id.second != state_.round.applied() || list.body == nullptr) continue;
    for (auto& part : list.updates) {
      for (auto* const sums : {&part.sums, &part.occurrences}) {
        if (!sums->has_value()) continue;
        all.push_back(&**sums);
        senders_.push_back(id.first);
        blocks += kernels::packed_blocks((*sums)->count) + 1;
      }
    }
  }
  if (all.empty()) return;
  starts_ = Array<std::uint64_t>(stream.device(), blocks);
  wrong_there_ = Array<std::uint32_t>(stream.device(), 1);
  std::vector<kernels::PackedRowStarts> parts;
  std::size_t first = 0;
  for (auto* const sums : all) {
    sums->starts = starts_.view().slice(first, kernels::packed_blocks(sums->count) + 1);
    first += sums->starts.size();
    parts.push_back({sums->rows(), sums->starts});
  }
  kernels::find_packed_rows(stream, parts, wrong_there_);
  reads.add<std::uint32_t>(wrong_there_.view(), wrong_);
}

void GradientExchange::check_found() {
  find_local();
  if (!senders_.empty() && wrong_[0] != kernels::kNoRow) {
    state_.throw_peer_error(senders_[wrong_[0]], "sent gradients whose rows do not fill their bytes");
  }
  auto& stream = state_.stream;
  std::vector<kernels::AddPackedSums> counts;
  Array<std::uint32_t> const bad_row(stream.device(), 1);  // not read: sums with zeros cannot overflow
  for (auto& [id, list] : state_.reader_batches) {
    if (id.second != state_.round.applied()) continue;
    for (auto& part : list.updates) {
      if (!part.occurrences) continue;
      part.counts = Matrix<std::int64_t>(stream.device(), part.occurrences->count, kCountsPerRow);
      memory::fill_bytes(stream, part.counts.view().data(), 0, part.counts.view().flat().bytes());
      counts.push_back({.rows = part.occurrences->rows(),
                        .starts = part.occurrences->starts,
                        .slots = {},
                        .into = part.counts,
                        .bad_row = bad_row});
    }
  }
  if (!counts.empty()) kernels::add_packed_sums(stream, counts);
}

void GradientExchange::end_step() {
  local_.clear();
  packed_ = nullptr;
}

RowSums GradientExchange::wait_decode(Rank from, UpdatedPart& part) {
  auto rows = GradientSection(state_.table(part.table).options())
                  .wait_read(state_.stream, *part.compressed, part.sent, part.ids.size());
  if (!rows) state_.throw_peer_error(from, "sent gradients of a different number of rows than its message says");
  part.decoded_sums = std::move(rows->sums);
  return {.ids = part.ids, .sums = part.decoded_sums, .counts = part.counts.view().flat(), .marked = rows->marked};
}

// Finds the rows of this rank's batch that it owns itself, if they are not those of its home. Queued on the stream.
void GradientExchange::find_local() {
  if (state_.current == nullptr) return;
  auto& stream = state_.stream;
  std::vector<kernels::GatherElements<std::uint32_t>> gathers;
  std::vector<kernels::CountEntries> counts;
  for (auto const& part : state_.current->parts) {
    if (!part.local_positions || part.applied) continue;
    auto const& positions = part.local_positions->positions;
    auto& local = local_[&part] = {Array<std::uint32_t>(stream.device(), positions.size()),
                                   Array<std::int64_t>(stream.device(), positions.size())};
    gathers.push_back({part.ids, positions, local.ids});
    counts.push_back({.offsets = part.offsets, .rows = positions, .counts = local.counts});
  }
  if (gathers.empty()) return;
  kernels::gather_elements(stream, gathers);
  kernels::count_entries(stream, counts);
}

// Returns the gradients of this rank's batch for the rows that it owns itself.
RowSums GradientExchange::local_sums(PreparedPart const& part) const {
  GPUPS_ASSERT(part.sums.rows() == part.rows && part.ids.size() == part.rows);
  if (!part.local_positions) {
    return {.ids = part.ids_at(state_.me), .sums = part.sums_at(state_.me), .offsets = part.offsets_at(state_.me)};
  }
  auto const& [ids, counts] = local_.at(&part);
  return {.ids = ids, .sums = part.sums, .counts = counts, .positions = part.local_positions->positions};
}

void GradientExchange::wait_append(TableId table, std::vector<RowSums>& lists) {
  if (state_.current != nullptr) {
    for (auto const& part : state_.current->parts) {
      if (part.table == table && !part.applied) lists.push_back(local_sums(part));
    }
  }
  for (auto& [id, list] : state_.reader_batches) {
    if (id.second != state_.round.applied()) continue;
    for (auto& part : list.updates) {
      if (part.table != table) continue;
      GPUPS_ASSERT(part.ids.size() == part.count);  // RowFinder has found the rows of the list that check() has counted
      if (part.compressed != nullptr) lists.push_back(wait_decode(id.first, part));
      if (!part.sums) continue;
      lists.push_back({.ids = part.ids, .sums = {}, .received = &*part.sums, .counts = part.counts.view().flat()});
    }
  }
}

}  // namespace gpups::cache
