// SPDX-License-Identifier: Apache-2.0
// Integers as one message, in the fewest whole bytes for each block of them: a byte with the width of each block, then
// the blocks. See kernels/wire/pack_words.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"

namespace gpups::comm {

using IntegerView = View<std::int64_t>;

// Most words of a message.
inline constexpr std::size_t kPackedIntegersMax = std::size_t{1} << 28;
// No message of so many words is larger.
std::size_t packed_bytes_max(std::size_t words);

CoTask<Bytes> pack_integers(Communicator& comm, IntegerView words);
// Puts the words of another rank's message in place of `into`, or adds them. Throws PeerError where it cannot be one.
enum class Unpack { kReplace, kAdd };
CoTask<> unpack_integers(Communicator& comm, Rank from, Bytes const& message, IntegerView into, Unpack how);

}  // namespace gpups::comm
