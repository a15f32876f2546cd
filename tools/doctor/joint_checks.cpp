// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/joint_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "comm/base/peer_error.hpp"
#include "comm/bulk/link_benchmark.hpp"
#include "comm/group/group_impl.hpp"
#include "comm/transport/control_channel.hpp"
#include "tools/doctor/compare.hpp"
#include "tools/standard_streams.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/doctor/checks.hpp"
#include "trainer/doctor/report.hpp"

namespace gpups::tools {
namespace {

using trainer::Findings;

constexpr double kTimeoutLeast_s = 10;  // twice the time that ranks wait for a new file of rank 0

// Measures the links from rank 0 to the others.
void measure(comm::ControlChannel& channel, Group const& group, std::string const& device, Findings& mine) {
  Stream stream(device_from(device.empty() ? "auto" : device, group.location().local_rank), 1);
  auto const speeds = comm::wait_benchmark_links(channel, *group.impl().bulk, stream);
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    auto const rate = [](double bytes_per_s) { return trainer::short_bytes(static_cast<std::uint64_t>(bytes_per_s)); };
    mine.push_back(trainer::ok(fmt::format(
        "from rank 0 to rank {}: {:.1f} us for a message, {}/s in messages, {}/s in "
        "bulk",
        i + 1, speeds[i].latency_us, rate(speeds[i].messages_bytes_per_s), rate(speeds[i].payloads_bytes_per_s))));
  }
}

// Prints the findings of all ranks on rank 0. Returns the exit status, the same on all ranks. worst: of what
// rank 0 has printed already.
int report(comm::ControlChannel& channel, Findings const& mine, trainer::Finding::Level worst) {
  auto const packed = channel.wait_gather_to_root(trainer::serialize(mine));
  if (channel.rank() == 0) {
    std::vector<Findings> all;
    std::string text;
    for (std::string const& one : packed) {
      all.push_back(trainer::deserialize(one));
      for (trainer::Finding& finding : all.back()) finding.text = comm::peer_text(finding.text);
    }
    for (trainer::SharedFinding const& shared : trainer::merged(all)) {
      text += trainer::line_of(shared.finding, ranks_text(shared.ranks)) + "\n";
      worst = std::max(worst, shared.finding.level);
    }
    print_result(text + trainer::line_of(trainer::verdict(worst)) + "\n");
  }
  std::string const status = worst == trainer::Finding::Level::kProblem ? "2" : "0";
  return channel.wait_broadcast(status) == "0" ? 0 : 2;
}

}  // namespace

int wait_joint_checks(trainer::Facts facts, Findings mine, trainer::Finding::Level worst_before) {
  JoinOptions options;
  if (facts.run) {
    options.join_timeout_s = facts.run->join_timeout_s;
    options.peer_timeout_s = facts.run->peer_timeout_s;
  }
  Group const group = Group::join(options);
  double const timeout_s = std::max(options.peer_timeout_s, kTimeoutLeast_s);
  comm::ControlChannel channel(*group.impl().transport, timeout_s);
  RankLocation const& place = group.location();
  facts.binding = {place.host, place.cores, place.local_rank, place.local_ranks, group.impl().cores_shared_by};
  for (trainer::Finding& finding : trainer::check_binding(facts)) mine.push_back(std::move(finding));
  wait_compare_settings(channel, facts.run, mine);
  wait_compare_data(channel, facts.run, mine);
  wait_compare_folder(channel, facts.run ? facts.run->folder : "", mine);
  // Links are measured one after the other, so the last rank waits until all others are done.
  if (channel.rank() != 0) channel.set_timeout(timeout_s + 5.0 * group.size());
  measure(channel, group, facts.run ? facts.run->device : "", mine);
  int const status = report(channel, mine, worst_before);
  group.impl().transport->leave();
  return status;
}

}  // namespace gpups::tools
