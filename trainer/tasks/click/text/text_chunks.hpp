// SPDX-License-Identifier: Apache-2.0
// Reads a text file in chunks of whole lines. A separate thread reads and decompresses a few chunks ahead.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "trainer/input/odd_characters.hpp"
#include "trainer/input/text_source.hpp"

namespace gpups::trainer {

// Some lines of a file.
struct TextChunk {
  std::unique_ptr<char[]> buffer;
  std::string_view text;         // in the buffer: whole lines, each with its '\n'; kTextPadding bytes follow
  std::uint64_t first_line = 1;  // of the file
  OddCharacters odd{};           // in the text
};

// The chunks of a file, in order.
class TextChunks {
 public:
  // ahead: how many chunks are read ahead of next(). A chunk has about 1 MiB, or up to 17 MiB if it has a longer line.
  TextChunks(std::filesystem::path const& path, std::size_t ahead);
  ~TextChunks();
  TextChunks(TextChunks const&) = delete;
  TextChunks& operator=(TextChunks const&) = delete;

  // Waits for the next chunk. Returns false at the end of the file. Adds a missing '\n' at its end. Throws Error if the
  // file cannot be read, is not text, or has a line of more than 16 MiB.
  bool next(TextChunk& chunk);

 private:
  void run();
  bool give(TextChunk chunk);

  std::unique_ptr<TextSource> source_;
  std::string path_;
  std::size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TextChunk> ready_;
  bool ended_ = false, stopped_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gpups::trainer
