// SPDX-License-Identifier: Apache-2.0
#include "kernels/row_life.hpp"

#include "kernels/assert.hpp"
#include "kernels/atomic.hpp"
#include "kernels/launch.hpp"
#include "kernels/life.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, RowsExist const& r) {
  each(ex, r.ids.size(), [r] GPUPS_FN(std::size_t i) {
    bool const found = r.ids[i] != kNoRow && exists(*r.life.row(r.ids[i]));
    if (!found) r.ids[i] = kNoRow;
    if (!r.found.empty()) r.found[i] = found ? 1 : 0;
  });
}

template <Space S>
void run(Exec<S> ex, BeginRows const& b) {
  each(ex, b.ids.size(), [b] GPUPS_FN(std::size_t i) {
    std::uint32_t* const life = b.life.row(b.ids[i]);
    if (!exists(life[0])) life[0] = 1;
    life[1] = b.step;
  });
}

template <Space S>
void run(Exec<S> ex, SightRows const& s) {
  GPUPS_ASSERT(s.counts.empty() ? s.offsets.size() == s.ids.size() + 1 : s.counts.size() >= s.ids.size());
  each(ex, s.ids.size(), [s] GPUPS_FN(std::size_t i) {
    std::uint32_t* const life = s.life.row(s.ids[i]);
    if (exists(life[0])) return;
    auto const more = s.counts.empty() ? s.offsets[i + 1] - s.offsets[i] : static_cast<std::uint32_t>(s.counts[i]);
    life[0] = after_sightings(life[0], more);
    life[1] = s.step;
  });
}

template <Space S>
void run(Exec<S> ex, EndRows const& e) {
  each(ex, e.ids.size(), [e] GPUPS_FN(std::size_t i) {
    if (e.ids[i] != kNoRow) *e.life.row(e.ids[i]) = 0;
  });
}

template <Space S>
void run(Exec<S> ex, ExpireRows const& e) {
  each(ex, e.rows, [e] GPUPS_FN(std::size_t i) {
    std::uint32_t* const life = e.life.row(static_cast<std::uint32_t>(i));
    if (life[0] == 0 || e.now - life[1] <= e.age) return;
    if (exists(life[0])) atomic_add(&e.existing[0], 1);
    life[0] = 0;
  });
}

GPUPS_KERNEL(rows_exist, RowsExist)
GPUPS_KERNEL(begin_rows, BeginRows)
GPUPS_KERNEL(sight_rows, SightRows)
GPUPS_KERNEL(end_rows, EndRows)
GPUPS_KERNEL(expire_rows, ExpireRows)

}  // namespace gpups::kernels
