// SPDX-License-Identifier: Apache-2.0
// All bulk transports that can join ranks of one process, for the tests that each has to pass.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bulk/bulk_transport.hpp"

namespace gpups::comm {

struct BulkTransportFactory {
  std::string_view name;
  // Why there can be none between so many ranks here; empty: there can.
  std::string (*lacks)(int ranks);
  // Connected ends, in rank order.
  std::vector<std::unique_ptr<BulkTransport>> (*make)(int ranks);
};

std::span<BulkTransportFactory const> all_bulk_transports();

}  // namespace gpups::comm
