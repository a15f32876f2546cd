// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/round/row_bodies.hpp"

#include "cache/feedback/row_mirror.hpp"
#include "cache/wire/received_sums.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/rows/selected_rows.hpp"
#include "kernels/update/update_rows.hpp"

namespace gpups::cache {

ValueBody::ValueBody(std::vector<PartRows> const& parts) {
  for (auto const& [table, rows, sent] : parts) {
    bool const is_plain = !table->refresh_compression.enabled();
    has_bitmaps_ = has_bitmaps_ || (is_plain && sent < rows);
    bitmap_first_.push_back(bitmap_first_.back() + (is_plain ? kernels::bitmap_words(rows) : 0));
    size_.push_back(is_plain    ? kernels::NumberView{nullptr, sent, table->dim, table->value_type}.bytes()
                    : rows == 0 ? 0
                                : RowMirror::bytes(*table, sent, rows));
  }
  std::size_t at = has_bitmaps_ ? after_section(0, bitmap_words() * sizeof(std::uint32_t)) : 0;
  bytes_ = has_bitmaps_ ? bitmap_words() * sizeof(std::uint32_t) : 0;
  for (std::size_t const size : size_) {
    first_.push_back(at);
    if (size > 0) bytes_ = at + size;
    at = after_section(at, size);
  }
}

MovedBody::MovedBody(std::vector<RowsOfPart> const& parts) {
  std::size_t bitmaps = 0;
  for (auto const& [table, rows, sent] : parts) {
    std::size_t const size = kernels::bitmap_words(rows) * sizeof(std::uint32_t);
    parts_.push_back({.rows = rows, .sent = sent, .bitmap = {bitmaps, size}});
    bitmaps += size;
  }
  bytes_ = bitmaps;
  std::size_t at = after_section(0, bitmaps);
  auto const take = [&](std::size_t size) {
    Place const place{at, size};
    if (size > 0) bytes_ = at + size;
    at = after_section(at, size);
    return place;
  };
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto const& [table, rows, sent] = parts[p];
    parts_[p].values = take(kernels::NumberView{nullptr, sent, table->dim, table->value_type}.bytes());
    parts_[p].state = take(sent * kernels::state_columns(table->optimizer, table->dim) * sizeof(float));
    parts_[p].lifecycle = take(sent * kernels::kLifecycleWords * sizeof(std::uint32_t));
  }
}

}  // namespace gpups::cache
