// SPDX-License-Identifier: Apache-2.0
#include "kernels/pool/pool.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/rows/row_storage.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::kernels::validate_bags_test {
namespace {

using Ids = std::vector<std::uint32_t>;

struct Bags {
  Ids offsets;
  std::size_t entries;
};
struct Cut {
  Ids kept, bag_of;
  std::uint32_t bad_row;
};

std::vector<Cut> cut(Stream& stream, std::vector<Bags> const& parts) {
  Device const device = stream.device();
  std::vector<Array<std::uint32_t>> offsets, kept, bag_of;
  std::vector<BagPart> arguments;
  for (auto const& part : parts) {
    offsets.push_back(to_device(stream, part.offsets));
    kept.emplace_back(device, part.offsets.size());
    bag_of.emplace_back(device, part.entries);
    arguments.push_back({offsets.back(), kept.back(), bag_of.back()});
  }
  Array<std::uint32_t> const bad_offsets(device, parts.size());
  validate_bags(stream, {arguments, bad_offsets});
  auto const found = to_host(stream, bad_offsets.view());
  std::vector<Cut> all;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    all.push_back({to_host(stream, kept[p].view()), to_host(stream, bag_of[p].view()), found[p]});
  }
  return all;
}

// Bags of 0 to 4 entries each.
Bags random_bags(test::Random& random, std::size_t bags) {
  Bags made{{0}, 0};
  for (std::size_t b = 0; b < bags; ++b) {
    made.entries += test::below(random, 5);
    made.offsets.push_back(static_cast<std::uint32_t>(made.entries));
  }
  return made;
}

TEST(ValidateBags, ReturnsTheBagOfEachEntry) {
  test::Random random(1);
  std::vector<Bags> parts{{{0}, 0}, {{0, 0, 0}, 0}, {{0, 9}, 9}};
  for (std::size_t const bags : {100, 20'000, 7}) parts.push_back(random_bags(random, bags));
  for (Device const device : test::devices()) {
    for (int threads = 1; threads <= 3; ++threads) {
      Stream stream(device, threads);
      auto const all = cut(stream, parts);
      for (std::size_t p = 0; p < parts.size(); ++p) {
        Ids want;
        for (std::uint32_t b = 0; b + 1 < parts[p].offsets.size(); ++b) {
          want.insert(want.end(), parts[p].offsets[b + 1] - parts[p].offsets[b], b);
        }
        EXPECT_EQ(all[p].bad_row, kNoRow);
        EXPECT_EQ(all[p].kept, parts[p].offsets);
        EXPECT_EQ(all[p].bag_of, want);
      }
    }
  }
}

// Wrong offsets never cause a write past the entries, and the other parts are handled as usual.
TEST(ValidateBags, ReportsFirstWrongOffset) {
  std::vector<Bags> const parts{{{1, 2}, 2},      {{0, 2, 1, 3}, 3},          {{0, 1, 2}, 3}, {{0, 1, 4}, 3},
                                {{0, 900, 3}, 3}, {{0, 0xFFFFFFFF, 0, 1}, 1}, {{5}, 5},       {{0, 2, 3}, 3}};
  for (Device const device : test::devices()) {
    Stream stream(device, 2);
    Ids bad_offsets;
    for (auto const& part : cut(stream, parts)) bad_offsets.push_back(part.bad_row);
    EXPECT_EQ(bad_offsets, (Ids{0, 2, 2, 2, 2, 2, 0, kNoRow}));
  }
}

}  // namespace
}  // namespace gpups::kernels::validate_bags_test
