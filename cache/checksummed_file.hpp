// SPDX-License-Identifier: Apache-2.0
// Files of a checkpoint: written once with a checksum, read only if that still holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

struct XXH3_state_s;

namespace gpups::cache {

// What the manifest says of a file.
struct FileChecksum {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;
};

// Writes a file from begin to end; throws Error, naming the file and the system's reason, when it cannot.
class FileWriter {
 public:
  explicit FileWriter(std::filesystem::path path);
  ~FileWriter();
  FileWriter(FileWriter const&) = delete;
  FileWriter& operator=(FileWriter const&) = delete;

  void write(void const* data, std::size_t bytes);
  template <class T>
  void put(T const& value) {
    write(&value, sizeof value);
  }
  // Flushes to the disk and closes.
  FileChecksum finish();

 private:
  void flush();

  std::filesystem::path path_;
  int file_ = -1;
  std::vector<char> buffer_;
  std::uint64_t bytes_ = 0;
  XXH3_state_s* hash_;
};

// Reads a file from begin to end. Throws Error where it ends too early.
class FileReader {
 public:
  explicit FileReader(std::filesystem::path path);
  ~FileReader();
  FileReader(FileReader const&) = delete;
  FileReader& operator=(FileReader const&) = delete;

  void read(void* data, std::size_t bytes);
  template <class T>
  T get() {
    T value;
    read(&value, sizeof value);
    return value;
  }
  std::uint64_t bytes_left() const { return bytes_ - position_; }

 private:
  std::filesystem::path path_;
  int file_ = -1;
  std::uint64_t bytes_ = 0;
  std::uint64_t position_ = 0;
};

// Throws Error where the file is missing, has another size or other contents than its seal.
void verify(std::filesystem::path const& folder, FileChecksum const& checksum);

// Makes sure that the folder's entries are on the disk.
void sync_folder(std::filesystem::path const& folder);

std::string read_whole(std::filesystem::path const& path);
// Writes beside it, flushes, and renames into place: the path holds the old or the new contents, never a part.
void replace_whole(std::filesystem::path const& path, std::string const& contents);

}  // namespace gpups::cache
