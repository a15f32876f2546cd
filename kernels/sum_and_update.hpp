// SPDX-License-Identifier: Apache-2.0
// Sums the gradients of rows and updates each at once, where no other rank adds to them: the same bits as
// sum_gradients() and then update_rows(), without writing and reading the sums (16 * dim bytes per row).
#pragma once

#include "kernels/sum_gradients.hpp"
#include "kernels/update_rows.hpp"

namespace gpups::kernels {

struct SumAndUpdate {
  SumGradients gradients;  // row r's is for update.ids[r]; `sums` says dim and stride only, its data is not used
  UpdateRows update;       // `sums` is not used
};

// Whether rows of this width can be updated so: on the host, where a row's sums fit a buffer in the first cache.
bool can_sum_and_update(Device device, std::size_t dim);

// REQUIRES: can_sum_and_update(), and no contribution or sum is a fault: see has_sums_within().
void sum_and_update(Stream& stream, SumAndUpdate const& arguments);

// The largest absolute value among the elements, or infinity where one is not finite. Waits for `stream`.
float wait_max_abs(Stream& stream, MatrixView<float const> rows);

// How far from 0 a contribution can be, a coefficient times a source, in units of the grid. max_abs as above.
double contribution_max(float coefficient_max_abs, float source_max_abs, int grid_log2);

// True if sums of `entries` such contributions cannot leave int64: what can be said without looking at each sum.
bool has_sums_within(std::size_t entries, double contribution_max);

}  // namespace gpups::kernels
