// SPDX-License-Identifier: Apache-2.0
// Converts a text file to blocks of samples: several threads parse, and another one reads and decompresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/runtime/arena.hpp"
#include "trainer/tasks/click/layout.hpp"
#include "trainer/tasks/click/samples.hpp"

namespace gpups::trainer {

// Numbers of samples and of bad lines.
struct TextCounts {
  std::uint64_t samples = 0, bad = 0;
};

// Is called with a block and its kernels::checksum().
using TakeBlock = kernels::FunctionRef<void(std::vector<std::byte> block, std::uint64_t xxh3)>;

// Calls `take` with the blocks of the files' samples, in order. Takes memory for a few MiB of text for each thread. Has
// the errors and notices of read_samples_text().
TextCounts make_blocks_of_text(std::span<std::filesystem::path const> files, Layout const& layout,
                               TextOptions const& options, std::vector<std::string>& notices, TakeBlock take);

}  // namespace gpups::trainer
