// SPDX-License-Identifier: Apache-2.0
// Integers as one message, in the fewest whole bytes for each block of them: a byte with the width of each block, then
// the blocks. See kernels/wire/narrow_words.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/collective/mesh.hpp"
#include "comm/collective/task.hpp"

namespace gpups::comm {

using Words = View<std::int64_t>;

// Most words of a message.
inline constexpr std::size_t kNarrowWordsMax = std::size_t{1} << 28;
// No message of so many words is larger.
std::size_t narrow_bytes_max(std::size_t words);

Task<Bytes> narrow(Mesh& mesh, Words words);
// Puts the words of another rank's message in place of `into`, or adds them. Throws PeerError where it cannot be one.
enum class Widen { kReplace, kAdd };
Task<> widen(Mesh& mesh, Rank from, Bytes const& message, Words into, Widen how);

}  // namespace gpups::comm
