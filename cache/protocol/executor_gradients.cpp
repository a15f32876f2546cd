// SPDX-License-Identifier: Apache-2.0
// RoundExecutor: sends the gradients of a batch to the owners of its rows, and receives those of other ranks.
#include <algorithm>
#include <memory>
#include <utility>

#include "cache/protocol/countdown_callback.hpp"
#include "cache/protocol/round_executor.hpp"
#include "kernels/count_entries.hpp"

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

}  // namespace

// Encodes the gradients of the current batch for an owner. Returns the sizes of the sections, for the header; the
// functions in `sends` send the sections, after the header.
std::vector<GradientBytes> RoundExecutor::send_gradients(Rank owner, std::vector<std::function<void()>>& sends) {
  if (intent_for(owner, *current_).parts.empty()) return {};
  std::vector<GradientBytes> sizes(current_->parts.size());
  auto const send = [&](Section section, std::size_t part, kernels::PackedBytes bytes, std::size_t plain) {
    messenger_.count_compression(&Traffic::gradients, plain, bytes.size);
    auto const kept = std::make_shared<kernels::PackedBytes>(std::move(bytes));
    auto const step = static_cast<std::uint64_t>(number(round_.clock()));
    sends.push_back([=, this] {
      messenger_.send_data(stream_, owner, tag(section, step, part), kept->memory.data(), kept->size,
                           &Traffic::gradients, kept);
    });
    return kept->size;
  };
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    auto const& part = current_->parts[p];
    if (part.owned_by(owner) == 0) continue;
    auto const order = part.remote_positions_of(owner, me_);
    auto const& options = tables_[number(part.table)]->options();
    std::size_t const plain = order.size() * options.dim * sizeof(float);
    if (options.gradient_compression.enabled()) {
      auto const taken = residuals_.of(owner, part.table, stream_.device(), options)
                             .wait_compress(stream_, round_.clock(), wait_keys_on_wire(part, owner), part.sums, order);
      sizes[p].sent = taken.sent;
      sizes[p].sums = send(Section::kGradients, p, std::move(*taken.bytes), plain);
    } else {
      sizes[p].sums =
          send(Section::kGradients, p, kernels::wait_pack_sums(stream_, {.sums = part.sums, .order = order}), plain);
    }
    if (!tables_[number(part.table)]->counts_occurrences()) continue;
    sizes[p].occurrences = send(Section::kOccurrences, p, wait_pack_counts(stream_, part.offsets, order),
                                order.size() * sizeof(std::int64_t));
  }
  return sizes;
}

// Throws PeerError if the announced sizes are impossible for the rows of the batch. Called before memory is allocated.
void RoundExecutor::check_gradients(Rank from, ReaderBatch const& use, std::vector<GradientBytes> const& sizes) const {
  if (use.parts.size() != sizes.size()) throw_peer_error(from, "sent gradients for rows that it did not announce");
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    auto const& part = use.parts[p];
    auto const& table = *tables_[number(part.table)];
    std::size_t const counted = table.counts_occurrences() ? part.keys : 0;
    ReceivedSums const sums{.count = part.keys, .dim = table.dim()};
    ReceivedSums const occurrences{.count = rows_of_counts(counted), .dim = kCountsPerRow};
    bool const enabled = table.options().gradient_compression.enabled() && part.keys > 0;
    bool const may_be = enabled
                            ? GradientSection(table.options()).is_valid_size(sizes[p].sums, sizes[p].sent, part.keys)
                            : sums.is_valid_size(sizes[p].sums);
    if (!may_be || !occurrences.is_valid_size(sizes[p].occurrences)) {
      throw_peer_error(from, "sent gradients whose size is impossible for the rows of its batch");
    }
  }
}

void RoundExecutor::receive_sums(Rank from, std::uint64_t tag, std::shared_ptr<ReceivedSums> const& sums,
                                 std::uint64_t bytes, std::function<void()> then) {
  auto const allocate = [sums, device = stream_.device(), bytes] {
    sums->bytes = Array<std::uint8_t>(device, bytes);
    return sums->bytes.data();
  };
  messenger_.receive_data(stream_, from, tag, bytes, allocate, [this, from, sums, then = std::move(then)] {
    if (!sums->wait_index_rows(stream_)) throw_peer_error(from, "sent gradients whose rows do not fill their bytes");
    then();
  });
}

void RoundExecutor::receive_gradients(Rank from, ReaderBatchId const& use, std::size_t number_of_part,
                                      GradientBytes const& sizes, std::function<void()> const& taken) {
  auto& part = reader_batches_.at(use).parts[number_of_part];
  auto const step = static_cast<std::uint64_t>(number(round_.clock()));
  auto const& options = tables_[number(part.table)]->options();
  if (options.gradient_compression.enabled()) {
    receive_compressed(from, part, number_of_part, sizes, taken);
  } else {
    part.sums = std::make_shared<ReceivedSums>(ReceivedSums{.count = part.keys, .dim = options.dim});
    receive_sums(from, tag(Section::kGradients, step, number_of_part), part.sums, sizes.sums, taken);
  }
  if (sizes.occurrences == 0) return taken();
  part.occurrences =
      std::make_shared<ReceivedSums>(ReceivedSums{.count = rows_of_counts(part.keys), .dim = kCountsPerRow});
  receive_sums(from, tag(Section::kOccurrences, step, number_of_part), part.occurrences, sizes.occurrences,
               [this, use, number_of_part, taken] {
                 auto& counted = reader_batches_.at(use).parts[number_of_part];
                 auto& counts = counted.counts =
                     Matrix<std::int64_t>(stream_.device(), counted.occurrences->count, kCountsPerRow);
                 memory::fill_bytes(stream_, counts.view().data(), 0, counts.view().flat().bytes());
                 Array<std::uint32_t> const bad_row(stream_.device(), 1);  // not read: sums with zeros cannot overflow
                 kernels::add_packed_sums(stream_, {.rows = counted.occurrences->rows(),
                                                    .starts = counted.occurrences->starts,
                                                    .slots = {},
                                                    .into = counts,
                                                    .bad_row = bad_row});
                 stream_.wait();
                 taken();
               });
}

void RoundExecutor::receive_gradient_phase(Rank from, Message const& message) {
  ReaderBatchId const id{from, round_.clock()};
  auto const use = reader_batches_.find(id);
  bool const gradients = !message.gradients.empty();
  if (gradients && use == reader_batches_.end())
    throw_peer_error(from, "sent gradients for rows that it did not announce");
  if (use != reader_batches_.end() && !use->second.keys_received)
    throw_peer_error(from, "ended a step before it sent the keys of the step");
  if (gradients) check_gradients(from, use->second, message.gradients);
  check_flushed(from, message.flushed);
  std::size_t filled = 0;
  for (std::size_t p = 0; p < message.gradients.size(); ++p) filled += use->second.parts[p].keys > 0 ? 1 : 0;
  // Counts: the sums and the occurrences of each part with keys; keys and sums of each list of flushed rows; and the
  // keys of new intents.
  auto const taken =
      countdown_callback(2 * (filled + message.flushed.size()) + 1, [this, from] { round_.on_data_received(from); });
  for (std::size_t p = 0; p < message.gradients.size(); ++p) {
    if (use->second.parts[p].keys > 0) receive_gradients(from, id, p, message.gradients[p], taken);
  }
  receive_flushed(from, message.flushed, taken);
  receive_intents(from, message, false, taken);
}

}  // namespace gpups::cache
