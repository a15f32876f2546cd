// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/text_source.hpp"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "gpups/group.hpp"
#include "kernels/base/check.hpp"
#include "trainer/base/long_loop.hpp"
#include "trainer/input/input_file.hpp"

namespace gpups::trainer {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Whether another rank writes the lines about progress. An environment in which no group could be joined does not
// matter here.
bool is_silent() {
  try {
    return number(Group::launch_info().rank) != 0;
  } catch (Error const&) {
    return false;
  }
}

// A file whose first bytes can be examined before they are read.
class Peeked {
 public:
  explicit Peeked(std::filesystem::path const& path)
      : file_(path), reading_("reading " + file_.path(), static_cast<double>(file_.bytes()), is_silent()) {
    left_ = size_ = file_.read(begin_, sizeof begin_);
  }

  std::string_view begin() const { return {begin_, size_}; }
  std::string const& path() const { return file_.path(); }
  std::size_t read(char* to, std::size_t bytes) {
    std::size_t const peeked = std::min(left_, bytes);
    std::memcpy(to, begin_ + size_ - left_, peeked);
    left_ -= peeked;
    std::size_t const got = peeked + file_.read(to + peeked, bytes - peeked);
    done_ += got;
    reading_.check(static_cast<double>(done_));
    if (got < bytes) file_.require_unchanged();
    return got;
  }

 private:
  InputFile file_;
  LongLoop reading_;
  std::uint64_t done_ = 0;  // bytes read
  char begin_[16] = {};
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
class Zstd : public TextSource {
 public:
  explicit Zstd(std::unique_ptr<Peeked> file)
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

// Text in members of gzip.
class Gzip : public TextSource {
 public:
  explicit Gzip(std::unique_ptr<Peeked> file) : file_(std::move(file)), buffer_(kBufferBytes) {
    GPUPS_REQUIRE(::inflateInit2(&state_, kGzipWindow) == Z_OK, "there is no memory to decompress {}: free some memory",
                  file_->path());
  }
  ~Gzip() override { ::inflateEnd(&state_); }
  Gzip(Gzip const&) = delete;
  Gzip& operator=(Gzip const&) = delete;

  std::size_t read(char* to, std::size_t bytes) override {
    std::size_t done = 0;
    while (done < bytes) {
      if (state_.avail_in == 0) {
        state_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
        state_.avail_in = static_cast<uInt>(file_->read(buffer_.data(), buffer_.size()));
        if (state_.avail_in == 0) {
          GPUPS_REQUIRE(!within_member_, "{} ends in the middle of gzip data (the file was cut): copy or make it again",
                        file_->path());
          break;
        }
      }
      if (!within_member_) {
        ::inflateReset(&state_);
        within_member_ = true;
      }
      auto const room = static_cast<uInt>(std::min(bytes - done, kBufferBytes));
      state_.next_out = reinterpret_cast<Bytef*>(to + done);
      state_.avail_out = room;
      int const result = ::inflate(&state_, Z_NO_FLUSH);
      GPUPS_REQUIRE(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR,
                    "{} cannot be decompressed ({}): check the file, or compress it again", file_->path(),
                    state_.msg == nullptr ? "zlib's error " + std::to_string(result) : std::string(state_.msg));
      done += room - state_.avail_out;
      within_member_ = result != Z_STREAM_END;
    }
    return done;
  }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
  static constexpr int kGzipWindow = 15 + 16;  // the largest window; gzip only, not zlib's own format

  std::unique_ptr<Peeked> file_;
  std::vector<char> buffer_;
  z_stream state_{};
  bool within_member_ = false;
};

bool is_zstd(std::string_view begin) {
  if (begin.size() < 4) return false;
  std::uint32_t magic;
  std::memcpy(&magic, begin.data(), sizeof magic);
  return magic == ZSTD_MAGICNUMBER || (magic & 0xFFFFFFF0U) == 0x184D2A50U;  // or a skippable frame
}

// Formats that are not read, by their first bytes.
struct OtherFormat {
  std::string_view begin, is, instead;
};
constexpr OtherFormat kOtherFormats[] = {
    {"BZh", "compressed with bzip2", "decompress it, or compress it with gzip or zstd"},
    {"\xFD"
     "7zXZ",
     "compressed with xz", "decompress it, or compress it with gzip or zstd"},
    {"\x04\x22\x4D\x18", "compressed with lz4", "decompress it, or compress it with gzip or zstd"},
    {"\x1F\x9D", "compressed with compress", "decompress it, or compress it with gzip or zstd"},
    {"PK\x03\x04", "a zip archive", "extract its file"},
    {"PK\x05\x06", "an empty zip archive", "extract its file"},
    {"7z\xBC\xAF\x27\x1C", "a 7z archive", "extract its file"},
    {"PAR1", "a Parquet file", "write it as CSV"},
    {"ARROW1", "an Arrow file", "write it as CSV"},
    {"\x89HDF\r\n", "an HDF5 file", "write it as CSV"},
    {"\x93NUMPY", "an array of NumPy", "write it as text"},
    {"SQLite format 3", "an SQLite database", "write its table as CSV"},
    {"gpuclick", "click data that was converted already", "use it without converting it again"},
    {"version https://", "a pointer of Git LFS", "fetch the file with git lfs pull"},
    {std::string_view("\xFF\xFE\0\0", 4), "text in UTF-32", "convert it to UTF-8 with iconv -f UTF-32 -t UTF-8"},
};

// Text that is no data, by its beginning without blanks and in lower case.
constexpr OtherFormat kOtherTexts[] = {
    {"<!doctype", "a web page", "download the file itself"},
    {"<html", "a web page", "download the file itself"},
    {"<head>", "a web page", "download the file itself"},
    {"<?xml", "XML", "write it as text with columns"},
    {"<graphml", "XML", "write it as text with columns"},
    {"<gexf", "XML", "write it as text with columns"},
    {"<rdf:rdf", "XML", "write it as text with columns"},
    {"{\"", "JSON", "write it as text with columns"},
    {"[{\"", "JSON", "write it as text with columns"},
    {"[[\"", "JSON", "write it as text with columns"},
    {"[\"", "JSON", "write it as text with columns"},
    {"<doc id=", "XML", "leave out its tags"},
    {"*vertices", "a Pajek network", "write two nodes in each line"},
    {"*network", "a Pajek network", "write two nodes in each line"},
    {"*arcs", "a Pajek network", "write two nodes in each line"},
    {"*edges", "a Pajek network", "write two nodes in each line"},
    {"nodedef>", "a GDF network", "write two nodes in each line"},
    {"graph [", "a GML network", "write two nodes in each line"},
    {"graph {", "a Graphviz network", "write two nodes in each line"},
    {"digraph {", "a Graphviz network", "write two nodes in each line"},
    {"dl n", "a UCINET network", "write two nodes in each line"},
    {"@prefix ", "Turtle", "write subject, relation and object between tabs"},
    {"@base ", "Turtle", "write subject, relation and object between tabs"},
    {"sep=", "CSV with a line for Excel", "remove the line"},
};

// Whether a text is the answer of a server that has no such file: "404: Not Found".
bool is_error_of_server(std::string_view text) {
  constexpr std::string_view kReasons[] = {
      "not found",        "forbidden",       "bad request",           "unauthorized",
      "bad gateway",      "gateway timeout", "internal server error", "service unavailable",
      "too many requests"};
  if (text.size() < 5 || (text[0] != '4' && text[0] != '5')) return false;
  std::size_t const at = text.find_first_not_of("0123456789");
  if (at != 3) return false;
  text.remove_prefix(text.substr(at).starts_with(": ") ? at + 2 : at + 1);
  return std::any_of(std::begin(kReasons), std::end(kReasons),
                     [text](auto reason) { return text.starts_with(reason); });
}

// Throws Error if a text that begins so is no data.
void require_no_other_text(std::string_view begin, std::string_view path) {
  std::string text;  // without blanks at its front and between brackets and quotes
  constexpr std::size_t kBytes = 64;
  bool after_bracket = true;
  for (char const c : begin) {
    if (text.size() == kBytes) break;
    if (after_bracket && (c == ' ' || c == '\t' || c == '\r' || c == '\n')) continue;
    text += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    after_bracket = after_bracket && (c == '{' || c == '[');
  }
  for (OtherFormat const& other : kOtherTexts) {
    GPUPS_REQUIRE(!text.starts_with(other.begin), "{} is {} (lines of text are read): {}", path, other.is,
                  other.instead);
  }
  std::string_view const first = begin.substr(std::min(begin.find_first_not_of(" \t\r\n"), begin.size()));
  GPUPS_REQUIRE(!is_error_of_server(text),
                "{} begins with '{}' (a server sent it in place of the file): download the file itself", path,
                first.substr(0, std::min(first.find_first_of("\r\n"), kBytes)));
}

// Leaves out a byte order mark at the start of a text, and rejects text with other ends of lines, or with a mark in its
// middle.
class WithoutMark : public TextSource {
 public:
  WithoutMark(std::unique_ptr<TextSource> text, std::string path) : text_(std::move(text)), path_(std::move(path)) {
    size_ = text_->read(begin_, sizeof begin_);
    std::string_view const begin(begin_, size_);
    for (std::string_view mark : {std::string_view("\xFF\xFE"), std::string_view("\xFE\xFF")}) {
      GPUPS_REQUIRE(!begin.starts_with(mark),
                    "{} is text in UTF-16 (names are read as UTF-8): convert it, for example with iconv -f UTF-16 -t "
                    "UTF-8",
                    path_);
    }
    GPUPS_REQUIRE(!begin.substr(std::min(begin.size(), kTarMark)).starts_with("ustar"),
                  "{} is a tar archive (text is read, plain or compressed with gzip or zstd): extract its file", path_);
    if (begin.starts_with(kByteOrderMark)) used_ = kByteOrderMark.size();
    require_no_other_text(begin.substr(used_), path_);
  }
  std::size_t read(char* to, std::size_t bytes) override {
    std::size_t const kept = std::min(size_ - used_, bytes);
    std::memcpy(to, begin_ + used_, kept);
    used_ += kept;
    std::size_t const got = kept + text_->read(to + kept, bytes - kept);
    if (!std::exchange(any_read_, true)) require_lines({to, got});
    require_no_mark({to, got});
    return got;
  }

 private:
  // Throws Error if the first block of a text has ends of lines, and all of them are "\r".
  void require_lines(std::string_view text) const {
    std::size_t const end = text.find('\r');
    GPUPS_REQUIRE(end == text.npos || end + 1 == text.size() || text.find('\n') != text.npos,
                  "{} has lines that end with CR, without LF, as on old Macs (it would be read as one line): convert "
                  "it, for example with tr '\\r' '\\n'",
                  path_);
  }

  // Throws Error if a line of a block begins with a byte order mark.
  void require_no_mark(std::string_view text) {
    constexpr std::string_view kMarkedLine = "\n\xEF\xBB\xBF";
    bool found = (last_ + std::string(text.substr(0, kMarkedLine.size() - 1))).find(kMarkedLine) != std::string::npos;
    // Bytes of 0xEF are rare, and those of ends of lines are not.
    for (std::size_t at = text.find('\xEF'); at != text.npos && !found; at = text.find('\xEF', at + 1)) {
      found = at > 0 && text.substr(at - 1).starts_with(kMarkedLine);
    }
    GPUPS_REQUIRE(!found,
                  "{} has a byte order mark after its first line (files that begin with one were joined; it would be "
                  "part of a name): remove it, for example with sed 's/^\\xEF\\xBB\\xBF//'",
                  path_);
    last_ = (last_ + std::string(text.substr(text.size() - std::min(text.size(), kMarkedLine.size() - 1))));
    last_ = last_.substr(last_.size() - std::min(last_.size(), kMarkedLine.size() - 1));
  }

  std::unique_ptr<TextSource> text_;
  std::string path_, last_{};                   // the last bytes that were read
  static constexpr std::size_t kTarMark = 257;  // where a tar archive has its mark
  char begin_[512] = {};
  std::size_t size_ = 0, used_ = 0;
  bool any_read_ = false;
};

}  // namespace

std::unique_ptr<TextSource> open_text(std::filesystem::path const& path) {
  auto file = std::make_unique<Peeked>(path);
  std::string_view const begin = file->begin();
  std::string const name = file->path();
  for (OtherFormat const& other : kOtherFormats) {
    GPUPS_REQUIRE(!begin.starts_with(other.begin), "{} is {} (text is read, plain or compressed with gzip or zstd): {}",
                  name, other.is, other.instead);
  }
  std::unique_ptr<TextSource> text;
  if (is_zstd(begin)) {
    text = std::make_unique<Zstd>(std::move(file));
  } else if (begin.starts_with("\x1F\x8B")) {
    text = std::make_unique<Gzip>(std::move(file));
  } else {
    text = std::make_unique<Plain>(std::move(file));
  }
  return std::make_unique<WithoutMark>(std::move(text), name);
}

namespace {

constexpr std::uint64_t kHighBits = 0x8080808080808080U, kOnes = 0x0101010101010101U;

// Returns the index of the first byte that is 0 or above 127, or the size.
std::size_t find_not_plain(std::string_view text, std::size_t at) {
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, text.data() + at, sizeof eight);
    if (((eight | (eight - kOnes)) & kHighBits) != 0) break;  // a byte of 0 borrows
  }
  while (at < text.size() && static_cast<signed char>(text[at]) > 0) ++at;
  return at;
}

// Returns the bytes of the character that begins at the front of a text, or 0 if it is not UTF-8 (RFC 3629).
std::size_t character_bytes(std::string_view text) {
  auto const byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  auto const follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  unsigned const first = byte(0), second = byte(1);
  if (first >= 0x01 && first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first < 0xF0) {
    bool const valid =
        follows(1) && follows(2) && (first != 0xE0 || second >= 0xA0) && (first != 0xED || second < 0xA0);
    return valid ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5) {
    bool const valid =
        follows(1) && follows(2) && follows(3) && (first != 0xF0 || second >= 0x90) && (first != 0xF4 || second < 0x90);
    return valid ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::size_t find_no_text(std::string_view text) {
  std::size_t at = 0;
  while ((at = find_not_plain(text, at)) < text.size()) {
    std::size_t const bytes = character_bytes(text.substr(at));
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string_view::npos;
}

void require_text(std::string_view text, std::string_view path, std::uint64_t first_line) {
  std::size_t const at = find_no_text(text);
  if (at == std::string_view::npos) return;
  auto const line = first_line + static_cast<std::uint64_t>(std::count(text.begin(), text.begin() + at, '\n'));
  GPUPS_REQUIRE(text[at] != 0,
                "{}:{} has a byte of 0 (the file is binary, or text in UTF-16): use text, or convert it, for example "
                "with iconv -f UTF-16 -t UTF-8",
                path, line);
  throw Error(
      fmt::format("{}:{} has the byte 0x{:02X}, which is not UTF-8 (it may be Latin-1, or the file is not text): "
                  "convert it, for example with iconv -f LATIN1 -t UTF-8",
                  path, line, static_cast<unsigned char>(text[at])));
}

}  // namespace gpups::trainer
