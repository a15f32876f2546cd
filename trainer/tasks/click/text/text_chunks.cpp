// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/text/text_chunks.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/base/check.hpp"
#include "trainer/input/input_file.hpp"
#include "trainer/tasks/click/binary_format.hpp"
#include "trainer/tasks/click/text/text_rows.hpp"

namespace gpups::trainer {

namespace {

// A file whose first bytes can be examined before they are read.
class Peeked {
 public:
  explicit Peeked(std::filesystem::path const& path) : file_(path) {
    left_ = size_ = file_.read(begin_, sizeof begin_);
  }

  std::string_view begin() const { return {begin_, size_}; }
  std::string const& path() const { return file_.path(); }
  std::size_t read(char* to, std::size_t bytes) {
    std::size_t const peeked = std::min(left_, bytes);
    std::memcpy(to, begin_ + size_ - left_, peeked);
    left_ -= peeked;
    return peeked + file_.read(to + peeked, bytes - peeked);
  }

 private:
  InputFile file_;
  char begin_[8] = {};
  std::size_t size_ = 0, left_ = 0;  // bytes examined, and how many of them are not read yet
};

// Text as it is in the file.
class Plain : public TextSource {
 public:
  explicit Plain(std::unique_ptr<Peeked> file) : file_(std::move(file)) {}
  std::size_t read(char* to, std::size_t bytes) override { return file_->read(to, bytes); }

 private:
  std::unique_ptr<Peeked> file_;
};

// Text in frames of zstd.
class Compressed : public TextSource {
 public:
  explicit Compressed(std::unique_ptr<Peeked> file)
      : file_(std::move(file)), state_(ZSTD_createDStream(), ZSTD_freeDStream), buffer_(ZSTD_DStreamInSize()) {
    GPUPS_REQUIRE(state_ != nullptr, "there is no memory to decompress {}: free some memory", file_->path());
  }

  std::size_t read(char* to, std::size_t bytes) override {
    ZSTD_outBuffer out{to, bytes, 0};
    while (out.pos < out.size) {
      if (in_.pos == in_.size) {
        in_ = {buffer_.data(), file_->read(buffer_.data(), buffer_.size()), 0};
        ended_ = in_.size == 0;
      }
      std::size_t const before = out.pos;
      std::size_t const result = ZSTD_decompressStream(state_.get(), &out, &in_);
      GPUPS_REQUIRE(!ZSTD_isError(result), "{} cannot be decompressed ({}): check the file, or compress it again",
                    file_->path(), ZSTD_getErrorName(result));
      if (!ended_ || out.pos > before) {
        within_frame_ = result != 0;
        continue;
      }
      GPUPS_REQUIRE(!within_frame_, "{} ends in the middle of a zstd frame (the file was cut): copy or make it again",
                    file_->path());
      break;
    }
    return out.pos;
  }

 private:
  std::unique_ptr<Peeked> file_;
  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> state_;
  std::vector<char> buffer_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool ended_ = false, within_frame_ = false;
};

bool is_zstd(std::string_view begin) {
  if (begin.size() < 4) return false;
  std::uint32_t magic;
  std::memcpy(&magic, begin.data(), sizeof magic);
  return magic == ZSTD_MAGICNUMBER || (magic & 0xFFFFFFF0U) == 0x184D2A50U;  // or a skippable frame
}

}  // namespace

std::unique_ptr<TextSource> open_text(std::filesystem::path const& path) {
  auto file = std::make_unique<Peeked>(path);
  std::string_view const begin = file->begin();
  if (is_zstd(begin)) return std::make_unique<Compressed>(std::move(file));
  GPUPS_REQUIRE(!begin.starts_with("\x1F\x8B"),
                "{} is compressed with gzip (only zstd and plain text are read): "
                "decompress it, or compress it with zstd",
                file->path());
  GPUPS_REQUIRE(begin != std::string_view(kMagic, sizeof kMagic),
                "{} is binary data, not text (it was converted already): use it without converting it again",
                file->path());
  return std::make_unique<Plain>(std::move(file));
}

namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kLineBytesMax = std::size_t{16} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

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
    if (line_ == 1 && chunk.text.starts_with(kByteOrderMark)) chunk.text.remove_prefix(kByteOrderMark.size());
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
