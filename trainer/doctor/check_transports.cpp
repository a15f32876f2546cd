// SPDX-License-Identifier: Apache-2.0
// Checks which transports and devices UCX can use on this machine.
#include <fmt/format.h>

#include <algorithm>

#include "trainer/doctor/checks.hpp"

namespace gpups::trainer {
namespace {

using Kind = TransportFacts::Resource::Kind;

// Appends a text such as "shared memory by cma, posix" if there are resources of this kind.
void add_kind(std::string& text, std::vector<TransportFacts::Resource> const& resources, Kind kind, char const* words) {
  std::vector<std::string> names;
  for (TransportFacts::Resource const& way : resources) {
    if (way.kind != kind) continue;
    std::string name = kind == Kind::kNetwork ? fmt::format("{} ({})", way.device, way.name) : way.name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  if (!names.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : "; ", words, fmt::join(names, ", "));
}

bool only_loopback(std::vector<TransportFacts::Resource> const& resources) {
  return std::none_of(resources.begin(), resources.end(), [](TransportFacts::Resource const& way) {
    return way.kind == Kind::kNetwork && way.device != "lo";
  });
}

}  // namespace

Findings check_transports(Facts const& facts) {
  if (facts.program.ucx_header.empty()) {
    if (facts.rendezvous.size == 1) return {ok("this build has no UCX: ranks are threads of one process")};
    return {
        problem("this build has no UCX (ranks can only be threads of one process): install libucx-dev and rebuild")};
  }
  auto const& resources = facts.transport.resources;
  std::string text;
  add_kind(text, resources, Kind::kNetwork, "networks");
  add_kind(text, resources, Kind::kSharedMemory, "shared memory by");
  add_kind(text, resources, Kind::kDevice, "device memory by");
  Findings found{ok(fmt::format("UCX can use {}", text.empty() ? "no transport between processes" : text))};
  if (!facts.transport.wanted_transports.empty()) {
    found.push_back(ok(fmt::format("UCX_TLS restricts UCX to {}", facts.transport.wanted_transports)));
  }
  if (only_loopback(resources)) {
    found.push_back(
        warning("UCX finds no network except the loopback interface (it cannot reach ranks of other machines): "
                "enable a network interface, or start the container with --network=host"));
  }
  return found;
}

Findings check_wanted_devices(Facts const& facts) {
  Findings found;
  std::string const& wanted = facts.transport.wanted_devices;
  if (facts.program.ucx_header.empty() || wanted.empty() || wanted == "all" || wanted[0] == '^') return found;
  std::string there;
  for (TransportFacts::Resource const& way : facts.transport.resources) {
    if (way.kind == Kind::kNetwork) there += fmt::format("{}{}", there.empty() ? "" : ", ", way.device);
  }
  for (std::size_t at = 0, end = 0; at < wanted.size(); at = end + 1) {
    end = std::min(wanted.find(',', at), wanted.size());
    std::string const name = wanted.substr(at, end - at);
    bool const is_there = std::any_of(facts.transport.resources.begin(), facts.transport.resources.end(),
                                      [&](TransportFacts::Resource const& way) { return way.device == name; });
    if (is_there) continue;
    found.push_back(warning(
        fmt::format("UCX_NET_DEVICES contains {} (it is not a device of this machine, which has {}): correct it, or "
                    "unset it",
                    name, there.empty() ? "none" : there)));
  }
  return found;
}

}  // namespace gpups::trainer
