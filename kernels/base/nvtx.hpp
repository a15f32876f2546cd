// SPDX-License-Identifier: Apache-2.0
// Marks ranges of work for profilers that read NVTX. Costs nothing without a profiler, and in builds without CUDA.
#pragma once

#include "kernels/base/build_config.hpp"

#if GPUPS_HAS_CUDA
#include <nvtx3/nvToolsExt.h>
#endif

namespace gpups::kernels {

// A named range of work, from construction to destruction.
class NvtxRange {
 public:
#if GPUPS_HAS_CUDA
  explicit NvtxRange(char const* name) { nvtxRangePushA(name); }
  ~NvtxRange() { nvtxRangePop(); }
#else
  explicit NvtxRange(char const*) {}
  ~NvtxRange() {}  // not trivial, so that compilers do not report an unused variable
#endif
  NvtxRange(NvtxRange const&) = delete;
  NvtxRange& operator=(NvtxRange const&) = delete;
};

}  // namespace gpups::kernels
