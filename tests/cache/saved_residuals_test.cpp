// SPDX-License-Identifier: Apache-2.0
// Residuals of gradients when a run is saved, and when rows are erased or expire.
#include "tests/cache/residuals_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::residuals::saved_residuals_test {
namespace {

// A run that is saved after some steps and resumed on another number of ranks.
struct Halves {
  int before, after;  // ranks
};
class SavedResiduals : public testing::TestWithParam<Halves> {};

// What happens to the table after the restore.
struct Resumed {
  bool moves, compresses;  // its rows move before the first step; it still has gradient compression
};

// Moves the rows to other ranks than their homes, some of them twice.
void move_rows(Store& store, Workload const& work) {
  auto stream = store.make_stream();
  auto const ranks = static_cast<std::uint64_t>(store.ranks());
  for (std::uint64_t const every : {1, 3}) {
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < work.keys; k += every) {
      if ((k / every + every) % ranks == number(store.rank())) keys.push_back(Key{k * 0x9E3779B97F4A7C15U});
    }
    store.localize(stream, TableId{0}, View<Key const>(keys));
  }
}

void expect_nothing_lost(Halves halves, RowCodec codec, Resumed resumed) {
  TemporaryFolder const folder;
  Workload const work{
      .idle_share = 0,
      .gradient_compression = {.codec = codec, .filter = {.age_max = 9, .density = 0.1F}, .capacity_rows = 20}};
  Sums sums;
  std::size_t held = 0;
  auto const half = [&](int ranks, int first, bool restores, bool ends) {
    for (int s = first; s < first + 10; ++s) {
      for (int q = 0; q < ranks; ++q) add(sums, parts_of(work, s, q));
    }
    auto const group = ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks);
    run_ranks(group, [&](Group mine) {
      Store store(mine, {.threads = 1});
      store.add_table(table(restores && !resumed.compresses ? RowCompression{} : work.gradient_compression));
      if (restores) store.restore(folder.path());
      if (restores && resumed.moves) move_rows(store, work);
      int const rank = static_cast<int>(number(store.rank()));
      for (int s = first; s < first + 10; ++s) EXPECT_FALSE(step(store, work, s, parts_of(work, s, rank), false));
      std::size_t const wrong = wrong_numbers(store, sums);
      if (rank == 0) held += wrong;
      if (!ends) return store.save(folder.path(), {});
      for (int s = 0; s < (resumed.moves ? 2 : 1); ++s) {  // a second step for rows that are away from their homes
        store.flush_residuals();
        store.advance_clock();
        store.wait_applied();
      }
      EXPECT_EQ(wrong_numbers(store, sums), 0U);
    });
  };
  half(halves.before, 0, false, false);
  EXPECT_GT(held, 0U);  // else no residual was saved
  half(halves.after, 10, true, true);
}

TEST_P(SavedResiduals, SurviveRestoreOnAnyRanks) {
  for (auto const codec : {RowCodec::kLossless, RowCodec::kInt4}) {
    for (bool const compresses : {true, false}) {
      expect_nothing_lost(GetParam(), codec, {.moves = false, .compresses = compresses});
    }
  }
}

TEST_P(SavedResiduals, FollowRowsThatMoveAfterRestore) {
  for (auto const codec : {RowCodec::kLossless, RowCodec::kInt4}) {
    for (bool const compresses : {true, false}) {
      expect_nothing_lost(GetParam(), codec, {.moves = true, .compresses = compresses});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, SavedResiduals,
                         testing::Values(Halves{2, 2}, Halves{2, 3}, Halves{2, 1}, Halves{3, 2}, Halves{4, 3}),
                         [](auto const& halves) {
                           return fmt::format("{}then{}", halves.param.before, halves.param.after);
                         });

TEST(GradientResiduals, ResumedRunEndsWithSameBits) {
  TemporaryFolder const folder;
  RowCompression const all{
      .codec = RowCodec::kInt4, .top_k = 3, .filter = {.age_max = 5, .density = 0.3F}, .capacity_rows = 7};
  Workload const work{.ranks = 3, .gradient_compression = all};
  std::uint64_t through = 0, resumed = 0;
  run_ranks(Group::threads(3), [&](Group mine) {
    Store store(mine, {.threads = 1});
    store.add_table(table(all));
    int const rank = static_cast<int>(number(store.rank()));
    for (int s = 0; s < 20; ++s) {
      if (s == 10) store.save(folder.path(), {});
      step(store, work, s, parts_of(work, s, rank), false);
    }
    auto const hash = store.table_hash();
    if (rank == 0) through = hash;
  });
  run_ranks(Group::threads(3), [&](Group mine) {
    Store store(mine, {.threads = 1});
    store.add_table(table(all));
    int const rank = static_cast<int>(number(store.rank()));
    store.restore(folder.path());
    for (int s = 10; s < 20; ++s) step(store, work, s, parts_of(work, s, rank), false);
    auto const hash = store.table_hash();
    if (rank == 0) resumed = hash;
  });
  EXPECT_EQ(resumed, through);
}

// Rows that a rank has got by localize() have residuals there, which the next steps add: also if a restore comes first.
TEST(GradientResiduals, ResidualsOfRowsThatArrivedAreSaved) {
  TemporaryFolder const folder;
  Workload const work{.idle_share = 0, .gradient_compression = {.codec = RowCodec::kInt4}};
  Sums sums;
  for (int s = 0; s < 10; ++s) {
    for (int q = 0; q < 2; ++q) add(sums, parts_of(work, s, q));
  }
  for (bool const restores : {false, true}) {
    run_ranks(Group::threads(2), [&](Group mine) {
      Store store(mine, {.threads = 1});
      store.add_table(table(work.gradient_compression));
      if (restores) store.restore(folder.path());
      auto stream = store.make_stream();
      int const rank = static_cast<int>(number(store.rank()));
      if (!restores) {
        for (int s = 0; s < 10; ++s) EXPECT_FALSE(step(store, work, s, parts_of(work, s, rank), false));
        std::vector<Key> keys;  // all rows, to rank 0
        for (std::uint64_t k = 0; k < work.keys && rank == 0; ++k) keys.push_back(Key{k * 0x9E3779B97F4A7C15U});
        store.localize(stream, TableId{0}, View<Key const>(keys));
        store.save(folder.path(), {});
      }
      std::size_t const before = wrong_numbers(store, sums);
      // No batch uses the rows: first only what rank 0 has sent early is added, then what rank 1 flushes.
      for (int s = 0; s < 2; ++s) EXPECT_FALSE(step(store, work, 10 + s, {{}}, false));
      EXPECT_LT(wrong_numbers(store, sums), before);
      if (rank == 1) store.flush_residuals();
      for (int s = 0; s < 2; ++s) EXPECT_FALSE(step(store, work, 12 + s, {{}}, false));
      EXPECT_EQ(wrong_numbers(store, sums), 0U) << (restores ? "after a restore" : "before one");
    });
  }
}

// A checkpoint has residuals of rows that have moved to their senders before the next step. Before this step, other
// ranks may get the rows, or the rows may be erased; or the step is rejected, or the run is saved again.
enum class AfterRestore { kNothing, kLocalize, kErase, kReject, kSave };
class MovedBeforeRestore : public testing::TestWithParam<AfterRestore> {};

TEST_P(MovedBeforeRestore, NothingIsLostOrAddedTwice) {
  TemporaryFolder const folder;
  constexpr int kRanks = 3, kSaved = 9, kSteps = 18;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Workload const work{.ranks = kRanks,
                        .seed = seed,
                        .idle_share = 0,
                        .gradient_compression = {.codec = RowCodec::kInt4},
                        .policy = PlacementPolicy::kRelocate,
                        .lookahead = 4};
    bool const erases = GetParam() == AfterRestore::kErase;
    Sums sums;
    int const counted = erases ? kSaved : 0;  // the first step whose gradients are in the rows
    for (int s = counted; s < kSteps; ++s) {
      bool const rejects = s == kSaved && GetParam() == AfterRestore::kReject;
      for (int q = 0; q < kRanks && !rejects; ++q) add(sums, parts_of(work, s, q));
    }
    auto const train_on = [&](Store& store, int first, int last, int end) {
      int const rank = static_cast<int>(number(store.rank()));
      std::deque<std::optional<PreparedBatch>> ahead;
      for (int s = first, prepared = first; s < last; ++s) {
        for (; prepared < std::min(end, s + work.lookahead + 1); ++prepared) {
          ahead.push_back(prepare(store, work, prepared, parts_of(work, prepared, rank)));
        }
        bool const rejects = s == kSaved && rank == 1 && GetParam() == AfterRestore::kReject;
        bring(store, ahead.front(), parts_of(work, s, rank), rejects);
        was_rejected(store);
        ahead.pop_front();
      }
    };
    auto const on_ranks = [&](auto const& of_rank) {
      run_ranks(Group::threads(kRanks), [&](Group mine) {
        Store store(mine, {.threads = 1, .placement = work.policy, .placement_bytes_min = 0});
        store.add_table(table(work.gradient_compression));
        of_rank(store);
      });
    };
    on_ranks([&](Store& store) {
      train_on(store, 0, kSaved, kSteps);
      store.save(folder.path(), {});
    });
    if (GetParam() == AfterRestore::kSave) {
      on_ranks([&](Store& store) {
        store.restore(folder.path());
        store.save(folder.path(), {});
      });
    }
    on_ranks([&](Store& store) {
      store.restore(folder.path());
      auto stream = store.make_stream();
      std::vector<Key> keys;  // all of them; other ranks claim and erase none
      for (std::uint64_t k = 0; k < work.keys && store.rank() == Rank{0}; ++k) {
        keys.push_back(Key{k * 0x9E3779B97F4A7C15U});
      }
      if (GetParam() == AfterRestore::kLocalize) store.localize(stream, TableId{0}, View<Key const>(keys));
      if (erases) store.erase(stream, TableId{0}, View<Key const>(keys));
      train_on(store, kSaved, kSteps, kSteps);
      for (int s = 0; s < 2; ++s) {
        store.flush_residuals();
        store.advance_clock();
        store.wait_applied();
      }
      EXPECT_EQ(wrong_numbers(store, sums), 0U) << "seed " << seed;
      EXPECT_EQ(store.size(TableId{0}), sums.size()) << "seed " << seed;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(AfterRestores, MovedBeforeRestore,
                         testing::Values(AfterRestore::kNothing, AfterRestore::kLocalize, AfterRestore::kErase,
                                         AfterRestore::kReject, AfterRestore::kSave));

TEST(GradientResiduals, ErasedAndExpiredRowsStayRemoved) {
  RowCompression const gradient_compression{
      .codec = RowCodec::kInt4, .filter = {.age_max = 4, .density = 0.1F}, .capacity_rows = 8};
  run_ranks(Group::threads(3), [&](Group mine) {
    Store store(mine, {.threads = 1});
    auto options = table(gradient_compression);
    options.refresh_compression = {.codec = RowCodec::kInt8};
    store.add_table(options);
    Workload const work{.ranks = 3, .idle_share = 0};
    int const rank = static_cast<int>(number(store.rank()));
    auto stream = store.make_stream();
    for (int s = 0; s < 6; ++s) EXPECT_FALSE(step(store, work, s, parts_of(work, s, rank), false));
    // All rows are erased, some by all ranks and some by one. No residual may create a row again.
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < work.keys; ++k) {
      if (k % 2 == 0 || rank == 1) keys.push_back(Key{k * 0x9E3779B97F4A7C15U});
    }
    store.erase(stream, TableId{0}, View<Key const>(keys));
    store.flush_residuals();
    for (int s = 6; s < 12; ++s) EXPECT_FALSE(step(store, work, s, {{}}, false));
    EXPECT_EQ(store.size(TableId{0}), 0U);

    Sums sums;
    for (int s = 12; s < 18; ++s) {
      EXPECT_FALSE(step(store, work, s, parts_of(work, s, rank), false));
      for (int q = 0; q < 3; ++q) add(sums, parts_of(work, s, q));
    }
    store.flush_residuals();
    EXPECT_FALSE(step(store, work, 18, {{}}, false));
    EXPECT_EQ(wrong_numbers(store, sums), 0U);  // of new rows alone

    for (int s = 19; s < 22; ++s) EXPECT_FALSE(step(store, work, s, parts_of(work, s, rank), false));
    for (int s = 22; s < 32; ++s) EXPECT_FALSE(step(store, work, s, {{}}, false));  // delayed gradients have arrived
    store.expire(TableId{0}, 1);
    EXPECT_EQ(store.size(TableId{0}), 0U);
    store.flush_residuals();  // the rounding errors of the codec
    EXPECT_FALSE(step(store, work, 32, {{}}, false));
    EXPECT_EQ(store.size(TableId{0}), 0U);
  });
}

}  // namespace
}  // namespace gpups::test::residuals::saved_residuals_test
