// SPDX-License-Identifier: Apache-2.0
// Checkpoints: equal bits after a restore on any number of ranks, and an error for every damaged file.
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "gpups/gpups.hpp"
#include "tests/cache/value_dependent_step.hpp"

namespace gpups::test::checkpoint_test {
namespace {

namespace fs = std::filesystem;

class Checkpoint : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("gpups-checkpoint-" + std::to_string(std::random_device{}()));
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

std::vector<Group> group_of(int ranks) { return ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks); }

TableOptions table(std::string name, Optimizer::Kind kind, std::size_t dim = 5) {
  return {.name = std::move(name),
          .dim = dim,
          .initializer = {Initializer::Kind::kNormal, 0.1F},
          .optimizer = {.kind = kind, .learning_rate = 0.1F}};
}

constexpr std::size_t kSchema = 6;

void add_tables(Store& store, TableOptions const& first = table("a", Optimizer::Kind::kAdagrad)) {
  store.add_table(first);
  store.add_table(table("b", Optimizer::Kind::kRowwiseAdagrad, 3));
  store.add_table(table("c", Optimizer::Kind::kSgd, 1));
  store.add_table(table("d", Optimizer::Kind::kAdam));
  store.add_table(table("e", Optimizer::Kind::kLamb, 4));
  store.add_table(table("f", Optimizer::Kind::kFtrl, 20));
}

// Trains up to step `last`.
void train(Store& store, std::int64_t last) {
  auto stream = store.make_stream();
  while (number(store.clock()) < last) {
    std::vector<std::vector<Key>> keys(kSchema);
    std::size_t samples = 0;  // one for each microbatch of this rank
    std::vector<TableBatch> parts;
    for (std::uint32_t t = 0; t < kSchema; ++t) {
      for (std::uint64_t m = 0; m < 8; ++m) {
        if (m * static_cast<std::uint64_t>(store.ranks()) / 8 != number(store.rank())) continue;
        if (t == 0) ++samples;
        std::mt19937_64 random(static_cast<std::uint64_t>(number(store.clock())) * 100 + m * kSchema + t);
        for (int i = 0; i < 20; ++i) keys[t].push_back(Key{random() % 300});
      }
      parts.push_back({.table = TableId{t}, .keys = View<Key const>(keys[t])});
    }
    run_value_dependent_step(store, stream, parts, samples);
  }
}

std::uint64_t hash_after(int ranks, std::int64_t steps) {
  std::uint64_t hash = 0;
  run_ranks(group_of(ranks), [&](Group group) {
    Store store(group, {});
    add_tables(store);
    train(store, steps);
    auto const mine = store.table_hash();
    if (number(store.rank()) == 0) hash = mine;
    store.wait_barrier();
  });
  return hash;
}

TEST_F(Checkpoint, ResumedRunEndsWithSameBits) {
  auto const undisturbed = hash_after(1, 12);
  for (int before : {1, 2, 4}) {
    EXPECT_EQ(hash_after(before, 12), undisturbed);
    for (int after : {1, 2, 3, 4}) {
      run_ranks(group_of(before), [&](Group group) {
        Store store(group, {});
        add_tables(store);
        train(store, 5);
        std::vector<Blob> const blobs{{"state", "12345"}, {"empty", ""}};
        store.save(folder_, blobs);
        store.wait_barrier();
      });
      std::uint64_t resumed = 0;
      run_ranks(group_of(after), [&](Group group) {
        Store store(group, {});
        add_tables(store);
        auto const blobs = store.restore(folder_);
        EXPECT_EQ(blobs.size(), 2U);
        EXPECT_EQ(blobs.at(0).bytes, "12345");
        EXPECT_EQ(store.clock(), Clock{5});
        train(store, 12);
        auto const mine = store.table_hash();
        if (number(store.rank()) == 0) resumed = mine;
        store.wait_barrier();
      });
      EXPECT_EQ(resumed, undisturbed) << before << " ranks, then " << after;
    }
  }
}

// A run that needs a lower learning rate gets it so: a Store does not change the rate of its tables.
TEST_F(Checkpoint, TablesMayHaveAnotherLearningRate) {
  auto const sgd = [](float rate) {
    TableOptions first = table("a", Optimizer::Kind::kSgd);
    first.optimizer.learning_rate = rate;
    return first;
  };
  auto const keys = [] {
    std::vector<Key> all;
    for (std::uint64_t key = 0; key < 300; ++key) all.push_back(Key{key});
    return all;
  }();
  auto const values = [&](float rate, std::int64_t last, bool restored) {
    Store store(Group::alone(), {});
    add_tables(store, sgd(rate));
    if (restored) store.restore(folder_);
    train(store, last);
    if (!restored) store.save(folder_, {});
    auto stream = store.make_stream();
    Matrix<float> rows(Device::host(), keys.size(), 5);
    store.lookup(stream, TableId{0}, View<Key const>(keys), rows.view(), {});
    std::vector<float> all;
    for (std::size_t i = 0; i < keys.size(); ++i) all.insert(all.end(), rows.view().row(i), rows.view().row(i) + 5);
    return all;
  };
  auto const saved = values(0.1F, 5, false), same = values(0.1F, 6, true), lower = values(0.025F, 6, true);
  int changed = 0;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    EXPECT_NEAR(lower[i] - saved[i], (same[i] - saved[i]) / 4, 1e-6);
    changed += same[i] != saved[i];
  }
  EXPECT_GT(changed, 100);
}

TEST_F(Checkpoint, SavingDoesNotChangeTables) {
  Store store(Group::alone(), {});
  add_tables(store);
  for (std::int64_t last = 1; last <= 12; ++last) {
    train(store, last);
    store.save(folder_, {});
  }
  EXPECT_EQ(store.table_hash(), hash_after(1, 12));
  // Only the folder of the last save is left.
  int folders = 0;
  for (auto const& entry : fs::directory_iterator(folder_)) folders += entry.is_directory() ? 1 : 0;
  EXPECT_EQ(folders, 1);
}

TEST_F(Checkpoint, RejectsDamagedFiles) {
  {
    Store store(Group::alone(), {});
    add_tables(store);
    train(store, 3);
    std::vector<Blob> const blobs{{"state", "some bytes"}};
    store.save(folder_, blobs);
  }
  std::vector<fs::path> files;
  for (auto const& entry : fs::recursive_directory_iterator(folder_)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  ASSERT_EQ(files.size(), 3U);  // rows, blob, manifest
  auto const expect_rejected = [&](std::string const& what) {
    for (int ranks : {1, 2}) {
      run_ranks(group_of(ranks), [&](Group group) {
        Store store(group, {});
        add_tables(store);
        EXPECT_THROW(store.restore(folder_), Error) << what;
        EXPECT_EQ(store.size(TableId{0}), 0U) << what;
        store.wait_barrier();
      });
    }
  };
  for (auto const& file : files) {
    auto const backup = fs::path(file).concat(".backup");
    fs::copy_file(file, backup);
    fs::resize_file(file, fs::file_size(file) / 2);
    expect_rejected("cut " + file.string());
    fs::copy_file(backup, file, fs::copy_options::overwrite_existing);
    {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekp(static_cast<std::streamoff>(fs::file_size(file) / 2));
      stream.put('\x7f');
    }
    if (file.filename() != "manifest.json") expect_rejected("altered " + file.string());
    fs::remove(file);
    expect_rejected("missing " + file.string());
    fs::copy_file(backup, file);
    fs::remove(backup);
  }
  Store store(Group::alone(), {});
  add_tables(store);
  EXPECT_EQ(store.restore(folder_).at(0).bytes, "some bytes");  // the files are intact again
}

TEST_F(Checkpoint, ErrorNamesDifferentOption) {
  {
    Store store(Group::alone(), {});
    add_tables(store);
    train(store, 1);
    store.save(folder_, {});
  }
  auto const expect = [&](StoreOptions const& options, TableOptions first, std::string const& word) {
    Store store(Group::alone(), options);
    add_tables(store, first);
    try {
      store.restore(folder_);
      ADD_FAILURE() << word;
    } catch (Error const& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  expect({.seed = 9}, table("a", Optimizer::Kind::kAdagrad), "seed");
  expect({}, table("z", Optimizer::Kind::kAdagrad), "name");
  expect({}, table("a", Optimizer::Kind::kAdagrad, 6), "dim");
  expect({}, table("a", Optimizer::Kind::kSgd), "optimizer");
  auto other = table("a", Optimizer::Kind::kAdagrad);
  other.initializer.scale = 0.2F;
  expect({}, other, "initializer");
}

TEST_F(Checkpoint, FailedSaveKeepsOldCheckpoint) {
  Store store(Group::alone(), {});
  add_tables(store);
  train(store, 2);
  std::vector<Blob> const blobs{{"which", "old"}};
  store.save(folder_, blobs);
  train(store, 4);
  // The manifest cannot be written: a folder has its temporary name.
  fs::create_directory(folder_ / "manifest.json.new");
  EXPECT_THROW(store.save(folder_, {}), Error);
  fs::remove(folder_ / "manifest.json.new");
  Store again(Group::alone(), {});
  add_tables(again);
  EXPECT_EQ(again.restore(folder_).at(0).bytes, "old");
  EXPECT_EQ(again.clock(), Clock{2});
  store.save(folder_, {});  // training and saving still work
}

TEST_F(Checkpoint, ReportsFolderThatCannotBeCreated) {
  Store store(Group::alone(), {});
  add_tables(store);
  EXPECT_THROW(store.save("/proc/nowhere/checkpoint", {}), Error);
  EXPECT_THROW(store.restore(folder_), Error);
}

}  // namespace
}  // namespace gpups::test::checkpoint_test
