// SPDX-License-Identifier: Apache-2.0
// Work that all ranks do together: each says what came of its share, and where one fails all throw its error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cache/engine.hpp"
#include "comm/wire.hpp"

namespace gpups::cache {

// How long ranks wait for each other: as for any call, or as long as it takes, for work such as writing files.
enum class Timeout { kDefault, kNone };

// Does `local_work` on every rank and gathers the results, in rank order; throws the first error of any rank on all of
// them. Collective.
std::vector<std::string> wait_collective_call(Engine& engine, Timeout timeout,
                                              std::function<std::string()> const& local_work);

// Throws PeerError: what a rank said of its share cannot be right.
[[noreturn]] void throw_invalid_result(std::size_t rank, std::string const& what);

// What `read` makes of something that a rank said; PeerError where it cannot.
template <class Read>
auto parse_result(std::size_t rank, Read const& read) {
  try {
    return read();
  } catch (comm::WireError const& error) {
    throw_invalid_result(rank, error.what());
  }
}

}  // namespace gpups::cache
