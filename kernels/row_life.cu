// SPDX-License-Identifier: Apache-2.0
#include "kernels/row_life.hpp"

#include "kernels/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, RowsExist const& r) {
  each(ex, r.ids.size(), [r] GPUPS_FN(std::size_t i) {
    bool const exists = r.ids[i] != kNoRow && *r.life.row(r.ids[i]) != 0;
    if (!exists) r.ids[i] = kNoRow;
    if (!r.found.empty()) r.found[i] = exists ? 1 : 0;
  });
}

template <Space S>
void run(Exec<S> ex, BeginRows const& b) {
  each(ex, b.ids.size(), [b] GPUPS_FN(std::size_t i) {
    auto& life = *b.life.row(b.ids[i]);
    if (life == 0) life = 1;
  });
}

GPUPS_KERNEL(rows_exist, RowsExist)
GPUPS_KERNEL(begin_rows, BeginRows)

}  // namespace gpups::kernels
