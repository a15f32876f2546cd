// SPDX-License-Identifier: Apache-2.0
#include "comm/group/processes.hpp"

#include <fmt/core.h>

#include <chrono>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <utility>

#include "comm/cluster/cores.hpp"
#include "comm/cluster/overheard.hpp"
#include "comm/nccl/join.hpp"
#include "comm/payload/ucx.hpp"
#include "comm/peer_lost.hpp"
#include "comm/talk.hpp"
#include "comm/transport/resumed.hpp"
#include "comm/transport/ucx.hpp"
#include "comm/turner/threaded.hpp"

namespace gpups::comm {
namespace {

struct Processes final : Group::Impl {
  std::shared_ptr<UcxLink> link;
  std::shared_ptr<Overheard> watch;

  void on_lost(std::function<void(Rank, std::string const&)> lost) override {
    on_lost_ = std::move(lost);
    listen();
  }

  std::string wait_connect_devices(Device device, ConnectOptions const& options) override {
    constexpr double kNcclTimeout_s = 120;
    Talk talk(*transport, options.timeout_s);
    auto agreed = wait_nccl_lane(talk, device, options.nccl, kNcclTimeout_s);
    lane_ = std::move(agreed.lane);
    if (lane_ != nullptr) {
      payload.reset();  // before the other takes what arrives
      payload = make_ucx_payload(link, lane_);
      listen();
    }
    talk.wait_say_to_all({});  // nobody sends data before all have done so
    if (auto rest = talk.take_rest(); !rest.empty()) {
      transport = std::make_unique<Resumed>(std::move(transport), std::move(rest));
    }
    if (lane_ != nullptr) return "NCCL";
    if (agreed.why_not.empty()) return {};
    return fmt::format("UCX, in pieces through the host where it reaches no GPU; not NCCL, since {}", agreed.why_not);
  }

  // What this rank has sent last has to arrive, so it stays until the others have left too, or are lost.
  ~Processes() override {
    end();
    if (std::uncaught_exceptions() > 0) transport->fail(transport->rank(), "it stopped with an error of its own");
    transport->leave();
    turner.reset();
    payload.reset();
    if (ended_well()) {
      constexpr double kBetweenLooks_s = 0.001;
      while (!watch->wait_all_gone(kBetweenLooks_s) && ended_well()) link->progress();
    } else {
      link->abandon();
      // What goes with this rank, such as a run's empty folder, is there until the others know why.
      constexpr double kTell_s = 0.5;
      (void)watch->wait_all_gone(kTell_s);
    }
    transport.reset();
  }

  // A rank that is lost never takes part in what NCCL waits for.
  void listen() {
    if (lane_ == nullptr) return watch->on_lost(on_lost_);
    watch->on_lost([lane = lane_, lost = on_lost_](Rank rank, std::string const& why) {
      lane->abort();
      if (lost) lost(rank, why);
    });
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

 private:
  std::function<void(Rank, std::string const&)> on_lost_;
  std::shared_ptr<Lane> lane_;
};

// The first rank that the watch takes for lost, if it does so soon.
std::optional<PeerLost> wait_loss(Watch& watch) {
  constexpr std::chrono::seconds kSoon(1);
  std::promise<PeerLost> told;
  std::once_flag once;
  watch.listen(
      {.lost = [&](Rank rank,
                   std::string const& why) { std::call_once(once, [&] { told.set_value(PeerLost(rank, why)); }); },
       .left = {}});
  auto loss = told.get_future();
  bool const is_told = loss.wait_for(kSoon) == std::future_status::ready;
  watch.listen({});
  return is_told ? std::optional(loss.get()) : std::nullopt;
}

// Nobody can be reached who ends meanwhile: then that is the error which is told, and this rank is not at fault.
void wait_connect(UcxLink& link, Rank me, Joined const& joined) {
  std::vector<UcxLink::Peer> peers;
  for (std::size_t rank = 0; rank < joined.members.size(); ++rank) {
    Member const& member = joined.members[rank];
    peers.push_back({.address = member.address,
                     .same_machine = member.machine == joined.members[number(me)].machine,
                     .key = joined.keys[rank]});
  }
  try {
    link.connect(me, joined.session, peers);
  } catch (Error const& error) {
    link.abandon();
    auto const loss = wait_loss(*joined.watch);
    joined.watch->leave(loss ? loss->peer() : me, loss ? loss->why() : error.what());
    if (loss) throw *loss;
    throw;
  }
}

}  // namespace

std::shared_ptr<Group::Impl> group_of_processes(Rank me, std::unique_ptr<UcxLink> link, Joined joined) {
  wait_connect(*link, me, joined);
  auto impl = std::make_shared<Processes>();
  impl->link = std::move(link);
  impl->watch = std::make_shared<Overheard>(std::move(joined.watch));
  impl->announcement = std::move(joined.announcement);
  impl->transport = make_ucx_transport(impl->link, impl->watch);
  impl->payload = make_ucx_payload(impl->link);
  impl->turner = make_threaded_turner([link = impl->link] { return link->make_bell(); },
                                      [of = impl.get()] { return share_size(of->cores_shared_by); });
  return impl;
}

}  // namespace gpups::comm
