// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/validate_bags.hpp"

#include <algorithm>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

GPUPS_FN inline bool is_right(BagPart const& b, std::size_t i) {
  bool const rises = i == 0 ? b.offsets[0] == 0 : b.offsets[i - 1] <= b.offsets[i];
  return rises && (i + 1 < b.offsets.size() || b.offsets[i] == b.bag_of.size());
}

#ifdef __CUDACC__
template <Space S>
void run(Exec<S> ex, ValidateBags const& c) {
  each(ex, c.parts.size(), [bad_offsets = c.bad_offsets] GPUPS_FN(std::size_t p) { bad_offsets[p] = kNoRow; });
  for (std::size_t p = 0; p < c.parts.size(); ++p) {
    BagPart const b = c.parts[p];
    std::uint32_t* const bad_row = c.bad_offsets.data() + p;
    each(ex, b.offsets.size(), [=] GPUPS_FN(std::size_t i) {
      b.kept[i] = b.offsets[i];
      if (!is_right(b, i)) atomic_min(bad_row, static_cast<std::uint32_t>(i));
    });
    each_row(ex, b.offsets.size() - 1, [=] GPUPS_FN(std::size_t bag, NativeLanes lanes) {
      if (*bad_row != kNoRow) return;
      std::uint32_t const first = b.kept[bag];
      lanes.each(b.kept[bag + 1] - first,
                 [=](std::size_t j) { b.bag_of[first + j] = static_cast<std::uint32_t>(bag); });
    });
  }
}
#else
// Parts are processed in parallel, and so are the bags of a part with many bags.
template <Space S>
void run(Exec<S> ex, ValidateBags const& c) {
  GPUPS_ASSERT(c.bad_offsets.size() == c.parts.size());
  ex.arena->blocks(c.parts.size(), [&](std::size_t p) {
    BagPart const& b = c.parts[p];
    GPUPS_ASSERT(!b.offsets.empty() && b.kept.size() == b.offsets.size());
    c.bad_offsets[p] = kNoRow;
    std::copy(b.offsets.begin(), b.offsets.end(), b.kept.begin());
    bool all = true;
    for (std::size_t i = 0; i < b.kept.size(); ++i) all &= is_right(b, i);
    for (std::uint32_t i = 0; !all && c.bad_offsets[p] == kNoRow; ++i) c.bad_offsets[p] = is_right(b, i) ? kNoRow : i;
    each(ex, all ? b.kept.size() - 1 : 0, [=](std::size_t bag) {
      std::fill(b.bag_of.data() + b.kept[bag], b.bag_of.data() + b.kept[bag + 1], static_cast<std::uint32_t>(bag));
    });
  });
}
#endif

GPUPS_KERNEL(validate_bags, ValidateBags)

}  // namespace gpups::kernels
