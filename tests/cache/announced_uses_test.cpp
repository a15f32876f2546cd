// SPDX-License-Identifier: Apache-2.0
// The uses of rows that ranks have announced to a home, and the rows that a home reports as the most used.
#include "cache/placement/announced_uses.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "cache/placement/hot_rows.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::cache::announced_uses_test {
namespace {

using kernels::kPolicyWindow;
using kernels::RowUser;
// Users by table and key.
using Users = std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<RowUser>>;

class AnnouncedUsesOn : public test::OnDevice {
 protected:
  ListKeys list(std::uint32_t table, std::vector<std::uint64_t> const& keys) {
    std::vector<Key> typed;
    for (auto const key : keys) typed.push_back(Key{key});
    auto const memory = std::make_shared<Array<Key>>(to_device(stream_, typed));
    return {TableId{table}, *memory, memory};
  }
  UsedRows wait_list(std::int64_t step) {
    kernels::HostReads reads(stream_);
    uses_.list_keys(stream_, kTables, Clock{step}, reads);
    reads.wait();
    auto rows = uses_.list_rows_with_users(stream_, Clock{step}, reads);
    reads.wait();
    return rows;
  }
  // Returns the rows of a step, and forgets it.
  Users take(std::int64_t step) {
    Users users;
    if (uses_.at(Clock{step}) == nullptr) return users;
    auto const used = wait_list(step);
    auto const keys = to_host(stream_, used.keys.view());
    auto const first = to_host(stream_, used.first_user.view()), count = to_host(stream_, used.user_count.view());
    auto const all = to_host(stream_, used.users.view());
    for (std::uint32_t t = 0; t < kTables; ++t) {
      auto const& table = used.tables[t];
      auto const rows = keys.begin() + table.first;
      EXPECT_TRUE(std::is_sorted(rows, rows + table.size));
      for (std::uint32_t row = table.first; row < table.first + table.size; ++row) {
        auto const from = all.begin() + first[row];
        EXPECT_TRUE(users.emplace(std::pair(t, number(keys[row])), std::vector(from, from + count[row])).second);
      }
    }
    uses_.drop(Clock{step});
    return users;
  }

  static constexpr std::size_t kTables = 3;
  Stream stream_{GetParam().is_host() || cuda_device_count() > 0 ? GetParam() : Device::host(), 1};
  AnnouncedUses uses_;
};

TEST_P(AnnouncedUsesOn, ListsEachKeyOfAStepOnceWithItsUsers) {
  uses_.add(Clock{5}, {Rank{1}, {list(0, {7})}});
  uses_.add(Clock{5}, {Rank{0}, {list(0, {7, 9}), list(2, {7}), list(0, {9, 11})}});  // two parts of a table
  uses_.add(Clock{6}, {Rank{1}, {list(0, {7})}});
  EXPECT_TRUE(take(4).empty());
  RowUser const now0{Rank{0}, 1}, both1{Rank{1}, 3}, now1{Rank{1}, 1};
  EXPECT_EQ(take(5), (Users{{{0, 7}, {now0, both1}}, {{0, 9}, {now0}}, {{0, 11}, {now0}}, {{2, 7}, {now0}}}));
  EXPECT_EQ(take(6), (Users{{{0, 7}, {now1}}}));
  EXPECT_TRUE(take(7).empty());
}

// Batches of later steps are announced between plans, some of them for steps that a plan has looked at.
TEST_P(AnnouncedUsesOn, SeesAllUsesOfItsWindow) {
  constexpr std::int64_t kSteps = 40;
  constexpr std::uint32_t kRanks = 40;
  std::mt19937 random(1);
  std::map<std::int64_t, std::map<std::uint32_t, std::map<std::uint32_t, std::vector<std::uint64_t>>>> used;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      if (random() % 3 == 0) continue;
      for (std::uint32_t table = 0; table < kTables; ++table) {
        for (std::uint64_t key = table; key < 200; key += 1 + random() % (rank % 4 == 0 ? 3 : 60)) {
          used[step][rank][table].push_back(key);
        }
      }
    }
  }
  for (std::int64_t now = 0; now < kSteps; ++now) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      // Ranks announce 1 to 20 steps ahead.
      std::int64_t const ahead = 1 + rank % 20;
      for (std::int64_t step = now == 0 ? 0 : now + ahead; step <= now + ahead; ++step) {
        if (!used.contains(step) || !used[step].contains(rank)) continue;
        std::vector<ListKeys> parts;
        for (auto const& [table, keys] : used[step][rank]) parts.push_back(list(table, keys));
        uses_.add(Clock{step}, {Rank{rank}, parts});
      }
    }
    Users expected;
    for (auto const& [step, of_step] : used) {
      if (step < now || step >= now + kPolicyWindow) continue;
      for (auto const& [rank, tables] : of_step) {
        if (step > now + 1 + rank % 20) continue;
        for (auto const& [table, keys] : tables) {
          for (auto const key : keys) {
            auto& users = expected[{table, key}];
            auto user = std::find_if(users.begin(), users.end(),
                                     [rank = rank](RowUser const& one) { return one.rank == Rank{rank}; });
            if (user == users.end()) user = users.insert(user, {Rank{rank}, 0});
            user->steps |= 1U << (step - now);
          }
        }
      }
    }
    std::erase_if(expected, [](auto const& row) {
      return std::none_of(row.second.begin(), row.second.end(), [](RowUser const& user) { return user.uses_now(); });
    });
    for (auto& [row, users] : expected) {
      std::sort(users.begin(), users.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
    }
    EXPECT_EQ(take(now), expected) << "step " << now;
  }
}

// Users are merged in blocks of 65,536 elements on the host, and of 32 on a GPU.
TEST_P(AnnouncedUsesOn, RepeatedUsesAreOneUser) {
  std::int64_t step = 0;
  for (std::uint64_t const before : {0U, 1U, 31U, 32U, 33U, 64'400U, 65'535U, 65'536U, 65'537U}) {
    std::vector<std::uint64_t> keys;
    for (std::uint64_t key = 0; key < before; ++key) keys.push_back(key);
    keys.insert(keys.end(), 1200, 500'000);
    keys.push_back(600'000);
    uses_.add(Clock{step}, {Rank{1}, {list(0, keys), list(1, {500'000}), list(0, {500'000})}});
    uses_.add(Clock{step}, {Rank{2}, {list(0, {400'000, 500'000, 600'000})}});
    uses_.add(Clock{step + 1}, {Rank{1}, {list(0, keys)}});
    for (int const now : {0, 1}) {
      auto const users = take(step++);
      std::uint32_t const steps = now == 0 ? 3 : 1;
      EXPECT_EQ(users.size(), before + (now == 0 ? 4 : 2));
      std::vector<RowUser> expected{{Rank{1}, steps}};
      if (before > 0) {
        EXPECT_EQ(users.at({0, before - 1}), expected) << before;
      }
      if (now == 0) expected.push_back({Rank{2}, 1});
      EXPECT_EQ(users.at({0, 500'000}), expected) << before;
      EXPECT_EQ(users.at({0, 600'000}), expected) << before;
    }
  }
}

// Steps between which nothing is used, and plans that see no new batch: the bits of steps that have passed are gone.
TEST_P(AnnouncedUsesOn, ForgetsStepsThatHavePassed) {
  std::mt19937 random(2);
  for (int repetition = 0; repetition < 8; ++repetition) {
    uses_ = {};
    std::map<std::int64_t, std::map<std::uint64_t, std::vector<std::uint32_t>>> used;  // ranks by step and key
    std::int64_t last = 0;
    for (int i = 0; i < 60; ++i) {
      constexpr std::int64_t kGaps[] = {1, 1, 1, 2, 15, 16, 17, 31, 32, 33, 40};
      last += kGaps[random() % std::size(kGaps)];
      for (std::uint32_t rank = 0; rank < 3; ++rank) {
        for (std::uint64_t key = 0; key < 8; ++key) {
          if (random() % 3 == 0) used[last][key].push_back(rank);
        }
      }
    }
    // All are announced at once, or each as far ahead as a policy sees.
    auto const announce = [&](std::int64_t step) {
      for (std::uint32_t rank = 0; rank < 3; ++rank) {
        std::vector<std::uint64_t> keys;
        for (auto const& [key, ranks] : used[step]) {
          if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) keys.push_back(key);
        }
        uses_.add(Clock{step}, {Rank{rank}, {list(0, keys)}});
      }
    };
    std::vector<std::int64_t> steps;
    for (auto const& [step, keys] : used) steps.push_back(step);
    auto next = steps.begin();
    for (std::int64_t const now : steps) {
      for (; next != steps.end() && (repetition % 2 == 0 || *next < now + kPolicyWindow); ++next) announce(*next);
      Users expected;
      for (auto const& [key, ranks_now] : used[now]) {
        for (std::uint32_t rank = 0; rank < 3; ++rank) {
          RowUser user{Rank{rank}, 0};
          for (auto const& [step, keys] : used) {
            if (step < now || step >= now + kPolicyWindow || !keys.contains(key)) continue;
            auto const& ranks = keys.at(key);
            if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) user.steps |= 1U << (step - now);
          }
          if (user.steps != 0) expected[{0, key}].push_back(user);
        }
      }
      EXPECT_EQ(take(now), expected) << "step " << now << ", repetition " << repetition;
    }
  }
}

TEST_P(AnnouncedUsesOn, ReportTheMostUsedRows) {
  auto const add = [&](std::uint32_t table, std::uint64_t key, std::int64_t uses) {
    for (std::int64_t step = 0; step < uses; ++step) uses_.add(Clock{step}, {Rank{1}, {list(table, {key})}});
  };
  add(1, 0, 4), add(1, 2, 7), add(0, 5, 5), add(0, 6, 4), add(1, 1, 1);
  auto const used = wait_list(0);
  auto const rows = wait_hottest_rows(stream_, used, 4);
  ASSERT_EQ(rows.size(), 4U);
  std::vector<std::pair<std::uint32_t, std::uint64_t>> ranked;
  for (auto const& row : rows) ranked.emplace_back(number(row.table), number(row.key));
  // Among equals, the lower table.
  EXPECT_EQ(ranked, (std::vector<std::pair<std::uint32_t, std::uint64_t>>{{1, 2}, {0, 5}, {0, 6}, {1, 0}}));
  EXPECT_EQ(rows[0].uses, 7U);
  EXPECT_EQ(rows[0].users, (std::vector{RowUser{Rank{1}, 0x7F}}));
  EXPECT_EQ(wait_hottest_rows(stream_, used, 64).size(), 5U);
}

// While ranks announce as far ahead, the batches of a step are forgotten when the next one begins. At the end, those of
// the hot step stay, and those after it.
TEST_P(AnnouncedUsesOn, KeepTheBatchesOfTheLastStepsOnly) {
  constexpr std::int64_t kSteps = 9;
  HotStep hot;
  std::vector<std::weak_ptr<Array<Key> const>> keys;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    auto part = list(0, {7, static_cast<std::uint64_t>(20 + step)});
    keys.push_back(part.memory);
    uses_.add(Clock{step}, {Rank{1}, {std::move(part)}});
  }
  auto const begin = [&](std::int64_t step, std::size_t ahead) {
    hot.begin(Clock{step}, uses_.drop(Clock{step}), ahead);
    std::vector<std::int64_t> kept;
    for (std::int64_t past = 0; past <= step && past < kSteps; ++past) {
      if (!keys[static_cast<std::size_t>(past)].expired()) kept.push_back(past);
    }
    return kept;
  };
  using Steps = std::vector<std::int64_t>;
  EXPECT_TRUE(hot.wait_hottest_rows(stream_, kTables, uses_, 9).empty());
  EXPECT_EQ(begin(0, 3), Steps{0});
  EXPECT_EQ(begin(1, 4), Steps{1});
  EXPECT_EQ(begin(2, 4), Steps{2});
  EXPECT_EQ(begin(3, 3), (Steps{2, 3})) << "fewer";
  EXPECT_EQ(begin(4, 3), Steps{4}) << "no fewer again";
  for (std::int64_t step = 5; step < kSteps; ++step) EXPECT_EQ(begin(step, 8 - static_cast<std::size_t>(step))[0], 5);
  EXPECT_EQ(begin(kSteps, 0), (Steps{5, 6, 7, 8})) << "a step without batches";
  auto const rows = hot.wait_hottest_rows(stream_, kTables, uses_, 9);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].key, Key{7});
  EXPECT_EQ(rows[0].uses, 4U);
  EXPECT_EQ(rows[1].key, Key{25});
}

INSTANTIATE_TEST_SUITE_P(Devices, AnnouncedUsesOn, test::kDevices, test::device_name);

}  // namespace
}  // namespace gpups::cache::announced_uses_test
