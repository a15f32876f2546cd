// SPDX-License-Identifier: Apache-2.0
// Tables whose values have 16 bits: equal bits on any number of ranks and threads and after a resume, and equal values
// from every call that reads rows.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "gpups/gpups.hpp"
#include "kernels/base/half.hpp"
#include "tests/cache/value_dependent_step.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::fp16_values_test {
namespace {

namespace fs = std::filesystem;
using Kind = Optimizer::Kind;

std::vector<Group> group_of(int ranks) { return ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks); }

TableOptions table(std::string name, DataType values, Kind kind, std::size_t dim, std::uint32_t admission_count = 1) {
  return {.name = std::move(name),
          .dim = dim,
          .initializer = {Initializer::Kind::kNormal, 0.1F},
          .optimizer = {.kind = kind, .learning_rate = 0.1F, .initial_accumulator = 0.01F},
          .admission_count = admission_count,
          .value_type = values};
}

// Tables with every kind of row padding and every optimizer.
std::vector<TableOptions> tables() {
  return {table("a", DataType::kBFloat16, Kind::kAdagrad, 5), table("b", DataType::kHalf, Kind::kRowwiseAdagrad, 20),
          table("c", DataType::kBFloat16, Kind::kSgd, 1, 3),  table("d", DataType::kHalf, Kind::kAdam, 40),
          table("e", DataType::kBFloat16, Kind::kLamb, 70),   table("f", DataType::kHalf, Kind::kFtrl, 130, 2),
          table("g", DataType::kFloat, Kind::kAdagrad, 12)};
}

std::vector<Key> keys_of(std::int64_t step, std::uint64_t microbatch, std::uint32_t table) {
  std::mt19937_64 random(static_cast<std::uint64_t>(step) * 1000 + microbatch * 10 + table);
  std::vector<Key> keys(20);
  for (auto& key : keys) key = Key{random() % 300};
  return keys;
}

// Trains up to step `last`, with eight microbatches a step.
void train(Store& store, std::int64_t last) {
  auto stream = store.make_stream();
  std::size_t const count = tables().size();
  while (number(store.clock()) < last) {
    std::vector<std::vector<Key>> keys(count);
    std::vector<TableBatch> parts;
    std::size_t samples = 0;
    for (std::uint64_t m = 0; m < 8; ++m) {
      if (m * static_cast<std::uint64_t>(store.ranks()) / 8 != number(store.rank())) continue;
      ++samples;
      for (std::uint32_t t = 0; t < count; ++t) {
        auto const more = keys_of(number(store.clock()), m, t);
        keys[t].insert(keys[t].end(), more.begin(), more.end());
      }
    }
    for (std::uint32_t t = 0; t < count; ++t) parts.push_back({.table = TableId{t}, .keys = View<Key const>(keys[t])});
    run_value_dependent_step(store, stream, parts, samples);
  }
}

Store store_of(Group const& group, int threads = 1) {
  Store store(group, {.threads = threads});
  for (auto const& options : tables()) store.add_table(options);
  return store;
}

// Calls `act` on all ranks and returns the result of rank 0.
template <class Act>
std::uint64_t run_on_ranks(int ranks, Act act) {
  std::uint64_t result = 0;
  run_ranks(group_of(ranks), [&](Group group) {
    auto store = store_of(group, 1 + ranks % 2);
    auto const mine = act(store);
    if (number(store.rank()) == 0) result = mine;
    store.wait_barrier();
  });
  return result;
}

std::uint64_t hash_after(int ranks, std::int64_t steps) {
  return run_on_ranks(ranks, [=](Store& store) {
    train(store, steps);
    return store.table_hash();
  });
}

std::vector<float> look_up(Store& store, TableId id, std::vector<Key> const& keys) {
  auto stream = store.make_stream();
  Matrix<float> out(Device::host(), keys.size(), store.table(id).dim);
  store.lookup(stream, id, View<Key const>(keys), out, {});
  std::vector<float> values;
  for (std::size_t i = 0; i < keys.size(); ++i) values.insert(values.end(), out.row(i).begin(), out.row(i).end());
  return values;
}

bool is_representable(float x, DataType type) {
  if (type == DataType::kHalf) return kernels::to_float(kernels::round_to<kernels::Half>(x)) == x;
  return type == DataType::kFloat || kernels::to_float(kernels::round_to<kernels::BFloat16>(x)) == x;
}

std::vector<Key> first_keys(std::uint64_t n) {
  std::vector<Key> keys;
  for (std::uint64_t k = 0; k < n; ++k) keys.push_back(Key{k});
  return keys;
}

TEST(Fp16Values, BitsAreEqualForAnyRanksAndThreads) {
  auto const one = hash_after(1, 8);
  for (int ranks : {2, 3, 4}) EXPECT_EQ(hash_after(ranks, 8), one) << ranks;
  auto threads = store_of(Group::alone(), 1);
  train(threads, 8);
  EXPECT_EQ(threads.table_hash(), one);
  Store floats(Group::alone(), {});
  for (auto options : tables()) {
    options.value_type = DataType::kFloat;
    floats.add_table(options);
  }
  train(floats, 8);
  EXPECT_NE(floats.table_hash(), one);
}

TEST(Fp16Values, ResumedRunEndsWithSameBits) {
  auto const undisturbed = hash_after(1, 8);
  for (int before : {1, 2, 3}) {
    TemporaryFolder const folder;
    auto const saved = run_on_ranks(before, [&](Store& store) {
      train(store, 5);
      store.save(folder.path(), {});
      return store.table_hash();
    });
    for (int after : {1, 2, 3}) {
      auto const resumed = run_on_ranks(after, [&](Store& store) {
        store.restore(folder.path());
        EXPECT_EQ(store.table_hash(), saved);
        train(store, 8);
        return store.table_hash();
      });
      EXPECT_EQ(resumed, undisturbed) << before << " ranks, then " << after;
    }
  }
}

// Look-ups, scans, pulls and pooled pulls, for trained rows and for keys without a row.
TEST(Fp16Values, AllReadsReturnSameValues) {
  for (int ranks : {1, 2}) {
    run_on_ranks(ranks, [&](Store& store) {
      train(store, 5);
      store.wait_applied();
      auto stream = store.make_stream();
      for (std::uint32_t t = 0; t < tables().size(); ++t) {
        std::size_t const dim = store.table(TableId{t}).dim;
        auto const keys = first_keys(400);  // those from 300 on have no row
        auto const values = look_up(store, TableId{t}, keys);
        for (float const x : values) EXPECT_TRUE(is_representable(x, store.table(TableId{t}).value_type)) << x;
        store.scan(stream, TableId{t}, [&](View<Key const> scanned, MatrixView<float const> rows) {
          for (std::size_t i = 0; i < scanned.size(); ++i) {
            for (std::size_t j = 0; j < dim; ++j) EXPECT_EQ(rows.row(i)[j], values[number(scanned[i]) * dim + j]);
          }
        });
        std::vector<std::uint32_t> offsets;
        for (std::uint32_t b = 0; b <= 400; b += 2) offsets.push_back(b);
        TableBatch const part{TableId{t}, View<Key const>(keys), View<std::uint32_t const>(offsets)};
        store.wait_barrier();
        auto const batch = store.prepare(stream, store.clock(), {&part, 1}, 1);
        store.wait_ready(batch);
        Matrix<float> rows(Device::host(), batch.rows(0), dim), pooled(Device::host(), 200, dim);
        MatrixView<float> const out = rows;
        store.pull(stream, batch, {&out, 1});
        store.pull_pooled(stream, batch, 0, Pooling::kSum, pooled);
        for (std::size_t e = 0; e < keys.size(); ++e) {
          for (std::size_t j = 0; j < dim; ++j) {
            EXPECT_EQ(rows.row(batch.positions(0)[e])[j], values[e * dim + j]) << t << " " << e;
            if (e % 2 != 0) continue;
            EXPECT_EQ(pooled.row(e / 2)[j], values[e * dim + j] + values[(e + 1) * dim + j]);
          }
        }
        Matrix<float> const none(Device::host(), 200, dim);
        memory::fill_bytes(stream, none.view().data(), 0, none.view().flat().bytes());
        TableGradients const gradients{.sources = none};
        store.push(stream, batch, {&gradients, 1});
        store.advance_clock();
        store.wait_applied();
      }
      return std::uint64_t{0};
    });
  }
}

// Each update is 1/100 of the distance between two numbers: rounding to nearest would lose every one of them.
TEST(Fp16Values, StochasticRoundingKeepsSmallUpdates) {
  for (auto const values : {DataType::kBFloat16, DataType::kHalf}) {
    double const unit = values == DataType::kHalf ? 0x1p-10 : 0x1p-7;  // distance of numbers between 1 and 2
    Store store(Group::alone(), {});
    store.add_table({.name = "t",
                     .dim = 256,
                     .initializer = {Initializer::Kind::kConstant, 1},
                     .optimizer = {.kind = Kind::kSgd, .learning_rate = static_cast<float>(unit / 100)},
                     .value_type = values});
    auto stream = store.make_stream();
    auto const keys = first_keys(8);
    Matrix<float> sources(Device::host(), 8, 256);
    for (std::size_t i = 0; i < 8; ++i) std::fill(sources.row(i).begin(), sources.row(i).end(), -1.0F);
    for (int step = 0; step < 1000; ++step) {
      TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
      auto const batch = store.prepare(stream, store.clock(), {&part, 1}, 1);
      store.wait_ready(batch);
      TableGradients const gradients{.sources = sources};
      store.push(stream, batch, {&gradients, 1});
      store.advance_clock();
    }
    double sum = 0, squares = 0;
    auto const got = look_up(store, TableId{0}, keys);
    for (float const x : got) {
      double const steps = (static_cast<double>(x) - 1) / unit;
      sum += steps, squares += steps * steps;
    }
    double const n = static_cast<double>(got.size()), mean = sum / n;
    EXPECT_NEAR(mean, 10, 0.3);                                // 1000 / 100, four deviations of a mean of 2048
    EXPECT_NEAR(squares / n - mean * mean, 9.9, 1.3) << mean;  // draws are independent
  }
}

TEST(Fp16Values, HalveMemoryAndFileSize) {
  auto const bytes = [](DataType values) {
    auto options = table("t", values, Kind::kSgd, 64);
    options.expected_rows = 1 << 20;
    Store store(Group::alone(), {});
    auto const id = store.add_table(options);
    std::uint64_t planned = 0;
    for (auto const& line : store.memory_plan()) {
      if (line.what == "table 't': values") planned = line.bytes;
    }
    auto stream = store.make_stream();
    auto const keys = first_keys(1000);
    Matrix<float> const ones(Device::host(), keys.size(), 64);
    memory::fill_bytes(stream, ones.view().data(), 0x3F, ones.view().flat().bytes());
    store.assign(stream, id, View<Key const>(keys), ones);
    TemporaryFolder const folder;
    store.save(folder.path(), {});
    return std::pair{planned, fs::file_size(folder.path() / "step-0" / "rows-0-of-1.bin")};
  };
  auto const floats = bytes(DataType::kFloat);
  for (auto const values : {DataType::kBFloat16, DataType::kHalf}) {
    constexpr std::size_t kList = std::size_t{1} << 20;  // of chunks
    EXPECT_EQ(2 * (bytes(values).first - kList), floats.first - kList);
    EXPECT_EQ(floats.second - bytes(values).second, 1000U * 64 * 2);
  }
}

TEST(Fp16Values, RejectsCheckpointOfOtherType) {
  TemporaryFolder const folder;
  {
    Store store(Group::alone(), {});
    store.add_table(table("t", DataType::kBFloat16, Kind::kSgd, 3));
    store.save(folder.path(), {});
  }
  for (auto const values : {DataType::kFloat, DataType::kHalf}) {
    Store store(Group::alone(), {});
    store.add_table(table("t", values, Kind::kSgd, 3));
    expect_error([&] { store.restore(folder.path()); },
                 {"value_type of table 't' is bfloat16 in the checkpoint",
                  values == DataType::kFloat ? "float32 here" : "float16 here", "use the checkpoint's configuration"});
  }
}

// Checkpoints of format 2 contain no data types.
TEST(Fp16Values, CheckpointWithoutTypeIsFloat32) {
  TemporaryFolder const folder;
  auto const add = [](Store& store, DataType values) { store.add_table(table("t", values, Kind::kSgd, 3)); };
  std::uint64_t hash = 0;
  {
    Store store(Group::alone(), {});
    add(store, DataType::kFloat);
    auto stream = store.make_stream();
    auto const keys = first_keys(5);
    Matrix<float> const zeros(Device::host(), 5, 3);
    memory::fill_bytes(stream, zeros.view().data(), 0, zeros.view().flat().bytes());
    store.assign(stream, TableId{0}, View<Key const>(keys), zeros);
    hash = store.table_hash();
    store.save(folder.path(), {});
  }
  auto const path = folder.path() / "manifest.json";
  auto json = nlohmann::json::parse(std::ifstream(path));
  EXPECT_EQ(json.at("format"), 3);
  json["format"] = 2;
  json["tables"][0].erase("values");
  folder.write("manifest.json", json.dump());
  Store floats(Group::alone(), {}), halves(Group::alone(), {}), fourth(Group::alone(), {});
  add(floats, DataType::kFloat);
  add(halves, DataType::kHalf);
  add(fourth, DataType::kFloat);
  floats.restore(folder.path());
  EXPECT_EQ(floats.table_hash(), hash);
  expect_error([&] { halves.restore(folder.path()); }, {"float32 in the checkpoint and float16 here"});
  json["format"] = 7;
  folder.write("manifest.json", json.dump());
  expect_error([&] { fourth.restore(folder.path()); }, {"has format 7 (this program reads 2 to 6)"});
}

TEST(Fp16Values, AssignRoundsAndExpireResets) {
  auto store = store_of(Group::alone());
  auto stream = store.make_stream();
  auto const keys = first_keys(10);
  auto const initial = look_up(store, TableId{3}, keys);
  Matrix<float> values(Device::host(), 10, 40);
  for (std::size_t i = 0; i < 10; ++i) std::fill(values.row(i).begin(), values.row(i).end(), 1 + 0x1p-12F);
  store.assign(stream, TableId{3}, View<Key const>(keys), values);
  for (float const x : look_up(store, TableId{3}, keys)) EXPECT_EQ(x, 1.0F);
  EXPECT_EQ(store.size(TableId{3}), 10U);
  store.advance_clock();
  store.wait_applied();
  store.advance_clock();
  EXPECT_EQ(store.expire(TableId{3}, 1), 10U);
  EXPECT_EQ(look_up(store, TableId{3}, keys), initial);

  // Other keys reuse the rows, without their old contents.
  std::vector<Key> const others{Key{1001}, Key{1002}};
  for (std::size_t i = 0; i < 2; ++i) std::fill(values.row(i).begin(), values.row(i).end(), 3.0F);
  store.assign(stream, TableId{3}, View<Key const>(others), values.view().slice(0, 2));
  for (float const x : look_up(store, TableId{3}, others)) EXPECT_EQ(x, 3.0F);
  EXPECT_EQ(look_up(store, TableId{3}, keys), initial);
}

TEST(Fp16Values, ExportWritesFloat32) {
  TemporaryFolder const folder;
  Store store(Group::alone(), {});
  store.add_table(table("t", DataType::kBFloat16, Kind::kSgd, 2));
  auto stream = store.make_stream();
  std::vector<Key> const keys{Key{5}};
  Matrix<float> values(Device::host(), 1, 2);
  values.row(0)[0] = 1.5F, values.row(0)[1] = 1 + 0x1p-9F;
  store.assign(stream, TableId{0}, View<Key const>(keys), values);
  store.export_rows(folder.path() / "out", ExportFormat::kFlat);
  std::ifstream file(folder.path() / "out" / "t.values.bin", std::ios::binary);
  float got[2] = {};
  file.read(reinterpret_cast<char*>(got), sizeof got);
  EXPECT_EQ(got[0], 1.5F);
  EXPECT_EQ(got[1], 1.0F);
  EXPECT_EQ(fs::file_size(folder.path() / "out" / "t.values.bin"), sizeof got);
}

TEST(Fp16Values, RejectsValuesBeyondRange) {
  Store store(Group::alone(), {});
  auto large = table("t", DataType::kHalf, Kind::kSgd, 2);
  large.initializer = {Initializer::Kind::kNormal, 60000};
  expect_error([&] { store.add_table(large); },
               {"has initializer.scale 60000", "the largest number of its value_type is 65,504", "or use kBFloat16"});
  large.initializer.kind = Initializer::Kind::kConstant;
  large.value_type = static_cast<DataType>(9);
  expect_error([&] { store.add_table(large); }, {"value_type number 9"});
  large.value_type = DataType::kHalf;
  large.optimizer.learning_rate = 10000;
  store.add_table(large);
  auto stream = store.make_stream();
  std::vector<Key> const keys{Key{77}};
  TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
  auto const batch = store.prepare(stream, Clock{0}, {&part, 1}, 1);
  store.wait_ready(batch);
  Matrix<float> sources(Device::host(), 1, 2);
  sources.row(0)[0] = 0, sources.row(0)[1] = -1;  // the new value would be 70,000
  TableGradients const gradients{.sources = sources};
  store.push(stream, batch, {&gradients, 1});
  store.advance_clock();
  expect_error([&] { store.wait_applied(); }, {"key 77", "above 65,504"});
}

}  // namespace
}  // namespace gpups::test::fp16_values_test
