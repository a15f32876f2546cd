// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/sample_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/base/checksum.hpp"
#include "trainer/tasks/click/samples.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kLayoutBytesMax = std::size_t{2} << 20;  // more than check_layout() allows

constexpr std::size_t kNamesBytesMax = std::size_t{64} << 20;  // a line of text has at most 16 MiB

std::uint64_t digest_of_header(FileHeader const& header, std::string_view layout, std::string_view names) {
  auto const bytes = std::as_bytes(std::span(&header, 1)).first(offsetof(FileHeader, xxh3));
  std::uint64_t const digest = kernels::checksum(std::as_bytes(std::span(layout)), kernels::checksum(bytes));
  return names.empty() ? digest : kernels::checksum(std::as_bytes(std::span(names)), digest);
}

// Returns the lines of a text. Throws Error unless there are `count`.
std::vector<std::string> read_names(std::string_view text, std::size_t count, std::string const& path) {
  std::vector<std::string> names;
  if (text.empty()) return names;
  while (true) {
    std::size_t const end = text.find('\n');
    names.emplace_back(text.substr(0, end));
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
  }
  GPUPS_REQUIRE(names.size() == count,
                "{} has {} names of {} columns (it was changed after it was written): convert the text again", path,
                names.size(), count);
  return names;
}

// Throws Error unless each block is between `begin` and `end`, the layout's end and the names or the index.
void check_entries(std::span<BlockEntry const> entries, std::uint64_t begin, std::uint64_t end,
                   std::string const& path) {
  for (std::size_t b = 0; b < entries.size(); ++b) {
    BlockEntry const& entry = entries[b];
    bool const inside =
        entry.begin >= begin && entry.begin % kAlignment == 0 && entry.begin <= end && entry.bytes <= end - entry.begin;
    GPUPS_REQUIRE(
        inside,
        "{} has block {} at byte {}, with {} bytes (that is outside of the file's data): convert the text again", path,
        b, entry.begin, entry.bytes);
  }
}

Layout read_layout(std::string_view text, std::string const& path) {
  try {
    return parse_layout(text);
  } catch (Error const& error) {
    throw Error(fmt::format("{} has a layout that cannot be used: {}", path, error.what()));
  }
}

FileHeader read_header(InputFile const& file) {
  GPUPS_REQUIRE(file.is_regular(),
                "{} is not a regular file (blocks of it are read in any order): copy the data to one", file.path());
  FileHeader header;
  GPUPS_REQUIRE(
      file.read_at(0, &header, sizeof header) == sizeof header && std::memcmp(header.magic, kMagic, sizeof kMagic) == 0,
      "{} is not a binary file of samples (its first bytes are others): convert text with gpu_train convert",
      file.path());
  GPUPS_REQUIRE(
      header.version == (header.names_bytes > 0 ? kVersionWithNames : kVersionWithoutNames) &&
          header.block_samples == kSampleBlock && header.names_bytes <= kNamesBytesMax,
      "{} has version {} of the format, or blocks of another size (this program reads versions {} and {}): convert the "
      "text again",
      file.path(), header.version, kVersionWithoutNames, kVersionWithNames);
  GPUPS_REQUIRE(header.layout_bytes <= kLayoutBytesMax && header.layout_bytes <= file.bytes() - sizeof header,
                "{} is shorter than its header and layout (it was cut): copy or convert it again", file.path());
  return header;
}

}  // namespace

SampleFileFacts read_sample_file(InputFile const& file) {
  std::string const& path = file.path();
  FileHeader const header = read_header(file);
  std::string layout(header.layout_bytes, '\0');
  layout.resize(file.read_at(sizeof header, layout.data(), layout.size()));
  std::uint64_t const layout_end = sizeof header + header.layout_bytes, of_names = aligned(header.names_bytes);
  bool const has_room = header.index_begin <= file.bytes() && of_names <= header.index_begin &&
                        header.index_begin - of_names >= layout_end;
  GPUPS_REQUIRE(has_room || of_names == 0,
                "{} has no room for {} bytes of names before its index at byte {} (it was cut or changed): copy or "
                "convert it again",
                path, header.names_bytes, header.index_begin);
  std::string names(header.names_bytes, '\0');
  std::uint64_t const blocks_end = header.index_begin - of_names;
  if (of_names > 0) names.resize(file.read_at(blocks_end, names.data(), names.size()));
  GPUPS_REQUIRE(digest_of_header(header, layout, names) == header.xxh3,
                "{} has a header with a wrong checksum (it was changed after it was written): convert the text again",
                path);
  std::uint64_t const blocks = header.samples / kSampleBlock + (header.samples % kSampleBlock != 0);
  std::uint64_t const begin = header.index_begin, size = file.bytes();
  GPUPS_REQUIRE(
      begin <= size && begin % kAlignment == 0 && size - begin == blocks * sizeof(BlockEntry) && blocks <= size,
      "{} has {} bytes, which does not fit {} samples with an index at byte {} (it was cut or changed): "
      "copy or convert it again",
      path, size, header.samples, begin);
  GPUPS_REQUIRE(header.samples > 0, "{} has no samples (there is nothing to learn from): convert other text", path);
  std::vector<BlockEntry> entries(blocks);
  auto const index = std::as_writable_bytes(std::span(entries));
  std::size_t const read = file.read_at(begin, index.data(), index.size());
  GPUPS_REQUIRE(kernels::checksum(index.first(read)) == header.index_xxh3,
                "{} has an index with a wrong checksum (it was changed after it was written): convert the text again",
                path);
  check_entries(entries, layout_end, blocks_end, path);
  SampleFileFacts facts{.layout = read_layout(layout, path), .samples = header.samples, .entries = std::move(entries)};
  facts.names = read_names(names, facts.layout.columns(), path);
  return facts;
}

SampleFileWriter::SampleFileWriter(std::filesystem::path const& path, Layout const& layout)
    : path_(path), beside_(std::filesystem::path(path).concat(".new")), layout_(layout_text(layout)) {
  file_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) fail("created");
  FileHeader const none;  // not valid, until finish()
  write(&none, sizeof none);
  write(layout_.data(), layout_.size());
  align();
}

SampleFileWriter::~SampleFileWriter() {
  if (file_ < 0) return;
  ::close(file_);
  ::unlink(beside_.c_str());
}

void SampleFileWriter::add(std::span<std::byte const> block, std::uint64_t xxh3) {
  entries_.push_back({written_, block.size(), xxh3});
  write(block.data(), block.size());
  align();
}

std::uint64_t SampleFileWriter::finish(std::uint64_t samples, std::vector<std::string> const& names) {
  GPUPS_ASSERT(entries_.size() == (samples + kSampleBlock - 1) / kSampleBlock);
  std::string const lines = fmt::format("{}", fmt::join(names, "\n"));
  write(lines.data(), lines.size());
  align();
  std::span const index = std::as_bytes(std::span(entries_));
  FileHeader header{.version = lines.empty() ? kVersionWithoutNames : kVersionWithNames,
                    .layout_bytes = static_cast<std::uint32_t>(layout_.size()),
                    .block_samples = kSampleBlock,
                    .names_bytes = static_cast<std::uint32_t>(lines.size()),
                    .samples = samples,
                    .index_begin = written_,
                    .index_xxh3 = kernels::checksum(index)};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.xxh3 = digest_of_header(header, layout_, lines);
  write(index.data(), index.size());
  if (::pwrite(file_, &header, sizeof header, 0) != sizeof header) fail("written");
  if (::fsync(file_) != 0) fail("written to the disk");
  if (::rename(beside_.c_str(), path_.c_str()) != 0) fail("renamed into place");
  ::close(file_);
  file_ = -1;
  return written_;
}

void SampleFileWriter::write(void const* data, std::size_t bytes) {
  auto const* from = static_cast<char const*>(data);
  for (std::size_t done = 0; done < bytes;) {
    ssize_t const put = ::write(file_, from + done, bytes - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) fail("written");
    done += static_cast<std::size_t>(put);
  }
  written_ += bytes;
}

void SampleFileWriter::align() {
  constexpr char kZeros[kAlignment] = {};
  write(kZeros, aligned(written_) - written_);
}

void SampleFileWriter::fail(char const* doing) const {
  throw Error(fmt::format("{} cannot be {} ({}): check the path, its permissions and the free space on the disk",
                          beside_.string(), doing, std::strerror(errno)));
}

}  // namespace gpups::trainer
