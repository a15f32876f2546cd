// SPDX-License-Identifier: Apache-2.0
// Row lifecycles: rows that start, wait, expire and end, compared with loops over a struct for each row.
#include "kernels/rows/row_lifecycle.hpp"

#include <gtest/gtest.h>

#include "tests/support/inputs.hpp"

namespace gpups::kernels::row_lifecycle_test {
namespace {

using test::below;
using test::Random;
using Ids = std::vector<std::uint32_t>;

std::vector<Device> devices() {
  std::vector<Device> all{Device::host()};
  if (cuda_device_count() > 0) all.push_back(Device::cuda(0));
  return all;
}

struct Row {
  enum class Kind { kFree, kWaits, kExists } kind = Kind::kFree;
  std::uint64_t count = 0;  // of occurrences, or 1 + updates
  std::uint32_t last = 0;

  std::uint32_t word() const {
    if (kind == Kind::kFree) return 0;
    return static_cast<std::uint32_t>(count + (kind == Kind::kWaits ? 1U << 31 : 0));
  }
};

// Rows of all kinds, last used in one of the 20 steps before step 0 (the unsigned number wraps) or the 20 steps after
// it.
std::vector<Row> random_rows(Random& random, std::size_t n) {
  std::vector<Row> all(n);
  for (auto& row : all) {
    row = {static_cast<Row::Kind>(below(random, 3)), 1 + below(random, 9),
           static_cast<std::uint32_t>(below(random, 40)) - 20};
    if (below(random, 10) == 0 && row.kind == Row::Kind::kWaits) row.count = kCountedMax - below(random, 3);
  }
  return all;
}

Ids words_of(std::vector<Row> const& all) {
  Ids words;
  for (auto const& row : all) words.insert(words.end(), {row.word(), row.last});
  return words;
}

class RowLifecycleTest : public testing::TestWithParam<int> {
 protected:
  static constexpr std::size_t kRows = 20000;

  // Calls `run` on lifecycles on the device and `expect` on the same rows as structs, and compares the results.
  template <class Run, class Expect>
  void compare(Device device, Run run, Expect expect) {
    Stream stream(device, GetParam());
    Random random(static_cast<std::uint64_t>(GetParam()));
    auto all = random_rows(random, kRows);
    auto const lifecycle = test::rows(stream, words_of(all), kRows, kLifecycleWords);
    auto const ids = test::distinct_ids(random, kRows / 3, kRows);
    run(stream, lifecycle.ref(), to_device(stream, ids));
    expect(all, ids);
    auto const got = test::to_host(stream, lifecycle.ref(), kRows);
    for (std::size_t id = 0; id < kRows; ++id) {
      ASSERT_EQ(got[2 * id], all[id].word()) << id;
      if (all[id].kind != Row::Kind::kFree) {
        ASSERT_EQ(got[2 * id + 1], all[id].last) << id;
      }
    }
  }
};

TEST_P(RowLifecycleTest, BeginRowsStartsRows) {
  for (Device const device : devices()) {
    compare(
        device,
        [](Stream& on, auto lifecycle, auto const& ids) {
          begin_rows(on, {lifecycle, ids, 77});
        },
        [](std::vector<Row>& all, Ids const& ids) {
          for (auto id : ids)
            all[id] = {Row::Kind::kExists, all[id].kind == Row::Kind::kExists ? all[id].count : 1, 77};
        });
  }
}

TEST_P(RowLifecycleTest, CountOccurrencesAddsToWaitingRows) {
  for (Device const device : devices()) {
    Ids offsets{0};
    for (std::size_t i = 0; i < kRows / 3; ++i) offsets.push_back(offsets.back() + static_cast<std::uint32_t>(i % 5));
    compare(
        device,
        [&](Stream& on, auto lifecycle, auto const& ids) {
          count_occurrences(on, {lifecycle, ids, to_device(on, offsets), 77});
        },
        [](std::vector<Row>& all, Ids const& ids) {
          for (std::size_t i = 0; i < ids.size(); ++i) {
            auto& row = all[ids[i]];
            if (row.kind == Row::Kind::kExists) continue;
            std::uint64_t const before = row.kind == Row::Kind::kWaits ? row.count : 0;
            row = {Row::Kind::kWaits, std::min<std::uint64_t>(before + i % 5, 0x7FFFFFFF), 77};
          }
        });
  }
}

TEST_P(RowLifecycleTest, EndRowsFreesRows) {
  for (Device const device : devices()) {
    compare(
        device,
        [](Stream& on, auto lifecycle, auto const& ids) {
          auto some = to_host(on, ids.view());
          some.push_back(kNoRow);
          end_rows(on, {lifecycle, to_device(on, some)});
        },
        [](std::vector<Row>& all, Ids const& ids) {
          for (auto id : ids) all[id] = {};
        });
  }
}

TEST_P(RowLifecycleTest, ExpireRowsFreesOldRows) {
  for (Device const device : devices()) {
    for (std::uint32_t const age : {1U, 15U, 45U}) {
      std::uint64_t existing = 0, want = 0;
      std::uint32_t const now = 20;
      compare(
          device,
          [&](Stream& on, auto lifecycle, auto const&) {
            auto const count = to_device(on, std::vector<std::uint64_t>{0});
            expire_rows(on, {lifecycle, kRows, now, age, count});
            existing = to_host(on, count.view())[0];
          },
          [&](std::vector<Row>& all, Ids const&) {
            for (auto& row : all) {
              auto const steps = std::int64_t{now} - static_cast<std::int32_t>(row.last);
              if (row.kind == Row::Kind::kFree || steps <= age) continue;
              want += row.kind == Row::Kind::kExists ? 1 : 0;
              row = {};
            }
          });
      EXPECT_EQ(existing, want);
      EXPECT_EQ(want > 0, age < 45) << "rows are at most 40 steps old";
    }
  }
}

TEST_P(RowLifecycleTest, RowsExistReportsOnlyExistingRows) {
  for (Device const device : devices()) {
    Array<std::uint8_t> found;
    Ids queries, answered;
    compare(
        device,
        [&](Stream& on, auto lifecycle, auto const& ids) {
          found = Array<std::uint8_t>(device, ids.size());
          rows_exist(on, {{lifecycle.chunks, lifecycle.stride}, ids, found});
          answered = to_host(on, ids.view());
        },
        [&](std::vector<Row>& all, Ids const& ids) {
          Stream stream(device, 1);
          auto const marks = to_host(stream, found.view());
          for (std::size_t i = 0; i < ids.size(); ++i) {
            bool const exists = all[ids[i]].kind == Row::Kind::kExists;
            ASSERT_EQ(marks[i], exists ? 1 : 0);
            ASSERT_EQ(answered[i], exists ? ids[i] : kNoRow);
          }
        });
  }
}

TEST(LifecycleWord, CountsSaturateAtTheMaximum) {
  EXPECT_EQ(after_update(0), 2U);
  EXPECT_EQ(after_update(kWaiting + 7), 2U);
  EXPECT_EQ(after_update(kCountedMax - 1), kCountedMax);
  EXPECT_EQ(after_update(kCountedMax), kCountedMax);
  EXPECT_EQ(after_occurrences(0, 0xFFFFFFFF), kWaiting + kCountedMax);
  EXPECT_TRUE(is_admitted(after_occurrences(0, 3), 3));
  EXPECT_FALSE(is_admitted(after_occurrences(0, 2), 3));
  EXPECT_FALSE(is_admitted(0, 3));
  EXPECT_TRUE(is_admitted(1, 3));
}

INSTANTIATE_TEST_SUITE_P(Threads, RowLifecycleTest, testing::Values(1, 2));

}  // namespace
}  // namespace gpups::kernels::row_lifecycle_test
