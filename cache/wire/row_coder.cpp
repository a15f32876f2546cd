// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/row_coder.hpp"

#include <numeric>
#include <vector>

#include "cache/wire/received_sums.hpp"
#include "kernels/base/assert.hpp"
#include "kernels/codec/quantize_rows.hpp"
#include "kernels/codec/quantize_sums.hpp"
#include "kernels/codec/top_k_rows.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::cache {
namespace {

Matrix<std::int64_t> zeros(Stream& stream, std::size_t rows, std::size_t columns) {
  Matrix<std::int64_t> matrix(stream.device(), rows, columns);
  memory::fill_bytes(stream, matrix.view().data(), 0, matrix.view().flat().bytes());
  return matrix;
}

// Returns the k columns of largest magnitude of each row, ascending: (n, k).
Array<std::uint32_t> wait_largest_columns(Stream& stream, MatrixView<std::int64_t const> rows, std::size_t k) {
  Matrix<float> const values(stream.device(), rows.rows(), rows.columns());
  kernels::units_to_floats(stream, {.from = rows, .to = values});
  Array<std::uint32_t> columns(stream.device(), rows.rows() * k);
  Array<float> const kept(stream.device(), rows.rows() * k);
  kernels::top_k_rows(stream, {.values = values, .k = k, .columns = columns, .kept = kept});
  stream.wait();
  return columns;
}

}  // namespace

RowCoder::RowCoder(TableOptions const& table, RowCompression const& compression, bool exact)
    : dim_(table.dim),
      width_(exact || compression.top_k == 0 ? table.dim : compression.top_k),
      grid_log2_(table.grid_log2),
      exact_(exact || compression.codec == RowCodec::kLossless),
      format_(format_of(compression.codec)) {}

std::size_t RowCoder::bitmap_bytes(std::size_t n) const {
  return width_ == dim_ ? 0 : n * kernels::bitmap_words(dim_) * sizeof(std::uint32_t);
}

std::size_t RowCoder::code_bytes(std::size_t n) const {
  CodedShape const coded = coded_shape(n, width_);
  return kernels::encoded_bytes(format_, coded.rows, coded.columns);
}

bool RowCoder::is_valid_size(std::uint64_t bytes, std::size_t n) const {
  if (bytes < bitmap_bytes(n)) return false;
  std::uint64_t const numbers = bytes - bitmap_bytes(n);
  return exact_ ? ReceivedSums{.count = n, .dim = width_}.is_valid_size(numbers) : numbers == code_bytes(n);
}

kernels::PackedBytes RowCoder::wait_pack(Stream& stream, MatrixView<std::int64_t> rows, std::size_t head) const {
  std::vector<std::uint32_t> order(rows.rows());
  std::iota(order.begin(), order.end(), 0U);
  auto const packed = kernels::wait_pack_sums(stream, {.sums = rows, .order = to_device(stream, order)});
  memory::fill_bytes(stream, rows.data(), 0, rows.flat().bytes());
  kernels::PackedBytes all{.memory = Array<std::uint8_t>(stream.device(), head + packed.size),
                           .size = head + packed.size};
  copy<std::uint8_t>(stream, all.memory.view().slice(head, packed.size), packed.memory.view().slice(0, packed.size));
  stream.wait();
  return all;
}

kernels::PackedBytes RowCoder::wait_quantize(Stream& stream, MatrixView<std::int64_t> rows, std::size_t head) const {
  std::size_t const n = rows.rows(), size = head + code_bytes(n);
  kernels::PackedBytes all{.memory = Array<std::uint8_t>(stream.device(), size), .size = size};
  CodedShape const coded = coded_shape(n, width_);
  bool const folds = width_ < kShortRow;
  auto const folded = folds ? zeros(stream, coded.rows, coded.columns) : Matrix<std::int64_t>();
  auto const numbers = folded.view().flat().slice(0, folds ? n * width_ : 0);
  if (folds) kernels::extract_sums(stream, {.rows = rows, .words = numbers});
  auto const codes = all.memory.view().slice(head, size - head);
  auto const bad_row = make_bad_row(stream);  // not read: wait_encode() requires numbers in range
  kernels::quantize_sums(stream, {.sums = {},
                                  .residual = folds ? folded.view() : rows,
                                  .encoded = kernels::encoded_rows(codes, format_, coded.rows, coded.columns),
                                  .grid_log2 = grid_log2_,
                                  .bad_row = bad_row});
  if (folds) kernels::add_raw_sums(stream, {.words = numbers, .slots = {}, .into = rows});
  stream.wait();
  return all;
}

kernels::PackedBytes RowCoder::wait_encode_numbers(Stream& stream, MatrixView<std::int64_t> rows,
                                                   std::size_t head) const {
  return exact_ ? wait_pack(stream, rows, head) : wait_quantize(stream, rows, head);
}

kernels::PackedBytes RowCoder::wait_encode(Stream& stream, MatrixView<std::int64_t> rows, std::size_t head) const {
  std::size_t const n = rows.rows();
  GPUPS_ASSERT(rows.columns() == dim_);
  if (width_ == dim_ || n == 0) return wait_encode_numbers(stream, rows, head);
  auto const columns = wait_largest_columns(stream, rows, width_);
  auto const kept = zeros(stream, n, width_);
  Array<std::uint32_t> const bitmaps(stream.device(), n * kernels::bitmap_words(dim_));
  kernels::extract_columns(stream, {.rows = rows, .k = width_, .columns = columns, .kept = kept, .bitmaps = bitmaps});
  auto all = wait_encode_numbers(stream, kept, head + bitmap_bytes(n));
  kernels::add_columns(stream, {.kept = kept, .bitmaps = bitmaps, .slots = {}, .rows = rows});  // the rounding errors
  View<std::uint8_t const> const bytes(reinterpret_cast<std::uint8_t const*>(bitmaps.data()), bitmap_bytes(n),
                                       stream.device());
  copy<std::uint8_t>(stream, all.memory.view().slice(head, bytes.size()), bytes);
  stream.wait();
  return all;
}

bool RowCoder::wait_add_packed(Stream& stream, View<std::uint8_t const> from, std::size_t n,
                               View<std::uint32_t const> slots, MatrixView<std::int64_t> into) const {
  kernels::PackedRows const rows{from, n, width_};
  Array<std::uint64_t> const starts(stream.device(), kernels::packed_blocks(n) + 1);
  if (!kernels::wait_find_packed_rows(stream, rows, starts)) return false;
  auto const bad_row = make_bad_row(stream);
  kernels::add_packed_sums(stream, {.rows = rows, .starts = starts, .slots = slots, .into = into, .bad_row = bad_row});
  return to_host(stream, bad_row.view())[0] == kernels::kNoRow;
}

void RowCoder::wait_add_codes(Stream& stream, View<std::uint8_t const> from, std::size_t n,
                              View<std::uint32_t const> slots, MatrixView<std::int64_t> into) const {
  CodedShape const coded = coded_shape(n, width_);
  bool const folds = width_ < kShortRow;
  auto const folded = folds ? zeros(stream, coded.rows, coded.columns) : Matrix<std::int64_t>();
  kernels::add_dequantized_sums(stream, {.encoded = kernels::encoded_rows(from, format_, coded.rows, coded.columns),
                                         .slots = folds ? View<std::uint32_t const>() : slots,
                                         .into = folds ? folded.view() : into,
                                         .grid_log2 = grid_log2_});
  if (folds) {
    kernels::add_raw_sums(stream, {.words = folded.view().flat().slice(0, n * width_), .slots = slots, .into = into});
  }
  stream.wait();
}

bool RowCoder::wait_add(Stream& stream, View<std::uint8_t const> from, std::size_t n, View<std::uint32_t const> slots,
                        MatrixView<std::int64_t> into) const {
  GPUPS_ASSERT(is_valid_size(from.size(), n) && into.columns() == dim_);
  if (n == 0) return true;
  bool const all_columns = width_ == dim_;
  auto const numbers = from.slice(bitmap_bytes(n), from.size() - bitmap_bytes(n));
  auto const kept = all_columns ? Matrix<std::int64_t>() : zeros(stream, n, width_);
  auto const to = all_columns ? into : kept.view();
  auto const at = all_columns ? slots : View<std::uint32_t const>();
  if (!exact_) {
    wait_add_codes(stream, numbers, n, at, to);
  } else if (!wait_add_packed(stream, numbers, n, at, to)) {
    return false;
  }
  if (all_columns) return true;
  View<std::uint32_t const> const bitmaps(reinterpret_cast<std::uint32_t const*>(from.data()),
                                          bitmap_bytes(n) / sizeof(std::uint32_t), from.device());
  kernels::add_columns(stream, {.kept = kept, .bitmaps = bitmaps, .slots = slots, .rows = into});
  stream.wait();
  return true;
}

}  // namespace gpups::cache
