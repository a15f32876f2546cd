// SPDX-License-Identifier: Apache-2.0
// Checks that this configuration can be trained on this machine.
#include <fmt/format.h>

#include <algorithm>

#include "trainer/base/progress_reporter.hpp"
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

Findings check_run(Facts const& facts) {
  Findings found;
  if (!facts.run) return found;
  RunFacts const& run = *facts.run;
  for (std::string const& error : run.errors) found.push_back(problem(error));
  for (std::string const& notice : run.notices) found.push_back(note(notice));
  if (!run.data.empty()) found.push_back(ok(run.data));
  if (!run.device.empty()) found.push_back(ok(fmt::format("{} trains on {}", run.config, run.device)));
  if (!facts.rendezvous.launcher.empty() && run.ranks > 1) {
    found.push_back(
        problem(fmt::format("run.ranks is {}, but a launcher has started the processes (each process is one rank): "
                            "remove run.ranks",
                            run.ranks)));
  }
  return found;
}

Findings check_room(Facts const& facts) {
  if (!facts.run || facts.run->folder.empty() || facts.run->table_bytes == 0) return {};
  RunFacts const& run = *facts.run;
  std::string const rows = short_bytes(run.table_bytes), free = short_bytes(run.folder_free_bytes);
  // A checkpoint replaces the previous one when it is complete.
  std::uint64_t const needed = 2 * run.table_bytes;
  if (run.folder_free_bytes < run.table_bytes) {
    return {
        problem(fmt::format("{} has {} free (a checkpoint needs {}): free some disk space, or choose another folder "
                            "with --run",
                            run.folder, free, rows))};
  }
  if (run.folder_free_bytes < needed) {
    return {warning(
        fmt::format("{} has {} free (a checkpoint needs {}, and the previous one is kept until it is complete): "
                    "free some disk space, or choose another folder with --run",
                    run.folder, free, rows))};
  }
  Findings found{ok(fmt::format("{} is writable and has {} free, a checkpoint needs {}", run.folder, free, rows))};
  std::uint64_t const share =
      run.table_bytes / static_cast<std::uint64_t>(std::max({facts.rendezvous.size, run.ranks, 1}));
  for (std::size_t i = 0; i < facts.gpu.gpus.size(); ++i) {
    GpuFacts::Gpu const& gpu = facts.gpu.gpus[i];
    if (run.device != fmt::format("cuda:{}", i) || gpu.bytes == 0 || share <= gpu.free_bytes) continue;
    found.push_back(
        problem(fmt::format("cuda:{} has {} free (the rows of a rank need {}): use more ranks, or smaller rows", i,
                            short_bytes(gpu.free_bytes), short_bytes(share))));
  }
  return found;
}

}  // namespace gpups::trainer
