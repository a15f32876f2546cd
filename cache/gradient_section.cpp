// SPDX-License-Identifier: Apache-2.0
#include "cache/gradient_section.hpp"

#include "kernels/assert.hpp"
#include "kernels/wire/keep_above.hpp"
#include "kernels/wire/marked_rows.hpp"

namespace gpups::cache {

std::size_t GradientSection::head(std::size_t n) const {
  return filters_ ? kernels::bitmap_words(n) * sizeof(std::uint32_t) : 0;
}

bool GradientSection::may_have(std::uint64_t bytes, std::uint64_t sent, std::size_t n) const {
  bool const fits = filters_ ? sent <= n : sent == n;
  return fits && bytes >= head(n) && coder_.may_have(bytes - head(n), sent);
}

kernels::NarrowBytes GradientSection::wait_write(Stream& stream, View<std::uint32_t const> sent, std::size_t n,
                                                 MatrixView<std::int64_t> rows) const {
  GPUPS_ASSERT(rows.rows() == sent.size() && (filters_ || sent.size() == n));
  auto section = coder_.wait_encode(stream, rows, head(n));
  if (filters_) {
    auto* const words = reinterpret_cast<std::uint32_t*>(section.memory.data());
    kernels::mark_kept(stream, {.indices = sent, .bitmap = {words, kernels::bitmap_words(n), stream.device()}});
    stream.wait();
  }
  return section;
}

Matrix<std::int64_t> GradientSection::wait_read(Stream& stream, View<std::uint8_t const> bytes, std::size_t sent,
                                                std::size_t n) const {
  Matrix<std::int64_t> rows(stream.device(), n, dim_);
  memory::fill_bytes(stream, rows.view().data(), 0, rows.view().flat().bytes());
  Array<std::uint32_t> const numbers(stream.device(), filters_ ? n : 0);
  if (filters_) {
    auto const* const words = reinterpret_cast<std::uint32_t const*>(bytes.data());
    std::size_t const marked = kernels::wait_list_marked(
        stream, {.bitmap = {words, kernels::bitmap_words(n), stream.device()}, .n = n, .from = {}, .taken = numbers});
    if (marked != sent) return {};
  }
  auto const coded = bytes.slice(head(n), bytes.size() - head(n));
  bool const fine = coder_.wait_add(stream, coded, sent, numbers.view().slice(0, filters_ ? sent : 0), rows);
  return fine ? std::move(rows) : Matrix<std::int64_t>();
}

}  // namespace gpups::cache
