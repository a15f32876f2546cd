// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "gpups/device.hpp"
#include "gpups/error.hpp"
#include "tools/doctor/facts.hpp"
#include "tools/doctor/joint_checks.hpp"
#include "tools/standard_streams.hpp"
#include "trainer/doctor/checks.hpp"
#include "trainer/doctor/report.hpp"
#include "trainer/doctor/run_probe.hpp"

namespace gpups::tools {
namespace {

using trainer::Finding;

// Returns the number in "cuda:1"; for other text, that of the device that `auto` selects.
int device_index(std::string const& device, int local_rank) {
  int index = 0;
  if (device.starts_with("cuda:")) {
    std::from_chars(device.data() + 5, device.data() + device.size(), index);
    return index;
  }
  return local_rank % std::max(1, cuda_device_count());
}

// Prints the findings of one rank that is alone, or not connected to the others.
void print_own(trainer::Findings const& findings, trainer::RendezvousFacts const& meeting) {
  std::string text, whose = meeting.launcher.empty() ? "" : fmt::format("rank {}", meeting.rank);
  for (Finding const& finding : findings) text += trainer::line_of(finding, whose) + "\n";
  print_result(text);
}

// Prints the last line. Returns the exit status.
int print_verdict(Finding::Level worst) {
  print_result(trainer::line_of(trainer::verdict(worst)) + "\n");
  return worst == Finding::Level::kProblem ? 2 : 0;
}

}  // namespace

int wait_doctor(CommandLine const& line) {
  trainer::Facts facts{.program = read_program(), .machine = read_machine()};
  facts.rendezvous = read_rendezvous();
  facts.transport = read_transports();
  int const local_rank = facts.rendezvous.local_rank.value_or(facts.rendezvous.rank);
  trainer::RunProbe run;
  if (!line.config.empty()) {
    run = trainer::probe_run(line.config, line.overrides, facts.rendezvous.rank, local_rank);
    facts.run = run.facts;
  }
  facts.gpu = read_gpus(device_index(run.facts.device, local_rank));

  trainer::Findings findings = trainer::run_checks(facts);
  Finding::Level const before = trainer::worst_of(findings);
  if (facts.rendezvous.launcher.empty() || !trainer::can_join(facts)) {
    print_own(findings, facts.rendezvous);
    return print_verdict(before);
  }
  if (facts.rendezvous.rank == 0) {
    // Printed before joining the other ranks, which may never start.
    print_own(findings, facts.rendezvous);
    findings.clear();
  }
  try {
    return wait_joint_checks(facts, findings, before);
  } catch (Error const& error) {
    findings.push_back(trainer::problem(error.what()));
    print_own(findings, facts.rendezvous);
    return print_verdict(Finding::Level::kProblem);
  }
}

}  // namespace gpups::tools
