// SPDX-License-Identifier: Apache-2.0
// By which ways can UCX carry data here?
#include <fmt/format.h>

#include <algorithm>

#include "trainer/doctor/checks.hpp"

namespace gpups::trainer {
namespace {

using Kind = TransportFacts::Way::Kind;

// "shared memory by cma, posix", or nothing.
void add_kind(std::string& text, std::vector<TransportFacts::Way> const& ways, Kind kind, char const* words) {
  std::vector<std::string> names;
  for (TransportFacts::Way const& way : ways) {
    if (way.kind != kind) continue;
    std::string name = kind == Kind::kNetwork ? fmt::format("{} ({})", way.device, way.name) : way.name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  if (!names.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : "; ", words, fmt::join(names, ", "));
}

bool only_loopback(std::vector<TransportFacts::Way> const& ways) {
  return std::none_of(ways.begin(), ways.end(),
                      [](TransportFacts::Way const& way) { return way.kind == Kind::kNetwork && way.device != "lo"; });
}

}  // namespace

Findings check_transports(Facts const& facts) {
  if (facts.program.ucx_header.empty()) {
    std::string const what = "this build has no UCX (ranks can be threads of one process only): ";
    if (facts.meeting.size == 1) return {ok("this build has no UCX: ranks are threads of one process")};
    return {problem(what + "build with libucx-dev installed")};
  }
  auto const& ways = facts.transport.ways;
  std::string text;
  add_kind(text, ways, Kind::kNetwork, "networks");
  add_kind(text, ways, Kind::kSharedMemory, "shared memory by");
  add_kind(text, ways, Kind::kDevice, "device memory by");
  Findings found{ok(fmt::format("UCX offers {}", text.empty() ? "nothing between processes" : text))};
  if (!facts.transport.wanted_ways.empty()) {
    found.push_back(ok(fmt::format("UCX_TLS lets it use {}", facts.transport.wanted_ways)));
  }
  if (only_loopback(ways)) {
    found.push_back(
        warning("UCX sees no network but the loopback interface (ranks of other machines cannot be reached): "
                "bring a network interface up, or start the container with --network=host"));
  }
  return found;
}

Findings check_wanted_devices(Facts const& facts) {
  Findings found;
  std::string const& wanted = facts.transport.wanted_devices;
  if (facts.program.ucx_header.empty() || wanted.empty() || wanted == "all" || wanted[0] == '^') return found;
  std::string there;
  for (TransportFacts::Way const& way : facts.transport.ways) {
    if (way.kind == Kind::kNetwork) there += fmt::format("{}{}", there.empty() ? "" : ", ", way.device);
  }
  for (std::size_t at = 0, end = 0; at < wanted.size(); at = end + 1) {
    end = std::min(wanted.find(',', at), wanted.size());
    std::string const name = wanted.substr(at, end - at);
    bool const is_there = std::any_of(facts.transport.ways.begin(), facts.transport.ways.end(),
                                      [&](TransportFacts::Way const& way) { return way.device == name; });
    if (is_there) continue;
    found.push_back(warning(fmt::format("UCX_NET_DEVICES names {} (it is not here: {} are): correct it, or unset it",
                                        name, there.empty() ? "none" : there)));
  }
  return found;
}

}  // namespace gpups::trainer
