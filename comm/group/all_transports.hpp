// SPDX-License-Identifier: Apache-2.0
// Lists of all transports and bulk transports that can connect ranks of one process, for conformance tests.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/transport/transport.hpp"

namespace gpups::comm {

// A kind of transport, for tests.
struct TransportFactory {
  std::string_view name;
  // Creates connected transports, in rank order.
  std::vector<std::unique_ptr<Transport>> (*make)(int ranks);
};

std::span<TransportFactory const> all_transports();

// A kind of bulk transport, for tests.
struct BulkTransportFactory {
  std::string_view name;
  // Returns why this kind cannot connect so many ranks on this machine; empty if it can.
  std::string (*lacks)(int ranks);
  // Creates connected transports, in rank order.
  std::vector<std::unique_ptr<BulkTransport>> (*make)(int ranks);
};

std::span<BulkTransportFactory const> all_bulk_transports();

}  // namespace gpups::comm
