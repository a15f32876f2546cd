// SPDX-License-Identifier: Apache-2.0
// Characters that look like blanks or nothing are found, wherever they are in a text.
#include "trainer/input/odd_characters.hpp"

#include <gmock/gmock.h>

namespace gpups::trainer::odd_characters_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> notices_of(std::string_view text) {
  OddCharacters odd;
  odd.check(text, 1);
  std::vector<std::string> notices;
  odd.say("file", notices);
  return notices;
}

TEST(OddCharacters, AreFoundAnywhere) {
  struct Case {
    char const *bytes, *name;
  };
  for (Case const one :
       {Case{"\f", "U+000C"}, Case{"\x01", "U+0001"}, Case{"\x7F", "U+007F"}, Case{"\xC2\x85", "U+0085"},
        Case{"\xC2\xA0", "U+00A0"}, Case{"\xC2\xAD", "U+00AD"}, Case{"\xE2\x80\x8B", "U+200B"},
        Case{"\xE2\x80\xA8", "U+2028"}, Case{"\xE2\x80\xAF", "U+202F"}, Case{"\xE2\x81\xA0", "U+2060"},
        Case{"\xE3\x80\x80", "U+3000"}, Case{"\xEF\xBB\xBF", "U+FEFF"}}) {
    for (std::size_t const before : {0U, 1U, 61U, 62U, 63U, 64U, 200U}) {
      std::string const text = "line\n" + std::string(before, 'a') + one.bytes + std::string(100, 'b') + one.bytes;
      EXPECT_THAT(notices_of(text), ElementsAre(HasSubstr("2 characters of file"))) << one.name << " after " << before;
      EXPECT_THAT(notices_of(text), ElementsAre(HasSubstr(std::string(one.name) + " in line 2")));
    }
  }
}

TEST(OddCharacters, OthersAreNot) {
  std::string all;
  for (char c = 0x20; c < 0x7F; ++c) all += c;
  // Letters, joiners of emoji, and characters whose bytes are like those of others.
  all += "\t\r\n\xC3\xA9\xC2\xB5\xE4\xB8\xA0\xE2\x82\xAC\xE2\x80\x8D\xE2\x80\x94\xF0\x9F\x98\x80\xC3\xA0";
  EXPECT_THAT(notices_of(all + all + all), ElementsAre());
  EXPECT_FALSE(is_plain_text(all));
  EXPECT_THAT(notices_of(""), ElementsAre());
}

TEST(IsPlainText, FindsAnyOtherByte) {
  std::string text(3000, 'a');
  for (char const plain : {'\t', '\n', '\r', ' ', '~'}) text += plain;
  EXPECT_TRUE(is_plain_text(text));
  EXPECT_TRUE(is_plain_text(""));
  for (char const byte : {'\0', '\x01', '\f', '\x1F', '\x7F', '\x80', '\xFF'}) {
    for (std::size_t const at : {0U, 1023U, 1024U, 2047U, 2999U}) {
      std::string other = text;
      other[at] = byte;
      EXPECT_FALSE(is_plain_text(other)) << at;
    }
  }
}

TEST(OddCharacters, OfPiecesAreAdded) {
  OddCharacters first, second;
  first.check("plain", 1);
  second.check("a\n\f", 7);
  first.append(second);
  first.append(second);
  std::vector<std::string> notices;
  first.say("file", notices);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("2 characters of file look like blanks or like nothing, such as U+000C in "
                                             "line 8")));
}

TEST(OddCharacters, ALoneCarriageReturnIsFound) {
  EXPECT_FALSE(has_lone_cr(""));
  EXPECT_FALSE(has_lone_cr("a\r\nb\r\n"));
  EXPECT_FALSE(has_lone_cr("a\r"));  // its LF may be in the next block
  for (std::size_t const before : {0U, 1U, 31U, 32U, 100U}) {
    EXPECT_TRUE(has_lone_cr(std::string(before, 'a') + "\rb\r\n" + std::string(100, 'c'))) << before;
  }
}

TEST(OddCharacters, WhiteSpaceIsThatOfPython) {
  for (std::string_view const plain : {"", "a-b_c", "\u00e9\u4e2d\U0001f600", "\u200b", "\ufeff", "\xa0", "\x01\x7f"}) {
    EXPECT_FALSE(has_white_space(plain)) << plain;
  }
  for (std::string_view const divided :
       {" ", "a b", "a\t", "\na", "a\vb", "a\fb", "a\rb", "a\034b", "a\037b", "\u0085", "a\u00a0", "\u1680", "\u2000",
        "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "a\u3000b"}) {
    EXPECT_TRUE(has_white_space(divided)) << divided;
  }
}

}  // namespace
}  // namespace gpups::trainer::odd_characters_test
