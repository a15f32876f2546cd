// SPDX-License-Identifier: Apache-2.0
#include "comm/group/connect_devices.hpp"

#include <fmt/core.h>

#include <chrono>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <utility>

#include "comm/base/peer_error.hpp"
#include "comm/bootstrap/core_affinity.hpp"
#include "comm/bootstrap/failure_detector.hpp"
#include "comm/bootstrap/join.hpp"
#include "comm/bulk/bulk_transport.hpp"
#include "comm/progress/progress_driver.hpp"
#include "comm/transport/transport.hpp"
#include "comm/ucx/worker.hpp"

namespace gpups::comm {
namespace {

struct ProcessGroup final : Group::Impl {
  std::shared_ptr<UcxWorker> ucx;
  std::shared_ptr<ForwardedFailures> failure_detector;

  void on_lost(std::function<void(Rank, std::string const&)> lost) override {
    on_lost_ = std::move(lost);
    subscribe();
  }

  std::string wait_connect_devices(Device device, ConnectOptions const& options) override {
    auto const agreed = wait_connect_fabric(*this, device, options, [&](std::shared_ptr<DeviceFabric> const& fabric) {
      fabric_ = fabric;
      bulk.reset();  // before the new one receives
      bulk = make_ucx_bulk_transport(ucx, fabric_);
      subscribe();
    });
    if (fabric_ != nullptr) return "NCCL";
    if (agreed.why_not.empty()) return {};
    return fmt::format("UCX, in chunks through the host if it does not reach GPUs; not NCCL, because {}",
                       agreed.why_not);
  }

  // The last messages of this rank must still arrive, so it stays until the other ranks have left or one is lost.
  ~ProcessGroup() override {
    end();
    if (std::uncaught_exceptions() > 0) transport->fail(transport->rank(), "it stopped with an error");
    transport->leave();
    driver.reset();
    bulk.reset();
    if (ended_well()) {
      constexpr double kPollInterval_s = 0.001;
      while (!failure_detector->wait_all_left(kPollInterval_s) && ended_well()) ucx->progress();
    } else {
      ucx->abandon();
      // Resources that end with this process, such as the empty folder of a run, exist until the other ranks know the
      // cause.
      constexpr double kReportGrace_s = 0.5;
      (void)failure_detector->wait_all_left(kReportGrace_s);
    }
    transport.reset();
  }

  // A lost rank does not take part in the collectives for which NCCL waits, so the loss of a rank aborts the fabric.
  void subscribe() {
    if (fabric_ == nullptr) return failure_detector->on_lost(on_lost_);
    failure_detector->on_lost([fabric = fabric_, lost = on_lost_](Rank rank, std::string const& why) {
      fabric->abort();
      if (lost) lost(rank, why);
    });
  }

  bool ended_well() {
    try {
      while (transport->receive()) {
      }
      return std::uncaught_exceptions() == 0;
    } catch (std::exception const&) {  // a rank is lost
      return false;
    }
  }

 private:
  std::function<void(Rank, std::string const&)> on_lost_;
  std::shared_ptr<DeviceFabric> fabric_;
};

// Returns the first rank that the failure detector reports as lost, if it does so within a second.
std::optional<PeerLost> wait_loss(FailureDetector& failure_detector) {
  constexpr std::chrono::seconds kReportTimeout(1);
  std::promise<PeerLost> report;
  std::once_flag once;
  failure_detector.subscribe(
      {.lost = [&](Rank rank,
                   std::string const& why) { std::call_once(once, [&] { report.set_value(PeerLost(rank, why)); }); },
       .left = {}});
  auto loss = report.get_future();
  bool const is_reported = loss.wait_for(kReportTimeout) == std::future_status::ready;
  failure_detector.subscribe({});
  return is_reported ? std::optional(loss.get()) : std::nullopt;
}

// Connects this rank to all ranks. A rank that is lost meanwhile cannot be reached: then the loss of that rank is the
// error that is thrown and reported, and not an error of this rank.
void wait_connect(UcxWorker& ucx, Rank me, JoinResult const& joined) {
  std::vector<UcxWorker::PeerAddress> peers;
  for (std::size_t rank = 0; rank < joined.members.size(); ++rank) {
    ProcessInfo const& member = joined.members[rank];
    peers.push_back({.address = member.address,
                     .same_machine = member.machine == joined.members[number(me)].machine,
                     .key = joined.keys[rank]});
  }
  try {
    ucx.connect(me, joined.session, peers);
  } catch (Error const& error) {
    ucx.abandon();
    auto const loss = wait_loss(*joined.failure_detector);
    joined.failure_detector->leave(loss ? loss->peer() : me, loss ? loss->why() : error.what());
    if (loss) throw *loss;
    throw;
  }
}

}  // namespace

std::shared_ptr<Group::Impl> make_process_group(Rank me, std::unique_ptr<UcxWorker> ucx, JoinResult joined) {
  wait_connect(*ucx, me, joined);
  auto impl = std::make_shared<ProcessGroup>();
  impl->ucx = std::move(ucx);
  impl->failure_detector = std::make_shared<ForwardedFailures>(std::move(joined.failure_detector));
  impl->broadcast_data = std::move(joined.broadcast_data);
  impl->transport = make_ucx_transport(impl->ucx, impl->failure_detector);
  impl->bulk = make_ucx_bulk_transport(impl->ucx);
  impl->driver = make_threaded_driver([ucx = impl->ucx] { return ucx->make_wakeup_event(); },
                                      [of = impl.get()] { return cores_per_rank(of->cores_shared_by); });
  return impl;
}

}  // namespace gpups::comm
