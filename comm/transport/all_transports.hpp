// SPDX-License-Identifier: Apache-2.0
// All transports that can join ranks of one process, for the tests that each has to pass.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "comm/transport/transport.hpp"

namespace gpups::comm {

struct TransportFactory {
  std::string_view name;
  // Connected ends, in rank order.
  std::vector<std::unique_ptr<Transport>> (*make)(int ranks);
};

std::span<TransportFactory const> all_transports();

}  // namespace gpups::comm
