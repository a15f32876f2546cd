// SPDX-License-Identifier: Apache-2.0
// Names a stretch of work for profilers that read NVTX. Costs nothing without one, and in builds without CUDA.
#pragma once

#include "kernels/build_config.hpp"

#if GPUPS_HAS_CUDA
#include <nvtx3/nvToolsExt.h>
#endif

namespace gpups::kernels {

// From construction to destruction.
class NvtxRange {
 public:
#if GPUPS_HAS_CUDA
  explicit NvtxRange(char const* name) { nvtxRangePushA(name); }
  ~NvtxRange() { nvtxRangePop(); }
#else
  explicit NvtxRange(char const*) {}
  ~NvtxRange() {}  // not trivial, so that a range is never an unused variable
#endif
  NvtxRange(NvtxRange const&) = delete;
  NvtxRange& operator=(NvtxRange const&) = delete;
};

}  // namespace gpups::kernels
