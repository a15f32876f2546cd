// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/allreduce/dense.hpp"

namespace gpups::comm {

CoTask<> allreduce_by_fabric(Communicator& comm, DenseAllreduce sum) {
  co_await comm.fabric_allreduce(sum.terms, sum.values, sum.keep);
}

}  // namespace gpups::comm
