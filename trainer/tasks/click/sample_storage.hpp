// SPDX-License-Identifier: Apache-2.0
// The blocks of a data set: in memory, or in a file. A block of a file is checked whenever it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "trainer/input/input_file.hpp"
#include "trainer/tasks/click/binary_format.hpp"
#include "trainer/tasks/click/block.hpp"
#include "trainer/tasks/click/sample_file.hpp"

namespace gpups::trainer {

// Blocks of a file that are kept in memory: a window of an epoch's order, and the begin of the next one.
constexpr std::size_t kBlocksKept = 320;

// A block, and its bytes if they are not those of a SampleStorage.
struct SampleBlock {
  BlockView view;
  std::shared_ptr<std::byte const []> bytes {};
};

// The blocks, with the layout and the number of their samples. Any thread.
class SampleStorage {
 public:
  // Keeps blocks of make_block() in memory. digests: kernels::checksum() of each. All blocks but the last are full.
  SampleStorage(Layout layout, std::uint64_t samples, std::vector<std::vector<std::byte>> blocks,
                std::span<std::uint64_t const> digests);
  // Opens a file. Throws Error if its header, layout or index was changed since it was written.
  explicit SampleStorage(std::filesystem::path const& path);

  Layout const& layout() const { return facts_.layout; }
  std::vector<std::string> const& names() const { return facts_.names; }
  BlockShape const& shape() const { return shape_; }
  std::uint64_t samples() const { return facts_.samples; }
  bool in_memory() const { return !file_; }
  std::uint64_t blocks() const { return facts_.entries.size(); }
  std::span<BlockEntry const> entries() const { return facts_.entries; }

  // Returns a block, which is read if it is not in memory. Throws Error if it was changed since it was written, or
  // since the file was opened. REQUIRES: number < blocks().
  SampleBlock read(std::uint64_t number) const;
  // The same, and keeps the block for later calls, among the last kBlocksKept of a file.
  SampleBlock read_and_keep(std::uint64_t number) const;

 private:
  // A block that is kept. One thread reads it, and others that need it wait.
  struct KeptBlock {
    std::mutex reading;
    std::shared_ptr<std::byte const[]> bytes;
  };

  std::size_t samples_of(std::uint64_t block) const;
  std::shared_ptr<std::byte const[]> read_bytes(std::uint64_t block) const;
  std::shared_ptr<KeptBlock> kept(std::uint64_t block) const;

  std::vector<std::vector<std::byte>> memory_;  // blocks
  std::optional<InputFile const> file_;         // of blocks that are not in memory
  SampleFileFacts facts_;                       // of blocks in memory, BlockEntry::begin has no meaning
  BlockShape shape_;

  mutable std::mutex keeping_;
  mutable std::unordered_map<std::uint64_t, std::shared_ptr<KeptBlock>> kept_;
  mutable std::deque<std::uint64_t> kept_order_;  // the oldest first
};

}  // namespace gpups::trainer
