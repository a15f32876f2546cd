// SPDX-License-Identifier: Apache-2.0
// Packs integers into one message, in the fewest whole bytes for each block: first one byte with the width of each
// block, then the blocks. See kernels/sparse/pack_words.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"

namespace gpups::comm {

using IntegerView = View<std::int64_t>;

// The most integers of a message.
inline constexpr std::size_t kPackedIntegersMax = std::size_t{1} << 28;
// Returns an upper bound of the bytes of a message of `words` integers.
std::size_t packed_bytes_max(std::size_t words);

// Returns the integers as a message, in memory of their device.
CoTask<Bytes> pack_integers(Communicator& comm, IntegerView words);
// Replaces the integers in `into` by those of a message of another rank, or adds them. Throws PeerError if the message
// is invalid.
enum class Unpack { kReplace, kAdd };
CoTask<> unpack_integers(Communicator& comm, Rank from, Bytes const& message, IntegerView into, Unpack how);

}  // namespace gpups::comm
