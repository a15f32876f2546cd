// SPDX-License-Identifier: Apache-2.0
#include "cache/feedback/row_mirror.hpp"

#include <algorithm>

#include "cache/wire/row_coder.hpp"
#include "kernels/codec/changed_rows_of_mirrors.hpp"
#include "kernels/codec/quantize_rows.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/rows/selected_rows.hpp"

namespace gpups::cache {
namespace {

bool is_lossless(TableOptions const& table) { return table.refresh_compression.codec == RowCodec::kLossless; }

// Returns the number format of sent rows. Lossless rows are sent in the table's data type.
kernels::Format format_for(TableOptions const& table) {
  if (!is_lossless(table)) return format_of(table.refresh_compression.codec);
  constexpr kernels::Format kOfValues[] = {kernels::Format::kFloat, kernels::Format::kHalf, kernels::Format::kBFloat16};
  return kOfValues[static_cast<int>(table.value_type)];
}

std::size_t code_bytes(TableOptions const& table, std::size_t n) {
  CodedShape const coded = coded_shape(n, table.dim);
  return kernels::encoded_bytes(format_for(table), coded.rows, coded.columns);
}

// A matrix of zeros that is used both as rows without padding and in the shape in which they are encoded.
struct FoldedRows {
  FoldedRows(Stream& stream, std::size_t n, std::size_t dim)
      : shape(coded_shape(n, dim)), numbers(stream.device(), shape.rows * shape.columns), n_(n), dim_(dim) {
    memory::fill_bytes(stream, numbers.data(), 0, numbers.bytes());
  }
  MatrixView<float> coded() const {
    return {numbers.data(), shape.rows, shape.columns, shape.columns, numbers.device()};
  }
  MatrixView<float> rows() const { return {numbers.data(), n_, dim_, dim_, numbers.device()}; }

  CodedShape shape;
  Array<float> numbers;

 private:
  std::size_t n_, dim_;
};

}  // namespace

RowMirror::RowMirror(Device device, TableShard const& shard)
    : shard_(shard),
      threshold_(shard.options().refresh_compression.filter),
      keys_(device),
      mirror_(device, row_stride(shard.dim()), kernels::NewRows::kZero, KeyAgeIndex::kGrowth) {}

std::size_t RowMirror::bytes(TableOptions const& table, std::size_t sent, std::size_t n) {
  return code_bytes(table, sent) + kernels::bitmap_words(n) * sizeof(std::uint32_t);
}

Array<std::uint32_t> RowMirror::list_slots(Stream& stream, View<Key const> keys) {
  Array<std::uint32_t> slots(stream.device(), keys.size());
  auto const given = keys_.wait_find_or_insert(stream, keys, slots);
  mirror_.reserve(stream, keys_.slots_end());
  Matrix<float> const initial(stream.device(), given.size(), shard_.dim());
  auto const new_keys = keys_.wait_keys(stream, given);
  shard_.initial_values(stream, new_keys, initial);
  kernels::update_mirrors(stream, {.rows = initial, .slots = given, .mirrors = mirror_.ref(), .add = false});
  stream.wait();
  return slots;
}

RowMirror::Changes RowMirror::wait_send(Stream& stream, Clock step, View<Key const> keys,
                                        MatrixView<float const> values, bool all) {
  Device const device = stream.device();
  auto const& table = shard_.options();
  std::size_t const n = keys.size();
  auto const slots = list_slots(stream, keys);
  Array<float> const largest(device, n);
  Array<std::uint8_t> const send(device, n);
  kernels::changed_rows(stream, {.values = values,
                                 .slots = slots,
                                 .mirrors = mirror_.const_ref(),
                                 .marks = keys_.marks(),
                                 .now = stamp_of(step),
                                 .age = all ? 0 : table.refresh_compression.filter.age_max,
                                 .bound = threshold_.next(),
                                 .by_bits = is_lossless(table),
                                 .max_magnitude = largest,
                                 .send = send});
  Array<std::uint32_t> const numbers(device, n), slots_of(device, n);
  std::size_t const sent =
      kernels::wait_list_flagged(stream, {.flags = send, .rows = numbers, .from = slots, .taken = slots_of});
  auto const sent_rows = numbers.view().slice(0, sent), sent_slots = slots_of.view().slice(0, sent);

  Changes part{.sent = sent, .bytes = std::make_shared<Array<std::uint8_t>>(device, bytes(table, sent, n))};
  FoldedRows const rows(stream, sent, table.dim);
  if (is_lossless(table)) {
    kernels::gather_matrix_rows(stream, {.from = values, .positions = sent_rows, .to = rows.rows()});
  } else {
    kernels::gather_changes(
        stream,
        {.values = values, .rows = sent_rows, .slots = sent_slots, .mirrors = mirror_.const_ref(), .to = rows.rows()});
  }
  if (sent > 0) {
    auto const wire = kernels::encoded_rows(part.bytes->view(), format_for(table), rows.shape.rows, rows.shape.columns);
    kernels::quantize_rows(stream, {.values = rows.coded(), .residual = {}, .encoded = wire});
    wait_change(stream, *part.bytes, sent_slots);
  }
  auto* const words = reinterpret_cast<std::uint32_t*>(part.bytes->data() + code_bytes(table, sent));
  kernels::indices_to_bitmap(stream, {.indices = sent_rows, .bitmap = {words, kernels::bitmap_words(n), device}});
  stream.wait();  // local arrays end here
  // The threshold of a checkpoint includes loaded_step_. A step that sends all changes must not adapt the threshold.
  if (step != loaded_step_ && !all) {
    if (threshold_.is_new()) threshold_.begin(to_host(stream, largest.view()));
    threshold_.count(sent, n);
  }
  sent_step_ = step;
  wait_evict_oldest(stream, step);
  return part;
}

void RowMirror::wait_change(Stream& stream, View<std::uint8_t const> codes, View<std::uint32_t const> slots) {
  auto const& table = shard_.options();
  if (slots.empty()) return;
  FoldedRows const rows(stream, slots.size(), table.dim);
  auto const wire = kernels::encoded_rows(codes, format_for(table), rows.shape.rows, rows.shape.columns);
  kernels::dequantize_rows(stream, {.encoded = wire, .out = rows.coded()});
  kernels::update_mirrors(stream,
                          {.rows = rows.rows(), .slots = slots, .mirrors = mirror_.ref(), .add = !is_lossless(table)});
  stream.wait();
}

bool RowMirror::wait_read(Stream& stream, Clock step, View<Key const> keys, View<std::uint8_t const> section,
                          std::size_t sent, MatrixView<float> out) {
  Device const device = stream.device();
  auto const& table = shard_.options();
  std::size_t const n = keys.size();
  auto const slots = list_slots(stream, keys);
  kernels::mark_residual(stream, {.marks = keys_.marks(), .slots = slots, .oldest = {}, .last_use = stamp_of(step)});
  auto const* const words = reinterpret_cast<std::uint32_t const*>(section.data() + code_bytes(table, sent));
  Array<std::uint32_t> const slots_of(device, n);
  std::size_t const marked = kernels::wait_list_marked(
      stream, {.bitmap = {words, kernels::bitmap_words(n), device}, .n = n, .from = slots, .taken = slots_of});
  if (marked != sent) return false;
  wait_change(stream, section, slots_of.view().slice(0, sent));
  kernels::gather(stream, {.rows = mirror_.const_ref(), .ids = slots, .out = out});
  stream.wait();
  wait_evict_oldest(stream, step);
  return true;
}

MirrorChunk RowMirror::wait_save(Stream& stream) const {
  std::size_t const dim = shard_.dim(), stride = row_stride(dim);
  auto const slots = keys_.list_slots(stream);
  Array<std::uint32_t> const marks(stream.device(), slots.size() * kernels::kResidualMarks);
  kernels::gather_stored(stream, kernels::GatherStored<std::uint32_t>{keys_.marks(), slots, marks});
  Matrix<float> const values(stream.device(), slots.size(), dim);
  kernels::gather(stream, {.rows = mirror_.const_ref(), .ids = slots, .out = values});
  MirrorChunk chunk{.threshold = threshold_.state(),
                    .step = sent_step_,
                    .keys = to_host(stream, keys_.wait_keys(stream, slots).view()),
                    .marks = to_host(stream, marks.view()),
                    .values = {}};
  auto const padded = to_host(stream, values.view().flat());
  for (std::size_t i = 0; i < padded.size(); ++i) {
    if (i % stride < dim) chunk.values.push_back(padded[i]);
  }
  return chunk;
}

void RowMirror::wait_load(Stream& stream, MirrorChunk const& chunk) {
  threshold_.set_state(chunk.threshold);
  sent_step_ = loaded_step_ = chunk.step;
  std::size_t const dim = shard_.dim(), stride = row_stride(dim);
  auto const slots = list_slots(stream, to_device(stream, chunk.keys));
  std::vector<float> padded(slots.size() * stride);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    std::copy_n(chunk.values.data() + i * dim, dim, padded.data() + i * stride);
  }
  Matrix<float> const values(stream.device(), slots.size(), dim);
  copy<float>(stream, values.view().flat(), View<float const>(padded));
  kernels::update_mirrors(stream, {.rows = values, .slots = slots, .mirrors = mirror_.ref(), .add = false});
  auto const marks = to_device(stream, chunk.marks);
  kernels::scatter_stored(stream, kernels::ScatterStored<std::uint32_t>{marks, slots, keys_.marks()});
  stream.wait();
}

void RowMirror::wait_evict_oldest(Stream& stream, Clock step) {
  std::uint32_t const age = keys_.wait_eviction_age(stream, step, shard_.options().refresh_compression.capacity_rows);
  if (age > 0) keys_.wait_erase(stream, keys_.wait_list_aged(stream, kernels::kLastUse, step, age));
}

}  // namespace gpups::cache
