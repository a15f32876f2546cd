// SPDX-License-Identifier: Apache-2.0
// Files of a checkpoint, which are written once, with a checksum, and verified before they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

struct XXH3_state_s;

namespace gpups::cache {

// The name, the size and the checksum of a file, as a manifest has them.
struct FileChecksum {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;
};

// Writes a file sequentially through a buffer of 4 MiB. Throws Error with the path and the system's reason. Blocks.
class FileWriter {
 public:
  // Creates the file, or truncates an existing one.
  explicit FileWriter(std::filesystem::path path);
  ~FileWriter();
  FileWriter(FileWriter const&) = delete;
  FileWriter& operator=(FileWriter const&) = delete;

  void write(void const* data, std::size_t bytes);
  template <class T>
  void put(T const& value) {
    write(&value, sizeof value);
  }
  // Flushes the file to the disk, closes it, and returns its name (without folders), size and checksum.
  FileChecksum finish();

 private:
  void flush();

  std::filesystem::path path_;
  int file_ = -1;
  std::vector<char> buffer_;
  std::uint64_t bytes_ = 0;
  XXH3_state_s* hash_;
};

// Reads a file sequentially. Throws Error if the file cannot be read or ends too early. Blocks.
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

// Reads folder/checksum.name and throws Error if it is missing, or if its size or its checksum differs.
void verify(std::filesystem::path const& folder, FileChecksum const& checksum);

// Flushes the entries of a folder to the disk, so that new and renamed files in it survive a crash. Throws Error.
void sync_folder(std::filesystem::path const& folder);

// Returns the contents of a file.
std::string read_whole(std::filesystem::path const& path);
// Replaces the contents of a file atomically: writes and flushes `beside`, by default PATH.new, and renames it to PATH.
// Throws Error.
void replace_whole(std::filesystem::path const& path, std::string const& contents, std::filesystem::path beside = {});

}  // namespace gpups::cache
