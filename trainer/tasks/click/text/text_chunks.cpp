// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/text/text_chunks.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/tasks/click/text/text_rows.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kLineBytesMax = std::size_t{16} << 20;

// Cuts a source into chunks.
class Cutter {
 public:
  Cutter(TextSource& source, std::string const& path) : source_(source), path_(path) {}

  // Returns the next chunk; its text is empty at the end of the source.
  TextChunk next() {
    std::size_t room = room_for(rest_.size()), size = rest_.size();
    TextChunk chunk{.buffer = make_buffer(room), .text = {}, .first_line = line_};
    std::copy(rest_.begin(), rest_.end(), chunk.buffer.get());
    rest_.clear();
    std::size_t whole = 0;  // bytes of whole lines
    while (true) {
      std::size_t const got = source_.read(chunk.buffer.get() + size, room - size);
      bool const ended = got < room - size;
      std::string_view const fresh(chunk.buffer.get() + size, got);
      if (std::size_t const newline = fresh.rfind('\n'); newline != fresh.npos) whole = size + newline + 1;
      size += got;
      if (ended && size > whole) {
        chunk.buffer[size++] = '\n';
        whole = size;
      }
      if (whole > 0 || ended) break;
      GPUPS_REQUIRE(size <= kLineBytesMax,
                    "{}:{}: the line is longer than 16 MiB (this is not text of samples): check the file", path_,
                    line_);
      grow(chunk.buffer, size, room);
    }
    rest_.assign(chunk.buffer.get() + whole, size - whole);
    chunk.text = {chunk.buffer.get(), whole};
    std::memset(chunk.buffer.get() + whole, 0, kTextPadding);
    if (!is_plain_text(chunk.text)) {
      require_text(chunk.text, path_, line_);
      chunk.odd.check(chunk.text, line_);
    }
    line_ += static_cast<std::uint64_t>(std::count(chunk.text.begin(), chunk.text.end(), '\n'));
    return chunk;
  }

 private:
  static std::size_t room_for(std::size_t size) {
    return std::clamp(2 * size, kChunkBytes, kLineBytesMax + kChunkBytes);
  }
  // There is one more byte, for a newline that is added.
  static std::unique_ptr<char[]> make_buffer(std::size_t room) {
    return std::make_unique_for_overwrite<char[]>(room + 1 + kTextPadding);
  }
  static void grow(std::unique_ptr<char[]>& buffer, std::size_t size, std::size_t& room) {
    room = room_for(size);
    auto larger = make_buffer(room);
    std::memcpy(larger.get(), buffer.get(), size);
    buffer = std::move(larger);
  }

  TextSource& source_;
  std::string const& path_;
  std::string rest_;  // the start of a line
  std::uint64_t line_ = 1;
};

}  // namespace

TextChunks::TextChunks(std::filesystem::path const& path, std::size_t ahead)
    : source_(open_text(path)), path_(path.string()), ahead_(ahead), thread_([this] { run(); }) {
  GPUPS_ASSERT(ahead > 0);
}

TextChunks::~TextChunks() {
  {
    std::lock_guard const lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool TextChunks::next(TextChunk& chunk) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || ended_; });
  if (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return false;
  }
  chunk = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return true;
}

void TextChunks::run() {
  try {
    Cutter cutter(*source_, path_);
    for (TextChunk chunk = cutter.next(); !chunk.text.empty(); chunk = cutter.next()) {
      if (!give(std::move(chunk))) return;
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
  {
    std::lock_guard const lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
}

// Queues a chunk for next(), once there is room. Returns false if the destructor has begun.
bool TextChunks::give(TextChunk chunk) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_.size() < ahead_ || stopped_; });
  if (stopped_) return false;
  ready_.push_back(std::move(chunk));
  changed_.notify_all();
  return true;
}

}  // namespace gpups::trainer
