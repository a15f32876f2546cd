// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/dense.hpp"

namespace gpups::comm {

Task<> sum_by_lane(Mesh& mesh, DenseSum sum) { co_await mesh.add_up(sum.terms, sum.values, sum.keep); }

}  // namespace gpups::comm
