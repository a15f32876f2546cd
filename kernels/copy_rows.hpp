// SPDX-License-Identifier: Apache-2.0
// copy_rows(), at the speed of memory, for the space that is compiled.
#pragma once

#ifdef __CUDACC__
#include "kernels/copy_rows_device.hpp"
#else
#include "kernels/copy_rows_host.hpp"
#endif
