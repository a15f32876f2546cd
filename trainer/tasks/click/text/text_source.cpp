// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/text/text_source.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/check.hpp"
#include "trainer/input/input_file.hpp"
#include "trainer/tasks/click/binary_format.hpp"

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

}  // namespace gpups::trainer
