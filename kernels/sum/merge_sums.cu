// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum/merge_sums_body.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, MergeSums const& m) {
  add_sums(ex, m);
}

GPUPS_KERNEL(merge_sums, MergeSums)

}  // namespace gpups::kernels
