// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/together.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "comm/group_impl.hpp"
#include "comm/peer_text.hpp"
#include "comm/probe.hpp"
#include "comm/talk.hpp"
#include "tools/doctor/compare.hpp"
#include "tools/standard_streams.hpp"
#include "trainer/doctor/checks.hpp"
#include "trainer/doctor/report.hpp"
#include "trainer/progress.hpp"

namespace gpups::tools {
namespace {

using trainer::Findings;

constexpr double kTimeoutLeast_s = 10;  // a new file of rank 0's is waited for half as long

void measure(comm::Talk& talk, Group const& group, std::string const& device, Findings& mine) {
  Stream stream(device_from(device.empty() ? "auto" : device, group.place().local_rank), 1);
  auto const speeds = comm::wait_probe(talk, *group.impl().payload, stream);
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    auto const rate = [](double bytes_per_s) { return trainer::short_bytes(static_cast<std::uint64_t>(bytes_per_s)); };
    mine.push_back(trainer::ok(fmt::format(
        "from rank 0 to rank {}: {:.1f} us for a message, {}/s in messages, {}/s in "
        "bulk",
        i + 1, speeds[i].latency_us, rate(speeds[i].messages_bytes_per_s), rate(speeds[i].payloads_bytes_per_s))));
  }
}

// Rank 0 prints what all have found; all learn whether there is a problem. before: there was one that rank 0 has
// printed.
int report(comm::Talk& talk, Findings const& mine, bool before) {
  auto const packed = talk.wait_gather(trainer::packed(mine));
  int status = before ? 2 : 0;
  if (talk.rank() == 0) {
    std::vector<Findings> all;
    std::string text;
    for (std::string const& one : packed) {
      all.push_back(trainer::unpacked(one));
      for (trainer::Finding& finding : all.back()) finding.text = comm::peer_text(finding.text);
    }
    for (trainer::Shared const& shared : trainer::merged(all)) {
      text += trainer::line_of(shared.finding, ranks_text(shared.ranks)) + "\n";
      if (shared.finding.level == trainer::Finding::Level::kProblem) status = 2;
    }
    print_result(text);
  }
  return talk.wait_tell(fmt::to_string(status)) == "0" ? 0 : 2;
}

}  // namespace

int wait_examine_together(trainer::Facts facts, Findings mine, bool problem_before) {
  JoinOptions options;
  if (facts.run) {
    options.join_timeout_s = facts.run->join_timeout_s;
    options.peer_timeout_s = facts.run->peer_timeout_s;
  }
  Group const group = Group::join(options);
  double const timeout_s = std::max(options.peer_timeout_s, kTimeoutLeast_s);
  comm::Talk talk(*group.impl().transport, timeout_s);
  Place const& place = group.place();
  facts.place = {place.host, place.cores, place.local_rank, place.local_ranks, group.impl().cores_shared_by};
  for (trainer::Finding& finding : trainer::check_place(facts)) mine.push_back(std::move(finding));
  wait_compare_settings(talk, facts.run, mine);
  wait_compare_data(talk, facts.run, mine);
  wait_compare_folder(talk, facts.run ? facts.run->folder : "", mine);
  // The last rank waits for its turn to be measured as long as all others take.
  if (talk.rank() != 0) talk.set_timeout(timeout_s + 5.0 * group.size());
  measure(talk, group, facts.run ? facts.run->device : "", mine);
  int const status = report(talk, mine, problem_before);
  group.impl().transport->leave();
  return status;
}

}  // namespace gpups::tools
