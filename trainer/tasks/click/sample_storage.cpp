// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/sample_storage.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/base/checksum.hpp"

namespace gpups::trainer {

SampleStorage::SampleStorage(Layout layout, std::uint64_t samples, std::vector<std::vector<std::byte>> blocks,
                             std::span<std::uint64_t const> digests)
    : memory_(std::move(blocks)),
      facts_{.layout = std::move(layout), .samples = samples, .entries = {}},
      shape_(facts_.layout) {
  GPUPS_ASSERT(memory_.size() == (samples + kSampleBlock - 1) / kSampleBlock && digests.size() == memory_.size());
  for (std::size_t b = 0; b < memory_.size(); ++b) {
    facts_.entries.push_back({.begin = 0, .bytes = memory_[b].size(), .xxh3 = digests[b]});
  }
}

SampleStorage::SampleStorage(std::filesystem::path const& path)
    : file_(std::in_place, path), facts_(read_sample_file(*file_)), shape_(facts_.layout) {}

SampleBlock SampleStorage::read(std::uint64_t number) const {
  GPUPS_ASSERT(number < blocks());
  if (!file_) return {.view = {shape_, memory_[number].data(), samples_of(number)}};
  auto const bytes = read_bytes(number);
  return {.view = {shape_, bytes.get(), samples_of(number)}, .bytes = bytes};
}

SampleBlock SampleStorage::read_and_keep(std::uint64_t number) const {
  if (!file_) return read(number);
  auto const block = kept(number);
  std::lock_guard const lock(block->reading);
  if (block->bytes == nullptr) block->bytes = read_bytes(number);
  return {.view = {shape_, block->bytes.get(), samples_of(number)}, .bytes = block->bytes};
}

std::size_t SampleStorage::samples_of(std::uint64_t block) const {
  return std::min(kSampleBlock, samples() - block * kSampleBlock);
}

std::shared_ptr<std::byte const []> SampleStorage::read_bytes(std::uint64_t number) const {
  BlockEntry const& entry = facts_.entries[number];
  std::shared_ptr<std::byte[]> const bytes(new std::byte[entry.bytes]);
  std::span const block(bytes.get(), file_->read_at(entry.begin, bytes.get(), entry.bytes));
  std::string const wrong = block.size() < entry.bytes               ? "the file ends before it"
                            : kernels::checksum(block) != entry.xxh3 ? "its checksum is wrong"
                                                                     : check_block(shape_, block, samples_of(number));
  if (wrong.empty()) return bytes;
  file_->require_unchanged();
  throw Error(
      fmt::format("{} has a damaged block, {} of {}: {} (it was changed after it was written): convert the text again",
                  file_->path(), number, blocks(), wrong));
}

std::shared_ptr<SampleStorage::KeptBlock> SampleStorage::kept(std::uint64_t number) const {
  std::lock_guard const lock(keeping_);
  auto const [at, added] = kept_.try_emplace(number);
  std::shared_ptr<KeptBlock> block = at->second;
  if (!added) return block;
  block = at->second = std::make_shared<KeptBlock>();
  kept_order_.push_back(number);
  if (kept_order_.size() > kBlocksKept) {
    kept_.erase(kept_order_.front());
    kept_order_.pop_front();
  }
  return block;
}

}  // namespace gpups::trainer
