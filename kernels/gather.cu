// SPDX-License-Identifier: Apache-2.0
#include "kernels/gather.hpp"

#include "kernels/assert.hpp"
#include "kernels/copy_rows.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, Gather const& g) {
  GPUPS_ASSERT(g.out.rows() >= g.ids.size() && g.out.stride() <= g.rows.stride);
  copy_rows(ex, g.ids.size(), {g.out.stride(), g.out.stride()}, TableRows<float const>{g.rows, g.ids},
            MatrixRows<float>{g.out});
}

GPUPS_KERNEL(gather, Gather)

}  // namespace gpups::kernels
