// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/sample_storage.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/base/checksum.hpp"
#include "trainer/input/input_file.hpp"
#include "trainer/tasks/click/sample_file.hpp"

namespace gpups::trainer {

struct SampleStorage::Mapping {
  explicit Mapping(std::filesystem::path const& path)
      : file(path), facts(read_sample_file(file.bytes(), file.path())) {}

  MappedFile file;
  SampleFileFacts facts;
};

SampleStorage::SampleStorage(Layout layout, std::uint64_t samples, std::vector<std::vector<std::byte>> blocks,
                             std::span<std::uint64_t const> digests)
    : memory_(std::move(blocks)), layout_(std::move(layout)), shape_(layout_), samples_(samples) {
  GPUPS_ASSERT(memory_.size() == (samples + kSampleBlock - 1) / kSampleBlock && digests.size() == memory_.size());
  for (std::size_t b = 0; b < memory_.size(); ++b) {
    memory_entries_.push_back({.begin = 0, .bytes = memory_[b].size(), .xxh3 = digests[b]});
  }
  entries_ = memory_entries_;
}

SampleStorage::SampleStorage(std::filesystem::path const& path)
    : mapping_(std::make_unique<Mapping const>(path)),
      layout_(mapping_->facts.layout),
      shape_(layout_),
      samples_(mapping_->facts.samples),
      entries_(mapping_->facts.entries),
      checked_(std::make_unique<std::atomic<bool>[]>(entries_.size())) {}

SampleStorage::~SampleStorage() = default;

BlockView SampleStorage::block(std::uint64_t number) const {
  GPUPS_ASSERT(number < blocks());
  std::size_t const samples = samples_of(number);
  if (!mapping_) return {shape_, memory_[number].data(), samples};
  if (!checked_[number].load(std::memory_order_acquire)) check(number);
  return {shape_, mapping_->file.bytes().data() + entries_[number].begin, samples};
}

std::size_t SampleStorage::samples_of(std::uint64_t block) const {
  return std::min(kSampleBlock, samples_ - block * kSampleBlock);
}

// Two threads may check a block at the same time, with the same result.
void SampleStorage::check(std::uint64_t number) const {
  BlockEntry const& entry = entries_[number];
  auto const bytes = mapping_->file.bytes().subspan(entry.begin, entry.bytes);
  std::string const wrong =
      kernels::checksum(bytes) != entry.xxh3 ? "its checksum is wrong" : check_block(shape_, bytes, samples_of(number));
  GPUPS_REQUIRE(wrong.empty(),
                "{} has a damaged block, {} of {}: {} (it was changed after it was written): convert the "
                "text again",
                mapping_->file.path(), number, blocks(), wrong);
  checked_[number].store(true, std::memory_order_release);
}

}  // namespace gpups::trainer
