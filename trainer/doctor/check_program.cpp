// SPDX-License-Identifier: Apache-2.0
// Is the program what it should be, with the libraries that it was built for?
#include <fmt/format.h>

#include "trainer/doctor/checks.hpp"

namespace gpups::trainer {

Findings check_versions(Facts const& facts) {
  ProgramFacts const& p = facts.program;
  auto const part = [](char const* name, bool in) { return fmt::format("{}{}", in ? "" : "no ", name); };
  Findings found{ok(fmt::format(
      "gpups {} for {}, built with {}, {}, {}, {}", p.version, p.host_arch.empty() ? "any host" : p.host_arch,
      part("CUDA", !p.cuda_architectures.empty()), p.ucx_header.empty() ? "no UCX" : "UCX " + p.ucx_header,
      part("PMIx", p.pmix), part("hwloc", p.hwloc)))};
  if (p.ucx_header != p.ucx_library) {
    found.push_back(
        warning(fmt::format("the UCX library is {}, the program was built for {} (functions may differ): "
                            "build it again here, or check LD_LIBRARY_PATH",
                            p.ucx_library, p.ucx_header)));
  }
  return found;
}

}  // namespace gpups::trainer
