// SPDX-License-Identifier: Apache-2.0
// Text is plain or compressed; what is no text is rejected.
#include "trainer/input/text_source.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <csignal>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/base/stop_signals.hpp"

namespace gpups::trainer::text_source_test {
namespace {

using test::expect_error;

std::string gzip(std::string_view text) {
  z_stream state{};
  ::deflateInit2(&state, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(::deflateBound(&state, text.size()), '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&state, Z_FINISH), Z_STREAM_END);
  out.resize(state.total_out);
  ::deflateEnd(&state);
  return out;
}

std::string zstd(std::string_view text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string read_all(TextSource& source, std::size_t at_once) {
  std::string all, block(at_once, '\0');
  std::size_t got;
  do {
    got = source.read(block.data(), at_once);
    all.append(block, 0, got);
  } while (got == at_once);
  return all;
}

class TextSourceTest : public testing::Test {
 protected:
  std::string read(std::string_view bytes, std::size_t at_once = 1 << 16) {
    return read_all(*open_text(folder_.write("text", bytes)), at_once);
  }
  test::TemporaryFolder folder_;
};

// Text that does not compress well, longer than a buffer.
std::string long_text() {
  std::mt19937 random(7);
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += static_cast<char>('a' + random() % 26);
  return text + "\n";
}

TEST_F(TextSourceTest, ReadsPlainAndCompressedText) {
  std::string const text = long_text();
  for (std::string const& bytes : {text, gzip(text), zstd(text), gzip(text.substr(0, 1000)) + gzip(text.substr(1000)),
                                   zstd(text.substr(0, 1000)) + zstd(text.substr(1000))}) {
    EXPECT_EQ(read(bytes), text);
    EXPECT_EQ(read(bytes, 1013), text);
  }
  for (std::string const& nothing : {std::string(), gzip(""), zstd("")}) EXPECT_EQ(read(nothing), "");
}

TEST_F(TextSourceTest, LeavesOutAByteOrderMark) {
  for (std::string const text : {"\xEF\xBB\xBF"
                                 "ab",
                                 "\xEF\xBB\xBF"}) {
    EXPECT_EQ(read(text), text.substr(3));
    EXPECT_EQ(read(gzip(text)), text.substr(3));
    EXPECT_EQ(read(zstd(text), 1), text.substr(3));
  }
  EXPECT_EQ(read("\xEF\xBB"), "\xEF\xBB");
  for (std::string const utf16 : {"\xFF\xFE"
                                  "a",
                                  "\xFE\xFF"
                                  "a"}) {
    expect_error([&] { read(utf16); }, {"UTF-16", "iconv"});
    expect_error([&] { read(gzip(utf16)); }, {"UTF-16"});
  }
}

TEST_F(TextSourceTest, RejectsMarksAfterTheFirstLine) {
  constexpr char kMark[] = "\xEF\xBB\xBF";
  for (std::string const& bytes :
       {std::string("a b\n") + kMark + "c d\n", std::string(kMark) + "a\r\n" + kMark + "b\n"}) {
    for (std::size_t const at_once : {std::size_t{1}, std::size_t{2}, std::size_t{5}, std::size_t{1000}}) {
      expect_error([&] { read(bytes, at_once); }, {"has a byte order mark after its first line", "sed"});
    }
    expect_error([&] { read(gzip(bytes)); }, {"has a byte order mark after its first line"});
  }
  for (std::size_t const at_once : {std::size_t{1}, std::size_t{3}, std::size_t{1000}}) {
    std::string const within = std::string("a") + kMark + "\n\xEF\xBC\x81\n";
    EXPECT_EQ(read(within, at_once), within);
  }
}

TEST_F(TextSourceTest, RejectsCutAndChangedCompression) {
  for (std::string const& whole : {gzip(long_text()), zstd(long_text())}) {
    expect_error([&] { read(std::string_view(whole).substr(0, whole.size() / 2)); }, {"text ends in the middle"});
    expect_error([&] { read(std::string_view(whole).substr(0, whole.size() - 1)); }, {"text ends in the middle"});
    std::string changed = whole;
    for (std::size_t i = 20; i < 60; ++i) changed[i] = static_cast<char>(changed[i] ^ 0x55);
    expect_error([&] { read(changed); }, {"cannot be decompressed"});
  }
  expect_error([&] { read(gzip("a") + "trailing bytes that are no gzip"); }, {"cannot be decompressed"});
}

TEST_F(TextSourceTest, NamesOtherFormats) {
  expect_error([&] { read("BZh91AY"); }, {"compressed with bzip2"});
  expect_error(
      [&] {
        read(
            "\xFD"
            "7zXZ");
      },
      {"compressed with xz"});
  expect_error([&] { read("PK\x03\x04"); }, {"zip archive"});
  expect_error([&] { read("PAR1"); }, {"Parquet", "CSV"});
  std::string tar(1024, '\0');
  tar.replace(0, 9, "clicks.tsv").replace(257, 5, "ustar");
  for (std::string const& bytes : {tar, gzip(tar), zstd(tar)})
    expect_error([&] { read(bytes); }, {"text is a tar archive"});
  expect_error([&] { read("\x93NUMPY"); }, {"NumPy"});
}

TEST_F(TextSourceTest, RejectsAFileThatChanges) {
  auto const path = folder_.write("text", std::string(100, 'a'));
  auto const source = open_text(path);
  char some[10];
  EXPECT_EQ(source->read(some, 10), 10U);
  std::ofstream(path, std::ios::app) << "more";
  expect_error([&] { read_all(*source, 64); }, {"text changed while it was read"});
}

TEST_F(TextSourceTest, ReadsPipes) {
  auto const pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << gzip("some text"); });
  EXPECT_EQ(read_all(*open_text(pipe), 64), "some text");
  writer.join();
}

TEST_F(TextSourceTest, NamesWhatWasDownloadedInPlaceOfAFile) {
  auto const lfs = folder_.write("lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n");
  expect_error([&] { (void)open_text(lfs); }, {"a pointer of Git LFS", "git lfs pull"});
  for (char const* page :
       {"<!DOCTYPE html>\n<p>404\n", "\n\n<html>\n", "\xEF\xBB\xBF <!doctype HTML>", "<HTML lang=en>"}) {
    expect_error([&] { (void)open_text(folder_.write("page", page)); }, {"page is a web page", "download"});
    expect_error([&] { (void)open_text(folder_.write("page", gzip(page))); }, {"page is a web page"});
  }
  expect_error([&] { read("\n<?xml version='1.0'?>\n<graphml>\n"); }, {"text is XML"});
  for (char const* json : {"{\"message\": \"Not Found\", \"status\": 404}", "{\n  \"a\": 1}", "[\n  {\"user\": 1}]"}) {
    expect_error([&] { read(json); }, {"text is JSON"});
  }
  for (char const* answer : {"404: Not Found", "\n403 Forbidden\n", "500 Internal Server Error\n"}) {
    expect_error([&] { read(answer); },
                 {"text begins with '", std::string_view(answer).find("Not") == 5 ? "'404: Not Found'" : " ",
                  "a server sent it"});
  }
  for (std::string const data : {"404 5\n", "404 Not\n", "{a} b\n", "<a> <b>\n", "[[a]] b\n", "  a b\n"}) {
    EXPECT_EQ(read(data), data);
  }
}

// Formats of networks and triples that are no lines of names.
TEST_F(TextSourceTest, RejectsOtherFormatsOfText) {
  for (auto const& [begin, name] :
       std::initializer_list<std::pair<char const*, char const*>>{{"*Vertices 3\n1 \"Ann\"\n", "a Pajek network"},
                                                                  {"nodedef>name VARCHAR\n", "a GDF network"},
                                                                  {"Graph [\n  node [ id 1 ]\n", "a GML network"},
                                                                  {"digraph {\n a -> b\n}\n", "a Graphviz network"},
                                                                  {"DL n=3\nformat = edgelist1\n", "a UCINET network"},
                                                                  {"@prefix ex: <http://a/> .\n", "Turtle"},
                                                                  {"sep=;\na;b\n", "CSV with a line for Excel"},
                                                                  {"[\"the cat\", \"on\"]\n", "JSON"}}) {
    expect_error([&, text = begin] { read(text); }, {name});
  }
  EXPECT_EQ(read("graph theory\n"), "graph theory\n");
}

// A signal ends the reading of files, and the wait for the writer of a pipe.
TEST_F(TextSourceTest, EndsAfterASignal) {
  auto const pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  auto const file = folder_.write("file", "some text");
  StopSignals const signals;
  std::raise(SIGTERM);
  for (auto const& path : {pipe, file}) {
    std::string const words = "stopped by a signal while reading " + path.string();
    expect_error([&] { (void)read_all(*open_text(path), 64); }, {words.c_str(), "run the same command again"});
  }
}

TEST(FindNoText, AcceptsUtf8Only) {
  for (std::string_view const valid :
       {"", "plain text of more than eight bytes", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xEF\xBF\xBF",
        "\xF4\x8F\xBF\xBF", "1234567\xC3\xA9 and on"}) {
    EXPECT_EQ(find_no_text(valid), std::string_view::npos) << valid;
  }
  // Bytes that follow nothing, are cut, are longer than needed, surrogates, and beyond the last character.
  for (std::string_view const wrong : {"\x80", "\xC3", "\xC3(", "\xC0\x80", "\xE0\x80\xAF", "\xED\xA0\x80",
                                       "\xF4\x90\x80\x80", "\xF0\x80\x80\xAF", "\xFF", "\xE2\x82"}) {
    EXPECT_EQ(find_no_text(wrong), 0U);
    for (std::size_t before = 1; before < 20; ++before) {
      std::string const text = std::string(before, 'a') + std::string(wrong);
      EXPECT_EQ(find_no_text(text), before);
      EXPECT_EQ(find_no_text(text + "bbbbbbbbb"), before);
    }
  }
  EXPECT_EQ(find_no_text(std::string_view("abc\0def", 7)), 3U);
  EXPECT_EQ(find_no_text(std::string_view("abcdefgh\0", 9)), 8U);
}

TEST_F(TextSourceTest, NamesEndsOfLinesOfOldMacs) {
  std::string const text = "a b\rc d\r";
  for (std::string const& bytes : {text, gzip(text), zstd(text), std::string("\xEF\xBB\xBF") + text}) {
    expect_error([&] { read(bytes); }, {"end with CR, without LF", "old Macs", "tr '\\r' '\\n'"});
  }
  for (std::string const& good : {std::string("a b\r\nc d\r\n"), std::string("a\rb\nc d\n"), std::string("a b\r")}) {
    EXPECT_EQ(read(good), good);
  }
}

}  // namespace
}  // namespace gpups::trainer::text_source_test
