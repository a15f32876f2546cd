// SPDX-License-Identifier: Apache-2.0
#include "gpups/group.hpp"

#include <cmath>
#include <exception>
#include <utility>

#include "comm/collectives/selection/selector.hpp"
#include "comm/group/group_impl.hpp"
#include "kernels/base/check.hpp"

namespace gpups {

Group::Group(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Rank Group::rank() const { return impl_->transport->rank(); }
int Group::size() const { return impl_->transport->size(); }
RankLocation const& Group::location() const { return impl_->location; }
std::string const& Group::broadcast_data() const { return impl_->broadcast_data; }

std::string Group::wait_connect_devices(Device device, ConnectOptions const& options) const {
  impl_->collective_device.check_connect();
  kernels::require_timeout(options.timeout_s, "ConnectOptions::timeout_s");
  impl_->collective_device.set_by_connect(device);
  return impl_->wait_connect_devices(device, options);
}

bool Group::sums_on_devices(Device device) const { return impl_->bulk->can_allreduce(device); }

void Group::set_wait_timeout_s(double seconds) const {
  GPUPS_REQUIRE(
      std::isfinite(seconds) && seconds > 0,
      "the wait timeout was set to {} s (no rank could answer in time, or a lost rank would go unnoticed): set "
      "a number of seconds above 0, such as 300",
      seconds);
  impl_->wait_timeout_s = seconds;
}

std::vector<std::string> Group::explain_allreduces() const {
  if (!impl_->has_engine()) return {};
  return impl_->collectives().wait_explain();
}

void Group::Impl::make_engine() {
  if (engine_ != nullptr) return;
  engine_ = std::make_unique<comm::ProgressEngine>(*transport, bulk, *driver);
  collectives_ = std::make_unique<comm::CollectiveChannel>(*engine_, transport->rank(), transport->size(),
                                                           kAllreducesMax, comm::make_selector(simulated));
}

comm::ProgressEngine& Group::Impl::engine() {
  std::lock_guard lock(making_);
  make_engine();
  return *engine_;
}

comm::CollectiveChannel& Group::Impl::collectives() {
  std::lock_guard lock(making_);
  make_engine();
  return *collectives_;
}

bool Group::Impl::has_engine() {
  std::lock_guard lock(making_);
  return engine_ != nullptr;
}

void Group::Impl::end() noexcept {
  bool const unused = engine_ == nullptr;
  if (unused && std::uncaught_exceptions() > 0) return;  // the code that catches the exception informs the other ranks
  try {
    engine().end(wait_limit());
  } catch (std::exception const&) {  // NOLINT: without memory for an engine no rank can be informed
  }
}

void Group::Impl::abandon() {
  if (engine_ != nullptr) engine_->abandon("an exception has ended its work");
}

}  // namespace gpups
