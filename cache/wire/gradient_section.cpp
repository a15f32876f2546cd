// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/gradient_section.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/rows/selected_rows.hpp"

namespace gpups::cache {

std::size_t GradientSection::head(std::size_t n) const {
  return filters_ ? kernels::bitmap_words(n) * sizeof(std::uint32_t) : 0;
}

bool GradientSection::is_valid_size(std::uint64_t bytes, std::uint64_t sent, std::size_t n) const {
  bool const fits = filters_ ? sent <= n : sent == n;
  return fits && bytes >= head(n) && coder_.is_valid_size(bytes - head(n), sent);
}

kernels::PackedBytes GradientSection::wait_write(Stream& stream, View<std::uint32_t const> sent, std::size_t n,
                                                 MatrixView<std::int64_t> rows) const {
  GPUPS_ASSERT(rows.rows() == sent.size() && (filters_ || sent.size() == n));
  auto section = coder_.wait_encode(stream, rows, head(n));
  if (filters_) {
    auto* const words = reinterpret_cast<std::uint32_t*>(section.memory.data());
    kernels::indices_to_bitmap(stream, {.indices = sent, .bitmap = {words, kernels::bitmap_words(n), stream.device()}});
    stream.wait();
  }
  return section;
}

std::optional<GradientSection::Sent> GradientSection::wait_read(Stream& stream, View<std::uint8_t const> bytes,
                                                                std::size_t sent, std::size_t n) const {
  Sent rows{.sums = Matrix<std::int64_t>(stream.device(), sent, dim_), .marked = {}};
  if (filters_) {
    rows.marked = {reinterpret_cast<std::uint32_t const*>(bytes.data()), kernels::bitmap_words(n), stream.device()};
    Array<std::uint32_t> const numbers(stream.device(), n);
    if (kernels::wait_list_marked(stream, {.bitmap = rows.marked, .n = n, .from = {}, .taken = numbers}) != sent)
      return {};
  }
  memory::fill_bytes(stream, rows.sums.view().data(), 0, rows.sums.view().flat().bytes());
  if (!coder_.wait_add(stream, bytes.slice(head(n), bytes.size() - head(n)), sent, {}, rows.sums)) return {};
  return rows;
}

}  // namespace gpups::cache
