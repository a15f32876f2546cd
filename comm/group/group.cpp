// SPDX-License-Identifier: Apache-2.0
#include "gpups/group.hpp"

#include <utility>

#include "comm/group_impl.hpp"
#include "kernels/check.hpp"
#include "kernels/timeout.hpp"

namespace gpups {

Group::Group(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Rank Group::rank() const { return impl_->transport->rank(); }
int Group::size() const { return impl_->transport->size(); }
Place const& Group::place() const { return impl_->place; }
std::string const& Group::announcement() const { return impl_->announcement; }

std::string Group::wait_connect_devices(Device device, ConnectOptions const& options) const {
  GPUPS_REQUIRE(impl_->reducer == nullptr,
                "wait_connect_devices was called on a membership with a Store (its data go their ways already): make "
                "the Store later");
  kernels::require_timeout(options.timeout_s, "ConnectOptions::timeout_s");
  impl_->connected = device;
  return impl_->wait_connect_devices(device, options);
}

}  // namespace gpups
