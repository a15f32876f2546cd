// SPDX-License-Identifier: Apache-2.0
// copy_rows() for the space that is being compiled. It runs at the speed of memory.
#pragma once

#ifdef __CUDACC__
#include "kernels/rows/copy_rows_device.hpp"
#else
#include "kernels/rows/copy_rows_host.hpp"
#endif
