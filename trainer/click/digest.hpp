// SPDX-License-Identifier: Apache-2.0
// XXH3 of bytes, as fast as this machine can: the library that is installed serves any machine, and takes twice as
// long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gpups::trainer {

std::uint64_t digest_of(std::span<std::byte const> bytes, std::uint64_t seed = 0);

}  // namespace gpups::trainer
