// SPDX-License-Identifier: Apache-2.0
// Message bodies: round trips, and errors for truncated, too long and invalid bodies.
#include "comm/base/serialization.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "comm/base/peer_error.hpp"
#include "gpups/types.hpp"

namespace gpups::comm::wire_test {
namespace {

std::string sample() {
  Writer writer;
  writer.put<std::uint8_t>(7);
  writer.put<std::uint32_t>(0x01020304);
  writer.put<std::int64_t>(std::numeric_limits<std::int64_t>::min());
  writer.put<Clock>(Clock{-5});
  writer.put_text("rank");
  std::vector<std::uint64_t> const list{1, 2, std::numeric_limits<std::uint64_t>::max()};
  writer.put_list<std::uint64_t>(list);
  writer.put_list<Key>({});
  return writer.take();
}

void read_sample(std::string_view body) {
  Reader reader(body);
  EXPECT_EQ(reader.get<std::uint8_t>(), 7);
  EXPECT_EQ(reader.get<std::uint32_t>(), 0x01020304U);
  EXPECT_EQ(reader.get<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(reader.get<Clock>(), Clock{-5});
  EXPECT_EQ(reader.get_text(), "rank");
  EXPECT_EQ(reader.get_list<std::uint64_t>(),
            (std::vector<std::uint64_t>{1, 2, std::numeric_limits<std::uint64_t>::max()}));
  EXPECT_TRUE(reader.get_list<Key>().empty());
  reader.end();
}

TEST(Serialization, RoundTripKeepsAllValues) { read_sample(sample()); }

TEST(Serialization, WidthsAreFixedAndLittleEndian) {
  Writer writer;
  writer.put<std::uint32_t>(0x01020304);
  writer.put<std::uint8_t>(9);
  EXPECT_EQ(writer.size(), 5U);
  EXPECT_EQ(writer.take(), std::string("\x04\x03\x02\x01\x09"));
  EXPECT_EQ(writer.size(), 0U);
  EXPECT_EQ(sample().size(), 1U + 4 + 8 + 8 + (8 + 4) + (8 + 3 * 8) + 8);
}

TEST(Serialization, RejectsTruncatedBody) {
  std::string const body = sample();
  for (std::size_t length = 0; length < body.size(); ++length) {
    EXPECT_THROW(read_sample(std::string_view(body).substr(0, length)), SerializationError) << length;
  }
}

TEST(Serialization, RejectsTrailingBytes) { EXPECT_THROW(read_sample(sample() + "x"), SerializationError); }

TEST(Serialization, RejectsTooLargeLength) {
  // Lengths whose bytes are missing, would be gigabytes, or overflow when multiplied by the size of an element.
  for (std::uint64_t const length : {std::uint64_t{3}, std::uint64_t{1} << 33, (std::uint64_t{1} << 61) + 1,
                                     std::numeric_limits<std::uint64_t>::max()}) {
    Writer writer;
    writer.put<std::uint64_t>(length);
    writer.put<std::uint64_t>(1);
    writer.put<std::uint64_t>(2);
    std::string const body = writer.take();
    EXPECT_THROW(Reader(body).get_list<std::uint64_t>(), SerializationError) << length;
    if (length > 16) {
      EXPECT_THROW(Reader(body).get_text(), SerializationError) << length;
    }
  }
}

TEST(Serialization, SerializationErrorIsAnError) { EXPECT_THROW(Reader("").get<std::uint8_t>(), Error); }

TEST(PeerText, ReplacesControlCharacters) {
  EXPECT_EQ(peer_text(""), "");
  EXPECT_EQ(peer_text("key 7 of 'na\xC3\xAFve'"), "key 7 of 'na\xC3\xAFve'");
  EXPECT_EQ(peer_text(std::string("a\0b\r\n\x7F\033[1m", 10)), "a?b????[1m");
}

TEST(PeerText, CutsBetweenCharacters) {
  for (std::size_t before = 0; before < 4; ++before) {
    std::string text(before, 'x');
    while (text.size() <= kPeerTextBytesMax) text += "\xC3\xAF";
    std::string const cut = peer_text(text);
    ASSERT_TRUE(cut.ends_with("\xC3\xAF ...") && text.starts_with(cut.substr(0, cut.size() - 4))) << cut;
    EXPECT_LE(cut.size(), kPeerTextBytesMax + 4);
  }
  EXPECT_EQ(peer_text(std::string(kPeerTextBytesMax, 'x')), std::string(kPeerTextBytesMax, 'x'));
}

}  // namespace
}  // namespace gpups::comm::wire_test
