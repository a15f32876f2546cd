// SPDX-License-Identifier: Apache-2.0
// Keys of click data are those that docs/recommender.md specifies, for programs that look up exported rows. The
// expected numbers were computed in Python with the xxhash package.
#include <gtest/gtest.h>

#include "trainer/tasks/click/features.hpp"
#include "trainer/tasks/click/text/text_cells.hpp"

namespace gpups::trainer::click_key_test {
namespace {

struct Case {
  char const *category, *text;
  std::uint64_t id, key;
};
constexpr Case kCases[] = {
    {"C1", "68fd1e64", 0x68FD1E64U, 0xF43895B1B2862D1DU},
    {"C1", "68FD1E64", 0xEDEBE4E5ACECCC14U, 0x0733B6A0001A9A9BU},  // upper-case digits: hashed as text
    {"C26", "", kMissingId, 0xAE600239D2F1194AU},
    {"user", "anna", 0xDE74372C8DE63439U, 0xD549224F4829B115U},
};

TEST(ClickKeys, MatchTheDocumentation) {
  for (Case const& c : kCases) {
    EXPECT_EQ(value_id(c.text), c.id) << c.text;
    EXPECT_EQ(click_key(c.category, c.id), Key{c.key}) << c.category << " " << c.text;
  }
}

}  // namespace
}  // namespace gpups::trainer::click_key_test
