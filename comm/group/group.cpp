// SPDX-License-Identifier: Apache-2.0
#include "gpups/group.hpp"

#include <utility>

#include "comm/group_impl.hpp"

namespace gpups {

Group::Group(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Rank Group::rank() const { return impl_->transport->rank(); }
int Group::size() const { return impl_->transport->size(); }
Place const& Group::place() const { return impl_->place; }
std::string const& Group::announcement() const { return impl_->announcement; }

}  // namespace gpups
