// SPDX-License-Identifier: Apache-2.0
#include "cache/files/checksummed_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "kernels/base/check.hpp"

namespace gpups::cache {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

[[noreturn]] void fail(char const* doing, std::filesystem::path const& path) {
  throw Error(
      fmt::format("{} '{}' failed: {} (the checkpoint would be incomplete): check the path, its permissions and "
                  "the space on the disk",
                  doing, path.string(), std::strerror(errno)));
}

}  // namespace

FileWriter::FileWriter(std::filesystem::path path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)),
      hash_(XXH3_createState()) {
  if (file_ < 0) {
    XXH3_freeState(hash_);
    fail("creating", path_);
  }
  XXH3_64bits_reset(hash_);
}

FileWriter::~FileWriter() {
  if (file_ >= 0) ::close(file_);
  XXH3_freeState(hash_);
}

void FileWriter::write(void const* data, std::size_t bytes) {
  auto const* from = static_cast<char const*>(data);
  while (bytes > 0) {
    std::size_t const part = std::min(bytes, kBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), from, from + part);
    from += part;
    bytes -= part;
    if (buffer_.size() == kBufferBytes) flush();
  }
}

void FileWriter::flush() {
  XXH3_64bits_update(hash_, buffer_.data(), buffer_.size());
  bytes_ += buffer_.size();
  std::size_t done = 0;
  while (done < buffer_.size()) {
    auto const n = ::write(file_, buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("writing", path_);
    done += static_cast<std::size_t>(n);
  }
  buffer_.clear();
}

FileChecksum FileWriter::finish() {
  flush();
  if (::fsync(file_) != 0) fail("flushing", path_);
  int const result = ::close(file_);
  file_ = -1;
  if (result != 0) fail("closing", path_);
  return {path_.filename().string(), bytes_, XXH3_64bits_digest(hash_)};
}

FileReader::FileReader(std::filesystem::path path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (file_ < 0) fail("opening", path_);
  struct stat about {};
  if (::fstat(file_, &about) != 0 || !S_ISREG(about.st_mode)) {
    ::close(std::exchange(file_, -1));
    throw Error(fmt::format(
        "'{}' is not a regular file (a checkpoint consists of regular files): use another checkpoint", path_.string()));
  }
  bytes_ = static_cast<std::uint64_t>(about.st_size);
}

FileReader::~FileReader() {
  if (file_ >= 0) ::close(file_);
}

void FileReader::read(void* data, std::size_t bytes) {
  GPUPS_REQUIRE(bytes <= bytes_left(), "'{}' ends at byte {} (it must have more bytes): use another checkpoint",
                path_.string(), bytes_);
  std::size_t done = 0;
  while (done < bytes) {
    auto const n = ::read(file_, static_cast<char*>(data) + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("reading", path_);
    done += static_cast<std::size_t>(n);
  }
  position_ += bytes;
}

void verify(std::filesystem::path const& folder, FileChecksum const& checksum) {
  auto const path = folder / checksum.name;
  std::error_code error;
  GPUPS_REQUIRE(std::filesystem::is_regular_file(path, error),
                "'{}' is missing (the manifest lists it): use another checkpoint", path.string());
  FileReader reader(path);
  GPUPS_REQUIRE(reader.bytes_left() == checksum.bytes,
                "'{}' has {} bytes, not {} (it was truncated or changed after it was written): use another checkpoint",
                path.string(), reader.bytes_left(), checksum.bytes);
  XXH3_state_t* const hash = XXH3_createState();
  XXH3_64bits_reset(hash);
  std::vector<char> buffer(std::min<std::uint64_t>(kBufferBytes, checksum.bytes));
  while (reader.bytes_left() > 0) {
    std::size_t const part = std::min<std::uint64_t>(reader.bytes_left(), buffer.size());
    reader.read(buffer.data(), part);
    XXH3_64bits_update(hash, buffer.data(), part);
  }
  auto const digest = XXH3_64bits_digest(hash);
  XXH3_freeState(hash);
  GPUPS_REQUIRE(digest == checksum.xxh3,
                "'{}' has a wrong checksum (it was changed after it was written): use another checkpoint",
                path.string());
}

void sync_folder(std::filesystem::path const& folder) {
  int const file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail("opening", folder);
  int const result = ::fsync(file);
  ::close(file);
  if (result != 0) fail("flushing", folder);
}

std::string read_whole(std::filesystem::path const& path) {
  FileReader reader(path);
  std::string contents(reader.bytes_left(), '\0');
  reader.read(contents.data(), contents.size());
  return contents;
}

void replace_whole(std::filesystem::path const& path, std::string const& contents, std::filesystem::path beside) {
  if (beside.empty()) beside = std::filesystem::path(path).concat(".new");
  FileWriter writer(beside);
  writer.write(contents.data(), contents.size());
  writer.finish();
  if (::rename(beside.c_str(), path.c_str()) != 0) fail("renaming", beside);
  sync_folder(path.parent_path());
}

}  // namespace gpups::cache
