// SPDX-License-Identifier: Apache-2.0
// Ranks that join each other over the loopback interface, as threads of one process.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <string>
#include <vector>

#include "comm/bootstrap/join.hpp"
#include "gpups/error.hpp"
#include "tests/support/free_port.hpp"

namespace gpups::test {

// Returns a valid request of rank `rank` of `size`.
inline comm::JoinRequest request_of(int rank, int size, int port) {
  comm::JoinRequest request;
  request.launch = {.kind = comm::LaunchEnvironment::Kind::kEnvironment,
                    .rank = Rank{static_cast<std::uint32_t>(rank)},
                    .size = size,
                    .hosts = {"127.0.0.1"},
                    .port = port,
                    .token = "the token of the tests"};
  request.mine = {.host = "host" + std::to_string(rank),
                  .machine = "machine",
                  .pid = 1000 + rank,
                  .address = std::string("\0address", 8) + std::to_string(rank),
                  .cores = "0-1"};
  request.version = "1.0";
  request.must_match = {{"model.dim", "100"}, {"data", "sha256:abc"}};
  request.broadcast_data = "data of rank " + std::to_string(rank);
  request.timeout_s = 60;
  return request;
}

// The result of one rank's join.
struct Outcome {
  comm::JoinResult joined{};
  std::string error{};
};

inline std::future<Outcome> start_join(comm::JoinRequest request) {
  return std::async(std::launch::async, [request = std::move(request)] {
    Outcome outcome;
    try {
      outcome.joined = comm::wait_join(request);
    } catch (Error const& error) {
      outcome.error = error.what();
    }
    return outcome;
  });
}

// Joins all ranks at once. `change` may modify the requests.
inline std::vector<Outcome> join_all(int size, std::function<void(int, comm::JoinRequest&)> const& change = {}) {
  int const port = free_port();
  std::vector<std::future<Outcome>> running;
  for (int rank = 0; rank < size; ++rank) {
    comm::JoinRequest request = request_of(rank, size, port);
    if (change) change(rank, request);
    running.push_back(start_join(std::move(request)));
  }
  std::vector<Outcome> outcomes;
  for (auto& rank : running) outcomes.push_back(rank.get());
  return outcomes;
}

}  // namespace gpups::test
