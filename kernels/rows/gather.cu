// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/gather.hpp"

#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/rows/copy_row_lists.hpp"

namespace gpups::kernels {

struct GatherOfAll {
  std::span<Gather const> parts;
};

template <Space S>
void run(Exec<S> ex, GatherOfAll const& all) {
  std::vector<CopiedRows<TableRows<float const>, MatrixRows<float>>> copied;
  for (auto const& g : all.parts) {
    GPUPS_ASSERT(g.out.rows() >= g.ids.size() && g.out.stride() <= g.rows.stride);
    copied.push_back(copied_rows(TableRows<float const>{g.rows, g.ids}, MatrixRows<float>{g.out}, g.ids.size(),
                                 {g.out.stride(), g.out.stride()}));
  }
  copy_row_lists(ex, std::move(copied));
}

GPUPS_KERNEL(gather_of_all, GatherOfAll)

#ifndef __CUDACC__
void gather(Stream& stream, std::span<Gather const> parts) { gather_of_all(stream, {parts}); }
#endif

}  // namespace gpups::kernels
