// SPDX-License-Identifier: Apache-2.0
// Creates every kind of transport, and lists those that can connect ranks of one process, for conformance tests.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "comm/bootstrap/failure_detector.hpp"
#include "comm/transport/local_network.hpp"
#include "comm/transport/transport.hpp"
#include "comm/ucx/active_messages.hpp"

namespace gpups::comm {

// Creates the transports of ranks that are threads of one process, in rank order. Different threads may use and destroy
// them; a transport that is destroyed before leave() reports its rank as failed. network: carries the messages; null:
// they arrive at once.
std::vector<std::unique_ptr<Transport>> make_local_transports(int ranks,
                                                              std::shared_ptr<LocalNetwork> network = nullptr);

// Creates the transport of a rank that is a process. Receivers return credits, so that the number of messages in flight
// is bounded. failure_detector: reports ranks that are lost; null: only ranks that leave in order are noticed.
std::unique_ptr<Transport> make_ucx_transport(std::shared_ptr<ActiveMessages> ucx,
                                              std::shared_ptr<FailureDetector> failure_detector);

// A kind of transport, for tests.
struct TransportFactory {
  std::string_view name;
  // Creates connected transports, in rank order.
  std::vector<std::unique_ptr<Transport>> (*make)(int ranks);
};

std::span<TransportFactory const> all_transports();

}  // namespace gpups::comm
