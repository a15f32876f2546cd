// SPDX-License-Identifier: Apache-2.0
#include "comm/group/processes.hpp"

#include <exception>
#include <utility>

#include "comm/cluster/overheard.hpp"
#include "comm/payload/ucx.hpp"
#include "comm/transport/ucx.hpp"
#include "comm/turner/threaded.hpp"

namespace gpups::comm {
namespace {

struct Processes final : Group::Impl {
  std::shared_ptr<UcxLink> link;
  std::shared_ptr<Overheard> watch;

  void on_lost(std::function<void(Rank, std::string const&)> lost) override { watch->on_lost(std::move(lost)); }

  // What this rank has sent last has to arrive, so it stays until the others have left too, or are lost.
  ~Processes() override {
    if (std::uncaught_exceptions() > 0) transport->fail(transport->rank(), "it stopped with an error of its own");
    transport->leave();
    turner.reset();
    payload.reset();
    if (ended_well()) {
      constexpr double kBetweenLooks_s = 0.001;
      while (!watch->wait_all_gone(kBetweenLooks_s) && ended_well()) link->progress();
    } else {
      link->abandon();
    }
    transport.reset();
  }

  bool ended_well() {
    try {
      while (transport->receive()) {
      }
      return std::uncaught_exceptions() == 0;
    } catch (std::exception const&) {  // somebody is lost
      return false;
    }
  }
};

}  // namespace

std::shared_ptr<Group::Impl> group_of_processes(Rank me, std::unique_ptr<UcxLink> link, Joined joined) {
  auto impl = std::make_shared<Processes>();
  impl->link = std::move(link);
  impl->watch = std::make_shared<Overheard>(std::move(joined.watch));
  impl->announcement = std::move(joined.announcement);
  std::vector<UcxLink::Peer> peers;
  for (Member const& member : joined.members) {
    peers.push_back({member.address, member.machine == joined.members[number(me)].machine});
  }
  impl->link->connect(me, joined.session, peers);
  impl->transport = make_ucx_transport(impl->link, impl->watch);
  impl->payload = make_ucx_payload(impl->link);
  impl->turner = make_threaded_turner([link = impl->link] { return link->make_bell(); });
  return impl;
}

}  // namespace gpups::comm
