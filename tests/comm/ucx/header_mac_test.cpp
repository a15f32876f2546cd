// SPDX-License-Identifier: Apache-2.0
// Header MACs of UCX messages: the receiver knows the sender of a header, and detects every change.
#include "comm/ucx/header_mac.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "kernels/base/checksum.hpp"

namespace gpups::comm::header_mac_test {
namespace {

using testing::HasSubstr;
using Verdict = HeaderMac::Verified::Verdict;

constexpr std::uint64_t kSession = 0x0123456789abcdef;
constexpr std::uint32_t kRanks = 3;
constexpr AmHeader kHeader{Rank{1}, AmKind::kData, 77, 88};

HeaderMac mac_of_rank(std::uint32_t me, std::uint64_t session = kSession) {
  std::vector<HashKey> keys;
  for (std::uint64_t other = 0; other < kRanks; ++other) keys.push_back({me + other, me * other + 1000});
  return {Rank{me}, session, keys};
}

struct Signed {
  AmWireHeader header;
  HeaderMac::Verified open(std::size_t body_bytes = 5) const {
    return mac_of_rank(0).open(&header, sizeof header, body_bytes);
  }
};
Signed signed_by_one() { return {mac_of_rank(1).sign(Rank{0}, kHeader, 5, 99)}; }

// The authors' test values of SipHash for the key 0, 1, ... and texts 0, 1, ... of 0, 8 and 16 bytes.
TEST(KeyedHash, IsSipHash) {
  HashKey const key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  EXPECT_EQ(keyed_hash(key, std::array<std::uint64_t, 0>{}), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(keyed_hash(key, std::array<std::uint64_t, 1>{key[0]}), 0x93f5f5799a932462U);
  EXPECT_EQ(keyed_hash(key, key), 0x3f2acc7f57c29bdbU);
}

TEST(HeaderMac, ReceiverAcceptsSignedHeader) {
  auto const verified = signed_by_one().open();
  ASSERT_EQ(verified.verdict, Verdict::kValid);
  EXPECT_EQ(verified.header.from, Rank{1});
  EXPECT_EQ(verified.header.kind, AmKind::kData);
  EXPECT_EQ(verified.header.number, 77U);
  EXPECT_EQ(verified.header.bytes, 88U);
  EXPECT_EQ(verified.checksum, 99U);
  Signed const unchecked{mac_of_rank(1).sign(Rank{0}, kHeader, 5, {})};
  EXPECT_EQ(unchecked.open().verdict, Verdict::kValid);
  EXPECT_FALSE(unchecked.open().checksum);
  Signed const to_another{mac_of_rank(1).sign(Rank{2}, kHeader, 5, 99)};
  EXPECT_EQ(to_another.open().verdict, Verdict::kWrong);
}

TEST(HeaderMac, DetectsEveryChangedBit) {
  for (std::size_t bit = 0; bit < 8 * sizeof(AmWireHeader); ++bit) {
    Signed signed_header = signed_by_one();
    auto* const bytes = reinterpret_cast<unsigned char*>(&signed_header.header);
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ 1U << bit % 8);
    auto const verified = signed_header.open();
    EXPECT_EQ(verified.verdict, Verdict::kWrong) << bit;
    EXPECT_EQ(verified.header.from, Rank{1}) << bit;
    EXPECT_NE(verified.wrong, "") << bit;
  }
}

TEST(HeaderMac, DetectsOtherLength) {
  EXPECT_EQ(signed_by_one().open(6).verdict, Verdict::kWrong);
  EXPECT_THAT(signed_by_one().open(6).wrong, HasSubstr("6 bytes, but its header gives 5"));
  auto const signed_header = signed_by_one();
  for (std::size_t bytes = 0; bytes < sizeof signed_header.header; ++bytes) {
    EXPECT_NE(mac_of_rank(0).open(&signed_header.header, bytes, 5).verdict, Verdict::kValid) << bytes;
  }
}

TEST(HeaderMac, RecognizesForeignHeaders) {
  Signed const signed_header{mac_of_rank(1, 0xfedcba9876543210).sign(Rank{0}, kHeader, 5, 99)};
  EXPECT_EQ(signed_header.open().verdict, Verdict::kForeign);
  EXPECT_EQ(mac_of_rank(0).open("hello", 5, 0).verdict, Verdict::kForeign);
  // The session id of another job may be similar by chance; an id with a few changed bits is more similar.
  Signed const near{mac_of_rank(1, kSession ^ 0xffff).sign(Rank{0}, kHeader, 5, 99)};
  EXPECT_EQ(near.open().verdict, Verdict::kForeign);
  Signed const changed{mac_of_rank(1, kSession ^ 0xff).sign(Rank{0}, kHeader, 5, 99)};
  EXPECT_EQ(changed.open().verdict, Verdict::kWrong);
  std::string const noise(64, '\xa5');
  EXPECT_EQ(mac_of_rank(0).open(noise.data(), noise.size(), 0).verdict, Verdict::kForeign);
}

TEST(HeaderMac, NamesRankThatPosesAsAnother) {
  // The rank has only its own keys.
  std::vector<HashKey> keys(kRanks);
  keys[0] = {2, 1000};
  Signed const signed_header{HeaderMac(Rank{1}, kSession, keys).sign(Rank{0}, kHeader, 5, 99)};
  auto const verified = signed_header.open();
  EXPECT_EQ(verified.verdict, Verdict::kWrong);
  EXPECT_EQ(verified.header.from, Rank{2});
  EXPECT_EQ(verified.wrong, "it claims to be rank 1");
}

TEST(HeaderMac, ErrorNamesBothVersions) {
  Signed signed_header = signed_by_one();
  signed_header.header.protocol = 77;
  EXPECT_EQ(signed_header.open().wrong,
            "it uses version 77 of the data protocol, and this rank version " + std::to_string(kUcxProtocol));
  // Also if headers of that version are longer or shorter.
  EXPECT_THAT(mac_of_rank(0).open(&signed_header.header, 24, 5).wrong, HasSubstr("version 77"));
}

TEST(Checksum, DetectsEveryChangedByte) {
  for (std::size_t const size : {1, 7, 64, 300, 5000}) {
    std::string body(size, 'x');
    auto const before = kernels::checksum(body.data(), size);
    for (std::size_t i = 0; i < size; ++i) {
      body[i] = 'y';
      EXPECT_NE(kernels::checksum(body.data(), size), before);
      body[i] = 'x';
    }
    EXPECT_EQ(kernels::checksum(body.data(), size), before);
  }
}

}  // namespace
}  // namespace gpups::comm::header_mac_test
