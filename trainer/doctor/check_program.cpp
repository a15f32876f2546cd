// SPDX-License-Identifier: Apache-2.0
// Checks that the program uses the libraries that it was built with.
#include <fmt/format.h>

#include "trainer/doctor/checks.hpp"

namespace gpups::trainer {

Findings check_versions(Facts const& facts) {
  ProgramFacts const& p = facts.program;
  auto const part = [](char const* name, bool in) { return fmt::format("{}{}", in ? "" : "no ", name); };
  Findings found{ok(fmt::format(
      "gpups {} for {}, built with {}, {}, {}, {}", p.version, p.host_arch, part("CUDA", !p.cuda_architectures.empty()),
      p.ucx_header.empty() ? "no UCX" : "UCX " + p.ucx_header, part("PMIx", p.pmix), part("hwloc", p.hwloc)))};
  if (p.ucx_header != p.ucx_library) {
    found.push_back(
        warning(fmt::format("the UCX library is {}, and the program was built for {} (functions may differ): "
                            "rebuild the program on this machine, or check LD_LIBRARY_PATH",
                            p.ucx_library, p.ucx_header)));
  }
  return found;
}

}  // namespace gpups::trainer
