// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/gradient_exchange.hpp"

#include <algorithm>
#include <utility>

#include "cache/wire/gradient_section.hpp"
#include "kernels/count_entries.hpp"
#include "kernels/gather_elements.hpp"
#include "kernels/permute_rows.hpp"

namespace gpups::cache {
namespace {

kernels::PackedBytes wait_pack_counts(Stream& stream, View<std::uint32_t const> offsets,
                                      View<std::uint32_t const> order) {
  Matrix<std::int64_t> const counts(stream.device(), rows_of_counts(order.size()), kCountsPerRow);
  kernels::count_entries(stream, {.offsets = offsets, .rows = order, .counts = counts.view().flat()});
  std::vector<std::uint32_t> rows(counts.rows());
  for (std::uint32_t i = 0; i < rows.size(); ++i) rows[i] = i;
  auto const there = to_device(stream, rows);
  return kernels::wait_pack_sums(stream, {.sums = counts, .order = there});
}

// Returns a view of the integers as pairs of floats, for copies.
MatrixView<float> as_floats(MatrixView<std::int64_t> sums) {
  return {reinterpret_cast<float*>(sums.data()), sums.rows(), 2 * sums.columns(), 2 * sums.stride(), sums.device()};
}

}  // namespace

std::vector<GradientBytes> GradientExchange::wait_send(Rank owner, std::vector<std::function<void()>>& sends) {
  auto const& batch = state_.current;
  if (batch == nullptr || !has_list(*batch, owner)) return {};
  auto& stream = state_.stream;
  std::vector<GradientBytes> sizes(batch->parts.size());
  auto const send = [&](Section section, std::size_t part, kernels::PackedBytes bytes, std::size_t plain) {
    state_.messenger.count_compression(&Traffic::gradients, plain, bytes.size);
    auto const kept = std::make_shared<kernels::PackedBytes>(std::move(bytes));
    sends.push_back([=, this, step = state_.step()] {
      state_.messenger.send_data(state_.stream, owner, tag(section, step, part), kept->memory.data(), kept->size,
                                 &Traffic::gradients, kept);
    });
    return kept->size;
  };
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    auto const& part = batch->parts[p];
    if (part.list_size(owner) == 0) continue;
    auto const order = part.list_positions(owner);
    auto const& shard = state_.table(part.table);
    std::size_t const plain = order.size() * shard.dim() * sizeof(float);
    if (shard.options().gradient_compression.enabled()) {
      auto const taken =
          residuals_.of(owner, part.table)
              .wait_compress(stream, state_.round.clock(), wait_keys_at(stream, part, order), part.sums, order);
      sizes[p].sent = taken.sent;
      sizes[p].sums = send(Section::kGradients, p, std::move(*taken.bytes), plain);
    } else {
      sizes[p].sums =
          send(Section::kGradients, p, kernels::wait_pack_sums(stream, {.sums = part.sums, .order = order}), plain);
    }
    if (!shard.counts_occurrences()) continue;
    sizes[p].occurrences = send(Section::kOccurrences, p, wait_pack_counts(stream, part.offsets, order),
                                order.size() * sizeof(std::int64_t));
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
  wait_join(state_.stream, list);
  if (sizes.empty()) return;
  if (list.parts.size() != sizes.size()) {
    state_.throw_peer_error(from, "sent gradients for rows that it did not announce");
  }
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    auto const& part = list.parts[p];
    auto const& table = state_.table(part.table);
    std::size_t const counted = table.counts_occurrences() ? part.keys : 0;
    ReceivedSums const sums{.count = part.keys, .dim = table.dim()};
    ReceivedSums const occurrences{.count = rows_of_counts(counted), .dim = kCountsPerRow};
    bool const enabled = table.options().gradient_compression.enabled() && part.keys > 0;
    bool const may_be = enabled
                            ? GradientSection(table.options()).is_valid_size(sizes[p].sums, sizes[p].sent, part.keys)
                            : sums.is_valid_size(sizes[p].sums);
    if (!may_be || !occurrences.is_valid_size(sizes[p].occurrences)) {
      state_.throw_peer_error(from, "sent gradients whose size is impossible for the rows of its batch");
    }
  }
}

std::size_t GradientExchange::sections(Rank from, std::vector<GradientBytes> const& sizes) const {
  std::size_t sections = 0;
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    sections += state_.reader_batches.at({from, state_.round.clock()}).parts[p].keys > 0 ? 2 : 0;  // sums, occurrences
  }
  return sections;
}

void GradientExchange::receive(Rank from, std::vector<GradientBytes> const& sizes, std::function<void()> const& taken) {
  ReaderBatchId const id{from, state_.round.clock()};
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    if (state_.reader_batches.at(id).parts[p].keys > 0) receive_part(id, p, sizes[p], taken);
  }
}

void GradientExchange::receive_part(ReaderBatchId const& of, std::size_t number_of_part, GradientBytes const& sizes,
                                    std::function<void()> const& taken) {
  Rank const from = of.first;
  auto& part = state_.reader_batches.at(of).parts[number_of_part];
  auto const& options = state_.table(part.table).options();
  auto const tag_of = [&](Section section) { return tag(section, state_.step(), number_of_part); };
  if (options.gradient_compression.enabled()) {
    receive_compressed(from, part, tag_of(Section::kGradients), sizes, taken);
  } else {
    part.sums = std::make_shared<ReceivedSums>(ReceivedSums{.count = part.keys, .dim = options.dim});
    receive_sums(from, tag_of(Section::kGradients), part.sums, sizes.sums, taken);
  }
  if (sizes.occurrences == 0) return taken();
  part.occurrences =
      std::make_shared<ReceivedSums>(ReceivedSums{.count = rows_of_counts(part.keys), .dim = kCountsPerRow});
  receive_sums(from, tag_of(Section::kOccurrences), part.occurrences, sizes.occurrences,
               [this, of, number_of_part, taken] {
                 wait_unpack_counts(state_.reader_batches.at(of).parts[number_of_part]);
                 taken();
               });
}

void GradientExchange::receive_sums(Rank from, std::uint64_t tag, std::shared_ptr<ReceivedSums> const& sums,
                                    std::uint64_t bytes, std::function<void()> then) {
  auto const allocate = [sums, device = state_.stream.device(), bytes] {
    sums->bytes = Array<std::uint8_t>(device, bytes);
    return sums->bytes.data();
  };
  state_.messenger.receive_data(state_.stream, from, tag, bytes, allocate, [this, from, sums, then = std::move(then)] {
    if (!sums->wait_index_rows(state_.stream)) {
      state_.throw_peer_error(from, "sent gradients whose rows do not fill their bytes");
    }
    then();
  });
}

void GradientExchange::receive_compressed(Rank from, ReaderPart& part, std::uint64_t tag, GradientBytes const& sizes,
                                          std::function<void()> const& taken) {
  part.compressed = std::make_shared<Array<std::uint8_t>>();
  part.sent = sizes.sent;
  auto const allocate = [compressed = part.compressed, device = state_.stream.device(), bytes = sizes.sums] {
    *compressed = Array<std::uint8_t>(device, bytes);
    return compressed->data();
  };
  state_.messenger.receive_data(state_.stream, from, tag, sizes.sums, allocate, taken);
}

void GradientExchange::wait_unpack_counts(ReaderPart& part) {
  auto& stream = state_.stream;
  part.counts = Matrix<std::int64_t>(stream.device(), part.occurrences->count, kCountsPerRow);
  memory::fill_bytes(stream, part.counts.view().data(), 0, part.counts.view().flat().bytes());
  Array<std::uint32_t> const bad_row(stream.device(), 1);  // not read: sums with zeros cannot overflow
  kernels::add_packed_sums(stream, {.rows = part.occurrences->rows(),
                                    .starts = part.occurrences->starts,
                                    .slots = {},
                                    .into = part.counts,
                                    .bad_row = bad_row});
  stream.wait();
}

RowSums GradientExchange::wait_decode(Rank from, ReaderPart& part) {
  auto rows = GradientSection(state_.table(part.table).options())
                  .wait_read(state_.stream, *part.compressed, part.sent, part.ids.size());
  if (!rows) state_.throw_peer_error(from, "sent gradients of a different number of rows than its message says");
  part.decoded_sums = std::move(rows->sums);
  return {.ids = part.ids, .sums = part.decoded_sums, .counts = part.counts.view().flat(), .marked = rows->marked};
}

// Returns the gradients of this rank's batch for the rows that it owns itself.
RowSums GradientExchange::wait_local_sums(PreparedPart& part) {
  if (!part.local_positions) {
    return {.ids = part.ids_at(state_.me), .sums = part.sums_at(state_.me), .offsets = part.offsets_at(state_.me)};
  }
  auto& stream = state_.stream;
  auto const& positions = *part.local_positions;
  auto& [ids, sums, counts] = local_.emplace_back(LocalSums{Array<std::uint32_t>(stream.device(), positions.size()),
                                                            {stream.device(), positions.size(), part.sums.columns()},
                                                            Array<std::int64_t>(stream.device(), positions.size())});
  memory::fill_bytes(stream, sums.view().data(), 0, sums.view().flat().bytes());  // padding
  kernels::gather_elements(stream, kernels::GatherElements<std::uint32_t>{part.ids, positions, ids});
  kernels::gather_matrix_rows(stream, {.from = as_floats(part.sums), .positions = positions, .to = as_floats(sums)});
  kernels::count_entries(stream, {.offsets = part.offsets, .rows = positions, .counts = counts});
  stream.wait();
  return {.ids = ids, .sums = sums, .counts = counts};
}

void GradientExchange::wait_append(TableId table, std::vector<RowSums>& lists) {
  if (state_.current != nullptr) {
    for (auto& part : state_.current->parts) {
      if (part.table == table && !part.applied) lists.push_back(wait_local_sums(part));
    }
  }
  for (auto& [id, list] : state_.reader_batches) {
    if (id.second != state_.round.applied()) continue;
    for (auto& part : list.parts) {
      if (part.table != table) continue;
      if (part.compressed != nullptr) lists.push_back(wait_decode(id.first, part));
      if (part.sums == nullptr) continue;
      lists.push_back({.ids = part.ids, .sums = {}, .received = part.sums.get(), .counts = part.counts.view().flat()});
    }
  }
}

}  // namespace gpups::cache
