// SPDX-License-Identifier: Apache-2.0
// What each family of readers does with each oddity of text files: it reads the same data, says something, or rejects
// the file. No oddity may change the data without a notice, unless the table below says that it is data.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gpups/error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/config/config.hpp"
#include "trainer/tasks/click/samples.hpp"
#include "trainer/tasks/graph/reader.hpp"
#include "trainer/tasks/interactions/interaction_set.hpp"
#include "trainer/tasks/nodes/network_files.hpp"
#include "trainer/tasks/ratings/rating_file.hpp"
#include "trainer/tasks/words/corpus.hpp"

namespace gpups::trainer::readers_and_oddities_test {
namespace {

using Row = std::vector<std::string>;
using Rows = std::vector<Row>;
using Notices = std::vector<std::string>;

// Readers of one kind of text.
struct Family {
  char const* name;
  std::string separator;
  Row heading, other_heading;   // the usual one, and one with other words
  std::function<Row(int)> row;  // of plain text
  std::size_t name_column, number_column;
  std::uint64_t (*read)(std::filesystem::path const& file, Notices& notices);  // returns a digest of the data
};

DataConfig config_of(std::filesystem::path const& file) {
  return {.folder = file.parent_path().string(),
          .train = file.filename().string(),
          .valid = "",
          .test = "",
          .valid_share = 0,
          .test_share = 0};
}

std::string text_of(int i) { return std::to_string(i); }

std::uint64_t digest_of_ratings(std::filesystem::path const& file, Notices& notices) {
  std::uint64_t digest = 0;
  for (RatingLine const& rating : read_rating_file(config_of(file), file.filename().string(), notices)) {
    digest = digest * 31 + std::hash<std::string>()(fmt::format("{} {} {}", rating.row, rating.column, rating.value));
  }
  return digest;
}

Family const kFamilies[] = {
    {"triples",
     "\t",
     {"head", "relation", "tail"},
     {"Quelle", "Art", "Ziel"},
     [](int i) {
       return Row{"e" + text_of(i), "knows", "e" + text_of(i * 5 % 12)};
     },
     0,
     2,
     [](auto const& file, auto& notices) {
       Dataset const data = read_triples(config_of(file));
       notices = data.notices;
       return data.digest();
     }},
    {"edges",
     " ",
     {"source", "target", "weight"},
     {"von", "nach", "laenge"},
     [](int i) {
       return Row{"e" + text_of(i), "e" + text_of(i * 5 % 12), "2.5"};
     },
     0,
     2,
     [](auto const& file, auto& notices) {
       std::uint64_t const digest = read_network(config_of(file), true, notices).network.digest();
       std::erase(notices, "edges have weights");
       return digest;
     }},
    {"ratings",
     " ",
     {"user", "item", "rating"},
     {"wer", "was", "wie"},
     [](int i) {
       return Row{text_of(i), text_of(i * 5 % 12), "2.5"};
     },
     0,
     2,
     digest_of_ratings},
    {"interactions",
     " ",
     {"user", "item"},
     {"wer", "was"},
     [](int i) {
       return Row{"u" + text_of(i), "i" + text_of(i * 5 % 12)};
     },
     0,
     1,
     [](auto const& file, auto& notices) {
       InteractionSet const set = read_interactions(config_of(file));
       notices = set.notices;
       return set.digest();
     }},
    {"clicks",
     "\t",
     {"label", "I1", "C1", "C2"},
     {"Klick", "Preis", "Ort", "Art"},
     [](int i) {
       return Row{text_of(i % 2), text_of(i), "c" + text_of(i), "d" + text_of(i % 5)};
     },
     2,
     1,
     [](auto const& file, auto& notices) {
       return read_samples_text(file, make_layout(1, 2), {.table = {}}, notices).digest();
     }},
    {"text",
     " ",
     {"all", "words"},
     {"alle", "Worte"},
     [](int i) {
       return Row{"w" + text_of(i), "w" + text_of(i * 5 % 12), "the"};
     },
     0,
     1,
     [](auto const& file, auto& notices) {
       Corpus const corpus = read_corpus(file.parent_path(), file.filename().string(), 1);
       notices = corpus.notices;
       return corpus.digest();
     }},
};
constexpr std::size_t kFamilyCount = std::size(kFamilies);

Rows rows_of(Family const& family) {
  Rows rows;
  for (int i = 0; i < 12; ++i) rows.push_back(family.row(i));
  return rows;
}

std::string joined(Rows const& rows, std::string const& separator, std::string const& quote = "",
                   std::string const& end = "\n") {
  std::string text;
  for (Row const& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i > 0 ? separator : "") + quote + row[i] + quote;
    text += end;
  }
  return text;
}

std::string plain(Family const& family) { return joined(rows_of(family), family.separator); }

std::string with_heading(Family const& family, Row const& heading) {
  return joined({heading}, family.separator) + plain(family);
}

// Text in which a field of row `at` has `extra` at its end.
std::string with_extra(Family const& family, std::size_t column, std::string const& extra, std::size_t at = 7) {
  Rows rows = rows_of(family);
  rows[at][column] += extra;
  return joined(rows, family.separator);
}

std::string gzip(std::string const& text) {
  z_stream state{};
  ::deflateInit2(&state, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string copy = text, out(::deflateBound(&state, text.size()), '\0');
  state.next_in = reinterpret_cast<Bytef*>(copy.data());
  state.avail_in = static_cast<uInt>(copy.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  ::deflate(&state, Z_FINISH);
  out.resize(state.total_out);
  ::deflateEnd(&state);
  return out;
}

std::string zstd(std::string const& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::string utf16(std::string const& text) {
  std::string out = "\xFF\xFE";
  for (char const c : text) out += std::string{c, '\0'};
  return out;
}

// What a reader does.
struct Cell {
  enum class Does { kSame, kSays, kRejects, kReadsOther } does;
  char const* words = "";  // of the notice or of the error
};
constexpr Cell same{Cell::Does::kSame};
// The same data, and a notice.
constexpr Cell says(char const* words) { return {Cell::Does::kSays, words}; }
constexpr Cell rejects(char const* words) { return {Cell::Does::kRejects, words}; }
// The oddity is data. words: of a notice, or empty.
constexpr Cell other(char const* words = "") { return {Cell::Does::kReadsOther, words}; }

struct Oddity {
  char const* name;
  std::string (*make)(Family const& family);
  Cell cells[kFamilyCount];  // triples, edges, ratings, interactions, clicks, text
};

constexpr char kMark[] = "\xEF\xBB\xBF";
constexpr Cell kHeading = says("with a heading; columns"), kMayBe = other("may be a heading"),
               kRepeated = says("skipped 1 heading"), kComment = says("skipped 1 comment line"),
               kMarks = rejects("has a byte order mark after its first line"), kUtf16 = rejects("UTF-16"),
               kLatin1 = rejects("has the byte 0xE9"), kZero = rejects("has a byte of 0"), kOldMac = rejects("CR"),
               kTab = rejects("has a tab within a field"), kOdd = other("1 character of "),
               kCommas = says("separated by commas"), kOneWord = rejects("has no line with two of the words"),
               kPage = rejects("is a web page");

Oddity const kOddities[] = {
    {"heading",
     [](auto const& f) { return with_heading(f, f.heading); },
     {kHeading, kHeading, kHeading, kHeading, kHeading, other()}},
    {"heading of other words",
     [](auto const& f) { return with_heading(f, f.other_heading); },
     {kMayBe, kHeading, kHeading, kMayBe, kHeading, other()}},
    {"heading in the middle",
     [](auto const& f) { return plain(f) + joined({f.heading}, f.separator); },
     {rejects("names of the columns"), rejects("weight"), rejects("row id"), rejects("names of the columns"),
      rejects("label"), other()}},
    {"heading again",
     [](auto const& f) { return with_heading(f, f.heading) + joined({f.heading}, f.separator); },
     {kRepeated, kRepeated, kRepeated, kRepeated, rejects("label"), other()}},
    {"quotes of CSV",
     [](auto const& f) { return joined(rows_of(f), ",", "\""); },
     {kCommas, kCommas, kCommas, kCommas, kCommas, kOneWord}},
    {"index of pandas",
     [](auto const& f) {
       Rows rows = rows_of(f);
       rows.insert(rows.begin(), f.heading);
       for (std::size_t i = 0; i < rows.size(); ++i) rows[i].insert(rows[i].begin(), i == 0 ? "" : std::to_string(i));
       return joined(rows, ",");
     },
     {kHeading, kHeading, kHeading, kHeading, kHeading, kOneWord}},
    {"byte order mark", [](auto const& f) { return kMark + plain(f); }, {same, same, same, same, same, same}},
    {"byte order mark in the middle",
     [](auto const& f) { return plain(f) + kMark + plain(f); },
     {kMarks, kMarks, kMarks, kMarks, kMarks, kMarks}},
    {"CR LF",
     [](auto const& f) { return joined(rows_of(f), f.separator, "", "\r\n"); },
     {same, same, same, same, same, same}},
    {"CR alone",
     [](auto const& f) { return joined(rows_of(f), f.separator, "", "\r"); },
     {kOldMac, kOldMac, kOldMac, kOldMac, kOldMac, kOldMac}},
    {"comment",
     [](auto const& f) { return "# by hand\n" + plain(f); },
     {kComment, kComment, kComment, kComment, rejects("has 1 field"), other()}},
    {"empty last line", [](auto const& f) { return plain(f) + "\n"; }, {same, same, same, same, same, same}},
    {"no end of the last line",
     [](auto const& f) { return plain(f).substr(0, plain(f).size() - 1); },
     {same, same, same, same, same, same}},
    {"blank in a name",
     [](auto const& f) { return with_extra(f, f.name_column, " lee"); },
     {other(), rejects("has 4 fields"), rejects("has no column id"), other(), other(), other()}},
    {"quoted name with a blank",
     [](auto const& f) {
       Rows rows = rows_of(f);
       rows[7][f.name_column] = "\"new york\"";
       return joined(rows, " ");
     },
     {other("with names in quotes"), other("with names in quotes"), rejects("has no row id"),
      other("with names in quotes"), rejects("field"), other()}},
    {"gzip", [](auto const& f) { return gzip(plain(f)); }, {same, same, same, same, same, same}},
    {"zstd", [](auto const& f) { return zstd(plain(f)); }, {same, same, same, same, same, same}},
    {"UTF-16", [](auto const& f) { return utf16(plain(f)); }, {kUtf16, kUtf16, kUtf16, kUtf16, kUtf16, kUtf16}},
    {"Latin-1",
     [](auto const& f) { return with_extra(f, f.name_column, "\xE9"); },
     {kLatin1, kLatin1, kLatin1, kLatin1, kLatin1, kLatin1}},
    {"byte of 0",
     [](auto const& f) { return with_extra(f, f.name_column, std::string(1, '\0')); },
     {kZero, kZero, kZero, kZero, kZero, kZero}},
    {"decimal comma",
     [](auto const& f) { return with_extra(f, f.number_column, ",5"); },
     {other(), rejects("weight"), rejects("has a rating with a comma"), other(), rejects("number"), other()}},
    {"no-break space",
     [](auto const& f) { return with_extra(f, f.name_column, "\xC2\xA0"); },
     {kOdd, kOdd, rejects("has no row id"), kOdd, kOdd, kOdd}},
    {"form feed",
     [](auto const& f) { return with_extra(f, f.name_column, "\f"); },
     {kOdd, kOdd, rejects("has no row id"), kOdd, kOdd, kOdd}},
    {"tab within a name",
     [](auto const& f) {
       Rows rows = rows_of(f);
       rows[7][f.name_column] += "\tx";
       return joined(rows, ",");
     },
     {kTab, kTab, kTab, kTab, kTab, other("looks like CSV")}},
    {"page in place of a file",
     [](auto const&) { return std::string("\n <html>\n<p>404 Not Found\n"); },
     {kPage, kPage, kPage, kPage, kPage, kPage}},
    {"N-Triples",
     [](auto const&) { return std::string("<a> <b> <c> .\n<d> <b> <e> .\n"); },
     {rejects("N-Triples"), rejects("N-Triples"), rejects("N-Triples"), rejects("N-Triples"), rejects("N-Triples"),
      other()}},
};

class ReadersAndOddities : public testing::Test {
 protected:
  test::TemporaryFolder folder_;
};

void expect(Cell const& cell, Family const& family, std::filesystem::path const& file, std::uint64_t usual) {
  using Does = Cell::Does;
  Notices notices;
  std::uint64_t digest = 0;
  try {
    digest = family.read(file, notices);
  } catch (Error const& error) {
    EXPECT_EQ(cell.does, Does::kRejects) << error.what();
    EXPECT_NE(std::string(error.what()).find(cell.words), std::string::npos) << error.what();
    return;
  }
  std::string const all = fmt::format("{}", fmt::join(notices, "\n"));
  ASSERT_NE(cell.does, Does::kRejects) << "it was read; notices: " << all;
  EXPECT_EQ(digest == usual, cell.does != Does::kReadsOther) << all;
  EXPECT_NE(all.find(cell.words), std::string::npos) << all;
  if (std::string_view(cell.words).empty()) {
    EXPECT_EQ(all, "");
  }
}

TEST_F(ReadersAndOddities, AreAsTheTableSays) {
  for (std::size_t i = 0; i < kFamilyCount; ++i) {
    Family const& family = kFamilies[i];
    Notices notices;
    std::uint64_t const usual = family.read(folder_.write("plain", plain(family)), notices);
    EXPECT_EQ(fmt::format("{}", fmt::join(notices, "\n")), "");
    for (Oddity const& oddity : kOddities) {
      SCOPED_TRACE(fmt::format("{} with {}", family.name, oddity.name));
      expect(oddity.cells[i], family, folder_.write("odd", oddity.make(family)), usual);
    }
  }
}

// Another thread sets the time of change again and again; a reader opens and reads the file meanwhile.
TEST_F(ReadersAndOddities, FilesThatChangeAreRejected) {
  for (Family const& family : kFamilies) {
    SCOPED_TRACE(family.name);
    auto const file = folder_.write("changing", plain(family));
    std::atomic<bool> ended = false;
    std::thread writer([&] {
      for (std::int64_t time = 0; !ended; ++time) {
        timespec const times[] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = time, .tv_nsec = 0}};
        ::utimensat(AT_FDCWD, file.c_str(), times, 0);
      }
    });
    std::string error;
    auto const give_up = std::chrono::steady_clock::now() + std::chrono::minutes(2);  // the writer may have no core
    while (error.empty() && std::chrono::steady_clock::now() < give_up) {
      try {
        Notices notices;
        (void)family.read(file, notices);
      } catch (Error const& changed) {
        error = changed.what();
      }
    }
    ended = true;
    writer.join();
    EXPECT_NE(error.find("changed while it was read"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace gpups::trainer::readers_and_oddities_test
