// SPDX-License-Identifier: Apache-2.0
#include "tools/ranks.hpp"

#include <cstdlib>

#include "kernels/check.hpp"
#include "tools/last_resort.hpp"
#include "tools/standard_streams.hpp"

namespace gpups::tools {
namespace {

Group join(std::optional<trainer::Config> const& config, std::string const& announcement, std::string const& why) {
  JoinOptions options;
  // A rank without a configuration could not agree with the others on anything else.
  options.agreement.emplace_back("configuration", config ? "usable" : why);
  if (config) {
    for (auto& setting : trainer::settings_in_common(*config)) options.agreement.push_back(std::move(setting));
    options.join_timeout_s = config->cluster.join_timeout_s;
    options.peer_timeout_s = config->cluster.peer_timeout_s;
  }
  options.announcement = announcement;
  return Group::join(options);
}

}  // namespace

void Ranks::prepare(std::function<void()> const& work) {
  try {
    work();
  } catch (std::exception const& error) {
    if (!processes()) throw;
    failure_ = std::current_exception();
    why_ = error.what();
  }
}

void Ranks::run(std::optional<trainer::Config> const& config, std::string const& announcement,
                std::function<void(Group const&)> const& body) {
  if (!processes()) {
    auto const ranks = static_cast<int>(config->run.ranks);
    return run_ranks(ranks == 1 ? std::vector<Group>{Group::alone()} : Group::threads(ranks), body);
  }
  GPUPS_REQUIRE(!config || config->run.ranks == 1,
                "run.ranks is {} where {} processes were started (each of them is one rank): leave it out",
                config->run.ranks, launched_.ranks);
  std::optional<Group> group;
  try {
    group = join(config, announcement, why_);
  } catch (Error const&) {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    throw;
  }
  LastResort const last_resort(*group, [](std::string const& text) {
    print_error(text);
    std::_Exit(2);
  });
  run_ranks({*group}, [&](Group const& member) {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    body(member);
  });
}

}  // namespace gpups::tools
