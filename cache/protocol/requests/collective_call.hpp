// SPDX-License-Identifier: Apache-2.0
// Collective calls: each rank does its local work and sends the result. If one rank fails, all ranks throw its error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cache/protocol/engine.hpp"
#include "comm/base/serialization.hpp"

namespace gpups::cache {

// How long a rank waits for the others: for StoreOptions::wait_timeout_s, or without a limit, if their work may take
// long, for example if they write files.
enum class Timeout { kDefault, kNone };

// Runs `local_work` in the calling thread and returns the results of all ranks, in rank order. If `local_work` throws
// on any rank, throws an Error with the message of the lowest such rank, on all ranks. Blocks until all ranks have
// called it. Collective.
std::vector<std::string> wait_collective_call(Engine& engine, Timeout timeout,
                                              std::function<std::string()> const& local_work);

// The same with a result for each rank: local_work()[q] is for rank q. Returns those that the ranks have for this rank.
// The time limit is the default.
std::vector<std::string> wait_collective_exchange(Engine& engine,
                                                  std::function<std::vector<std::string>()> const& local_work);

// Throws PeerError: `rank` sent an invalid result. what: the invalid part, for the message.
[[noreturn]] void throw_invalid_result(std::size_t rank, std::string const& what);

// Returns read(). A comm::SerializationError becomes the PeerError of throw_invalid_result().
template <class Read>
auto parse_result(std::size_t rank, Read const& read) {
  try {
    return read();
  } catch (comm::SerializationError const& error) {
    throw_invalid_result(rank, error.what());
  }
}

}  // namespace gpups::cache
