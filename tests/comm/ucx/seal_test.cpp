// SPDX-License-Identifier: Apache-2.0
// Headers of what is sent over UCX: who made one is known, and every change is found.
#include "comm/ucx/seal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "kernels/checksum.hpp"

namespace gpups::comm {
namespace {

using testing::HasSubstr;
using Verdict = UcxSeals::Opened::Verdict;

constexpr std::uint64_t kSession = 0x0123456789abcdef;
constexpr std::uint32_t kRanks = 3;
constexpr UcxHeader kHeader{Rank{1}, UcxKind::kData, 77, 88};

UcxSeals seals_of(std::uint32_t me, std::uint64_t session = kSession) {
  std::vector<HashKey> keys;
  for (std::uint64_t other = 0; other < kRanks; ++other) keys.push_back({me + other, me * other + 1000});
  return {Rank{me}, session, keys};
}

struct Sealed {
  UcxWireHeader header;
  UcxSeals::Opened open(std::size_t body_bytes = 5) const {
    return seals_of(0).open(&header, sizeof header, body_bytes);
  }
};
Sealed sealed_by_one() { return {seals_of(1).seal(Rank{0}, kHeader, 5, 99)}; }

// The values that the authors of SipHash give for the key 0, 1, ... and texts 0, 1, ... of that many bytes.
TEST(KeyedHash, IsSipHash) {
  HashKey const key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  EXPECT_EQ(keyed_hash(key, std::array<std::uint64_t, 0>{}), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(keyed_hash(key, std::array<std::uint64_t, 1>{key[0]}), 0x93f5f5799a932462U);
  EXPECT_EQ(keyed_hash(key, key), 0x3f2acc7f57c29bdbU);
}

TEST(Seals, AreOpenedByWhomTheyAreFor) {
  auto const opened = sealed_by_one().open();
  ASSERT_EQ(opened.verdict, Verdict::kGood);
  EXPECT_EQ(opened.header.from, Rank{1});
  EXPECT_EQ(opened.header.kind, UcxKind::kData);
  EXPECT_EQ(opened.header.number, 77U);
  EXPECT_EQ(opened.header.bytes, 88U);
  EXPECT_EQ(opened.check, 99U);
  Sealed const unchecked{seals_of(1).seal(Rank{0}, kHeader, 5, {})};
  EXPECT_EQ(unchecked.open().verdict, Verdict::kGood);
  EXPECT_FALSE(unchecked.open().check);
  Sealed const to_another{seals_of(1).seal(Rank{2}, kHeader, 5, 99)};
  EXPECT_EQ(to_another.open().verdict, Verdict::kWrong);
}

TEST(Seals, FindEveryChangedBitAndNameTheRank) {
  for (std::size_t bit = 0; bit < 8 * sizeof(UcxWireHeader); ++bit) {
    Sealed sealed = sealed_by_one();
    auto* const bytes = reinterpret_cast<unsigned char*>(&sealed.header);
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ 1U << bit % 8);
    auto const opened = sealed.open();
    EXPECT_EQ(opened.verdict, Verdict::kWrong) << bit;
    EXPECT_EQ(opened.header.from, Rank{1}) << bit;
    EXPECT_NE(opened.wrong, "") << bit;
  }
}

TEST(Seals, FindAnotherLength) {
  EXPECT_EQ(sealed_by_one().open(6).verdict, Verdict::kWrong);
  EXPECT_THAT(sealed_by_one().open(6).wrong, HasSubstr("6 bytes where its header says 5"));
  auto const sealed = sealed_by_one();
  for (std::size_t bytes = 0; bytes < sizeof sealed.header; ++bytes) {
    EXPECT_NE(seals_of(0).open(&sealed.header, bytes, 5).verdict, Verdict::kGood) << bytes;
  }
}

TEST(Seals, OfStrangersAreTold) {
  Sealed const sealed{seals_of(1, 0xfedcba9876543210).seal(Rank{0}, kHeader, 5, 99)};
  EXPECT_EQ(sealed.open().verdict, Verdict::kStrangers);
  EXPECT_EQ(seals_of(0).open("hello", 5, 0).verdict, Verdict::kStrangers);
  // By chance a session may be near this job's; one in which a few bits have changed is nearer.
  Sealed const near{seals_of(1, kSession ^ 0xffff).seal(Rank{0}, kHeader, 5, 99)};
  EXPECT_EQ(near.open().verdict, Verdict::kStrangers);
  Sealed const changed{seals_of(1, kSession ^ 0xff).seal(Rank{0}, kHeader, 5, 99)};
  EXPECT_EQ(changed.open().verdict, Verdict::kWrong);
  std::string const noise(64, '\xa5');
  EXPECT_EQ(seals_of(0).open(noise.data(), noise.size(), 0).verdict, Verdict::kStrangers);
}

TEST(Seals, ARankThatPosesAsAnotherIsNamed) {
  // It has no key but its own.
  std::vector<HashKey> keys(kRanks);
  keys[0] = {2, 1000};
  Sealed const sealed{UcxSeals(Rank{1}, kSession, keys).seal(Rank{0}, kHeader, 5, 99)};
  auto const opened = sealed.open();
  EXPECT_EQ(opened.verdict, Verdict::kWrong);
  EXPECT_EQ(opened.header.from, Rank{2});
  EXPECT_EQ(opened.wrong, "it poses as rank 1");
}

TEST(Seals, AnotherVersionIsNamedWithThisOne) {
  Sealed sealed = sealed_by_one();
  sealed.header.protocol = 77;
  EXPECT_EQ(sealed.open().wrong,
            "it speaks version 77 of the data protocol and this rank version " + std::to_string(kUcxProtocol));
  // Also where its headers are longer or shorter.
  EXPECT_THAT(seals_of(0).open(&sealed.header, 24, 5).wrong, HasSubstr("version 77"));
}

TEST(Checksum, FindsEveryChangedByte) {
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
}  // namespace gpups::comm
