// SPDX-License-Identifier: Apache-2.0
// A file that is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace gpups::trainer {

// An open file.
class InputFile {
 public:
  // Throws Error if the file cannot be opened, or is a folder.
  explicit InputFile(std::filesystem::path const& path);
  ~InputFile();
  InputFile(InputFile const&) = delete;
  InputFile& operator=(InputFile const&) = delete;

  // Reads the next `bytes` bytes. Returns how many there were: fewer only at the end of the file. Throws Error if they
  // cannot be read, or if a signal comes while it waits for the writer of a pipe (StopSignals).
  std::size_t read(void* to, std::size_t bytes);
  // The same for the bytes from `begin` on. Any thread.
  std::size_t read_at(std::uint64_t begin, void* to, std::size_t bytes) const;
  // Throws Error if a regular file has another size or time of change than when it was opened.
  void require_unchanged() const;
  bool is_regular() const { return regular_; }
  // Returns the size of a regular file when it was opened, and 0 for others.
  std::uint64_t bytes() const { return regular_ ? static_cast<std::uint64_t>(bytes_) : 0; }
  std::string const& path() const { return path_; }

 private:
  template <class ReadSome>
  std::size_t read_all(void* to, std::size_t bytes, ReadSome read_some) const;
  void wait_for_writer() const;

  std::string path_;
  int file_;
  bool regular_ = false;
  std::int64_t bytes_ = 0, changed_s_ = 0, changed_ns_ = 0;  // of a regular file, when it was opened
};

}  // namespace gpups::trainer
