// SPDX-License-Identifier: Apache-2.0
// The blocks of a data set: in memory, or in a mapped file whose blocks are checked at their first use.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "trainer/tasks/click/binary_format.hpp"
#include "trainer/tasks/click/block.hpp"

namespace gpups::trainer {

// The blocks, with the layout and the number of their samples.
class SampleStorage {
 public:
  // Keeps blocks of make_block() in memory. digests: kernels::checksum() of each. All blocks but the last are full.
  SampleStorage(Layout layout, std::uint64_t samples, std::vector<std::vector<std::byte>> blocks,
                std::span<std::uint64_t const> digests);
  // Maps a file. Throws Error if its header, layout or index was changed since it was written.
  explicit SampleStorage(std::filesystem::path const& path);
  ~SampleStorage();
  SampleStorage(SampleStorage const&) = delete;
  SampleStorage& operator=(SampleStorage const&) = delete;

  Layout const& layout() const { return layout_; }
  BlockShape const& shape() const { return shape_; }
  std::uint64_t samples() const { return samples_; }
  bool in_memory() const { return mapping_ == nullptr; }
  std::uint64_t blocks() const { return entries_.size(); }
  std::span<BlockEntry const> entries() const { return entries_; }

  // Returns a block. Throws Error if it was changed since it was written. Any thread. REQUIRES: number < blocks().
  BlockView block(std::uint64_t number) const;

 private:
  struct Mapping;

  std::size_t samples_of(std::uint64_t block) const;
  void check(std::uint64_t block) const;

  std::vector<std::vector<std::byte>> memory_;  // blocks
  std::vector<BlockEntry> memory_entries_;      // of these; `begin` has no meaning
  std::unique_ptr<Mapping const> mapping_;      // of a file, else null
  Layout layout_;
  BlockShape shape_;
  std::uint64_t samples_;
  std::span<BlockEntry const> entries_;
  std::unique_ptr<std::atomic<bool>[]> checked_;  // of a file's blocks
};

}  // namespace gpups::trainer
