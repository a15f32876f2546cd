// SPDX-License-Identifier: Apache-2.0
// Sums the gradients of rows and updates each row at once, for rows whose gradients no other rank adds to. The bits are
// those of sum_gradients() and then update_rows(), but sums are not written and read (16 * dim bytes per row).
#pragma once

#include "kernels/sum/sum_gradients.hpp"
#include "kernels/update/update_rows.hpp"

namespace gpups::kernels {

struct SumAndUpdate {
  SumGradients gradients;  // row r is for update.ids[r]; of `sums`, only dim and stride are used
  UpdateRows update;       // `sums` is not used
};

// Returns whether rows of this width can be updated so: on the host, if the sums of a row fit a buffer in the
// first-level cache.
bool can_sum_and_update(Device device, std::size_t dim);

// Sums and updates. REQUIRES: can_sum_and_update(); all contributions are valid and all sums fit int64, see
// has_sums_within().
void sum_and_update(Stream& stream, SumAndUpdate const& arguments);

// Returns the largest absolute value of all elements, or infinity if one is not finite. Waits for `stream`. REQUIRES: a
// host stream.
float wait_max_abs(Stream& stream, MatrixView<float const> const& rows);

// Returns a bound of the magnitude of a contribution, which is a coefficient times a source, in units of the grid. The
// arguments are results of wait_max_abs().
double contribution_max(float coefficient_max_abs, float source_max_abs, int grid_log2);

// Returns whether no sum of `entries` contributions within this bound can leave int64.
bool has_sums_within(std::size_t entries, double contribution_max);

}  // namespace gpups::kernels
