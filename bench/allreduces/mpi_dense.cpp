// SPDX-License-Identifier: Apache-2.0
// MPI_Allreduce of all elements: the reference for all other ways.
#include <mpi.h>

#include "bench/allreduces/way.hpp"

namespace gpups::bench {
namespace {

class MpiDense final : public Way {
 public:
  MpiDense(Input const& input, View<float> sums) : input_(input), sums_(sums) {}

  void wait_sum() override {
    MPI_Allreduce(input_.dense.data(), sums_.data(), static_cast<int>(sums_.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  }
  Result result() override { return {sums_}; }

 private:
  Input const& input_;
  View<float> sums_;
};

}  // namespace

std::unique_ptr<Way> make_mpi_dense(Job const&, Input const& input, View<float> sums) {
  return std::make_unique<MpiDense>(input, sums);
}

}  // namespace gpups::bench
