// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/corpus.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/input/named_files.hpp"
#include "trainer/input/odd_characters.hpp"
#include "trainer/input/text_source.hpp"
#include "trainer/tasks/words/like_csv.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20, kWordBytesMax = std::size_t{1} << 16;
constexpr std::uint32_t kRare = 0xFFFFFFFE;  // no number of a word

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// Calls word(text) for each word of a file, and line_end() at the end of each line, also of a last line without its
// end.
template <class Word, class LineEnd>
void each_word(std::filesystem::path const& path, std::vector<std::string>& notices, Word word, LineEnd line_end) {
  auto const file = open_text(path);
  std::string text;  // a part of a word that the block before ended with, and the block
  std::uint64_t line = 1;
  bool in_line = false;
  OddCharacters odd;
  for (bool more = true; more;) {
    std::size_t const before = text.size();
    text.resize(before + kBlockBytes);
    std::size_t const got = file->read(text.data() + before, kBlockBytes);
    text.resize(before + got);
    more = got == kBlockBytes;
    std::size_t begin = 0;
    while (begin < text.size()) {
      if (is_blank(text[begin])) {
        if (text[begin] == '\n') line_end(), ++line;
        in_line = in_line && text[begin] != '\n';
        ++begin;
        continue;
      }
      auto const end = static_cast<std::size_t>(
          std::find_if(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), is_blank) - text.begin());
      GPUPS_REQUIRE(end - begin <= kWordBytesMax,
                    "{} has a word of more than {} KiB (words are separated by blanks and ends of lines): check the "
                    "file",
                    path.string(), kWordBytesMax >> 10);
      if (end == text.size() && more) break;  // it may continue in the next block
      std::string_view const found = std::string_view(text).substr(begin, end - begin);
      require_text(found, path.native(), line);
      odd.check(found, line);
      word(found);
      in_line = true;
      begin = end;
    }
    text.erase(0, begin);
  }
  if (in_line) line_end();
  odd.say(path.native(), notices);
}

// The lines of a text by their number of words.
class LineLengths {
 public:
  void add_word() { ++words_; }
  void end_line() {
    lines_ += words_ > 0 ? 1 : 0;
    if (words_ < std::size(lines_of_)) ++lines_of_[words_];
    words_ = 0;
  }
  // Adds a notice if most lines have the same few words: columns of words and their tags have.
  void say(std::string_view path, std::vector<std::string>& notices) const {
    constexpr std::uint64_t kLinesMin = 20;
    for (std::size_t words = 2; words < std::size(lines_of_); ++words) {
      if (lines_ < kLinesMin || 5 * lines_of_[words] < 4 * lines_) continue;
      notices.push_back(
          fmt::format("{} of {} lines of {} have {} words each: if they are columns of a word and its tags, write the "
                      "words of a sentence in a line, for example with awk 'NF {{printf \"%s \", $1}} !NF {{print "
                      "\"\"}}'",
                      lines_of_[words], lines_, path, words));
    }
  }

 private:
  std::uint64_t lines_ = 0, lines_of_[5] = {};
  std::size_t words_ = 0;  // of the last line
};

}  // namespace

std::uint64_t Corpus::digest() const {
  std::uint64_t hash = 0;
  auto const add = [&hash](auto const& v) { hash = XXH3_64bits_withSeed(v.data(), v.size() * sizeof(v[0]), hash); };
  add(words.keys());
  add(counts);
  add(positions);
  return hash;
}

Corpus read_corpus(std::filesystem::path const& folder, std::string const& file, std::uint64_t min_count) {
  Dictionary all("word");
  std::vector<std::uint64_t> counts;
  std::vector<std::uint32_t> positions;  // with the numbers of `all`
  std::vector<std::string> notices;
  LineLengths lengths;
  LikeCsv csv;
  for (std::filesystem::path const& path : files_named(folder, file, notices)) {
    each_word(
        path, notices,
        [&](std::string_view word) {
          std::uint32_t const number = all.add(word);
          if (number == counts.size()) counts.push_back(0);
          ++counts[number];
          positions.push_back(number);
          lengths.add_word();
          csv.add_word(word);
        },
        [&] {
          positions.push_back(Corpus::kLineEnd);
          lengths.end_line();
          csv.end_line();
        });
  }
  lengths.say(file, notices);
  csv.say(file, notices);

  std::vector<std::uint32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return counts[a] > counts[b]; });
  Corpus corpus;
  corpus.notices = std::move(notices);
  std::vector<std::uint32_t> numbers(all.size(), kRare);
  for (std::uint32_t const old : order) {
    if (counts[old] < min_count) break;
    numbers[old] = corpus.words.add(all.name(old));
    corpus.counts.push_back(counts[old]);
    corpus.total += counts[old];
  }
  GPUPS_REQUIRE(corpus.words.size() > 1,
                "{} has {} with at least {} occurrences (there is nothing to learn): check the file, or lower "
                "model.min_count",
                (folder / file).string(), with_count(corpus.words.size(), "word"), min_count);
  if (std::size_t const rare = all.size() - corpus.words.size(); rare > 0) {
    std::uint64_t const read = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    corpus.notices.push_back(fmt::format("left out {} with fewer than {} occurrences: {:.2g} % of the text",
                                         with_count(rare, "word"), min_count,
                                         100 * static_cast<double>(read - corpus.total) / static_cast<double>(read)));
  }

  // Leaves out rare words, and lines that are empty then.
  std::size_t kept = 0;
  for (std::uint32_t const position : positions) {
    bool const line_end = position == Corpus::kLineEnd;
    std::uint32_t const number = line_end ? Corpus::kLineEnd : numbers[position];
    bool const empty = kept == 0 || positions[kept - 1] == Corpus::kLineEnd;
    if (line_end ? !empty : number != kRare) positions[kept++] = number;
  }
  positions.resize(kept);
  auto const is_pair = [](std::uint32_t a, std::uint32_t b) { return a != Corpus::kLineEnd && b != Corpus::kLineEnd; };
  GPUPS_REQUIRE(std::adjacent_find(positions.begin(), positions.end(), is_pair) != positions.end(),
                "{} has no line with two of the words that are learned (a word is learned from others in its line): "
                "write a sentence or more in a line, for example with tr '\\n' ' ', or lower model.min_count",
                (folder / file).string());
  positions.shrink_to_fit();
  corpus.positions = std::move(positions);
  return corpus;
}

}  // namespace gpups::trainer
