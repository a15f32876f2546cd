// SPDX-License-Identifier: Apache-2.0
// A text file in pieces of whole lines, read (and decompressed) by a thread of its own, a few pieces ahead.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "trainer/click/text_source.hpp"

namespace gpups::trainer {

struct TextChunk {
  std::unique_ptr<char[]> buffer;
  std::string_view text;         // in the buffer: whole lines, each with its '\n', and kTextPadding bytes behind
  std::uint64_t first_line = 1;  // of the file
};

class TextChunks {
 public:
  // ahead: how many chunks may wait to be taken. A chunk has about a MiB; one that holds a longer line, up to 17 MiB.
  TextChunks(std::filesystem::path const& path, std::size_t ahead);
  ~TextChunks();
  TextChunks(TextChunks const&) = delete;
  TextChunks& operator=(TextChunks const&) = delete;

  // The next chunk; false: no more. A byte order mark at the begin is left out, a '\n' at the end put in if there is
  // none. Throws Error where reading fails or a line is longer than 16 MiB.
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
