// SPDX-License-Identifier: Apache-2.0
// Calls of a Store at the wrong time, with the wrong object or with indices out of range: each is an Error that says
// what to do, on one rank and on several, and changes nothing.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/on_devices.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::store_misuse_test {
namespace {

constexpr std::size_t kDim = 4;
TableId const kTable{0};

// One rank's store with one table, whose rows begin at 0 and decrease by their gradients.
struct Trained {
  explicit Trained(Group const& group, Device device = {}) : store(group, {.device = device, .threads = 1}) {
    store.add_table({.name = "t",
                     .dim = kDim,
                     .initializer = {Initializer::Kind::kConstant, 0.0F},
                     .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 1.0F}});
  }

  PreparedBatch prepare(std::vector<Key> const& keys) {
    auto const there = to_device(stream, keys);
    TableBatch const part{.table = kTable, .keys = there, .offsets = {}};
    return store.prepare(stream, store.clock(), {&part, 1}, 1);
  }
  // Pushes a gradient of 1 for each entry.
  void push(PreparedBatch const& batch, std::vector<std::uint32_t> const& numbers = {}) { push(batch, numbers, store); }
  void push(PreparedBatch const& batch, std::vector<std::uint32_t> const& numbers, Store& into) {
    std::size_t const entries = batch.entries(0);
    Matrix<float> ones(Device::host(), entries, kDim);
    for (std::size_t i = 0; i < entries; ++i) std::fill_n(ones.row(i).data(), kDim, 1.0F);
    auto const sources = moved<float const>(stream, stream.device(), ones);
    auto const there = to_device(stream, numbers);
    TableGradients const gradients{.sources = sources, .source_indices = there};
    into.push(stream, batch, {&gradients, 1});
    stream.wait();
  }
  void step(std::vector<Key> const& keys) {
    auto const batch = prepare(keys);
    store.wait_ready(batch);
    push(batch);
    store.advance_clock();
  }

  Store store;
  Stream stream = store.make_stream();
};

// Runs `body` on one rank and on two, as threads and in a simulation, where nothing happens before a rank waits.
void run_on_ranks(std::function<void(Group const&)> const& body) {
  for (int const ranks : {1, 2}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    run_ranks(Group::threads(ranks), body);
    run_ranks(Group::simulated(ranks, {.seed = 3}), body);
  }
}

void with_store(std::function<void(Trained&)> const& body) {
  run_on_ranks([&](Group const& group) {
    Trained one(group);
    body(one);
    one.store.wait_barrier();  // the rejected calls have changed nothing
  });
}

// In a simulation nothing happens before a rank waits, so the rows of a batch have not arrived when it is pushed.
TEST(StoreMisuse, StepWithoutPullNeedsNoWaitReady) {
  for (int const ranks : {1, 2}) {
    std::uint64_t hash[2] = {1, 2};
    for (bool const waits : {false, true}) {
      run_ranks(Group::simulated(ranks, {.seed = 5}), [&](Group const& group) {
        Trained one(group);
        for (std::uint64_t t = 0; t < 20; ++t) {
          auto const batch = one.prepare({Key{t}, Key{1}, Key{100 + t % 3}});
          if (waits) one.store.wait_ready(batch);
          one.push(batch);
          one.store.advance_clock();
        }
        hash[waits] = one.store.table_hash();
        EXPECT_EQ(one.store.size(kTable), 23U);
      });
    }
    EXPECT_EQ(hash[0], hash[1]) << ranks << " ranks";
  }
}

TEST(StoreMisuse, RejectsMeanOfSeveralEntriesWithoutCoefficients) {
  Trained one(Group::alone());
  std::vector<Key> const keys{Key{1}, Key{2}, Key{1}};
  Matrix<float> out(Device::host(), 4, kDim);
  auto const push = [&](std::vector<std::uint32_t> const& offsets) {
    TableBatch const part{
        .table = kTable, .keys = View<Key const>(keys), .offsets = View<std::uint32_t const>(offsets)};
    auto const batch = one.store.prepare(one.stream, one.store.clock(), {&part, 1}, 1);
    one.store.wait_ready(batch);
    one.store.pull_pooled(one.stream, batch, 0, Pooling::kMean, out);
    MatrixView<float const> const of_bags(out.row(0).data(), offsets.size() - 1, kDim, out.stride());
    TableGradients const gradients{.sources = of_bags};
    one.store.push(one.stream, batch, {&gradients, 1});
    one.store.advance_clock();
  };
  push({0, 1, 1, 2, 3});  // the mean of one entry is the entry
  expect_error([&] { push({0, 2, 2, 3}); }, {"pooled by their mean", "1 / bag size"});
}

TEST(StoreMisuse, RejectsMoreCoefficientsOrIndicesThanEntries) {
  with_store([](Trained& one) {
    auto const batch = one.prepare({Key{1}, Key{2}});
    one.store.wait_ready(batch);
    Matrix<float> const sources(Device::host(), 2, kDim);
    std::vector<float> const coefficients(3, 1.0F);
    std::vector<std::uint32_t> const indices(3, 0);
    auto const push = [&](TableGradients const& gradients) { one.store.push(one.stream, batch, {&gradients, 1}); };
    expect_error([&] { push({.sources = sources, .coefficients = View<float const>(coefficients)}); },
                 {"3 coefficients for 2 entries"});
    expect_error([&] { push({.sources = sources, .source_indices = View<std::uint32_t const>(indices)}); },
                 {"3 source indices for 2 entries"});
    one.push(batch);
    one.store.advance_clock();
  });
}

TEST(StoreMisuse, RejectsCallsBetweenPushAndAdvanceClock) {
  TemporaryFolder const folder;
  with_store([&](Trained& one) {
    std::vector<Key> const keys{Key{1}, Key{2}};
    one.step(keys);
    auto const before = one.store.table_hash();
    auto const batch = one.prepare(keys);
    one.store.wait_ready(batch);
    one.push(batch);

    Matrix<float> const rows(Device::host(), 2, kDim);
    View<Key const> const two(keys);
    auto const rejected = [&](char const* name, std::function<void()> const& call) {
      expect_error(call, {name, "between push() and advance_clock() of step 1", "call it after advance_clock"});
    };
    rejected("table_hash", [&] { one.store.table_hash(); });
    rejected("save", [&] { one.store.save(folder.path() / "saved", {}); });
    rejected("export_rows", [&] { one.store.export_rows(folder.path() / "exported", ExportFormat::kNpy); });
    rejected("size", [&] { one.store.size(kTable); });
    rejected("scan", [&] { one.store.scan(one.stream, kTable, [](auto, auto) {}); });
    rejected("lookup", [&] { one.store.lookup(one.stream, kTable, two, rows, {}); });
    rejected("begin_lookup", [&] { one.store.begin_lookup(one.stream, kTable, two, rows, {}); });
    rejected("assign", [&] { one.store.assign(one.stream, kTable, two, rows); });
    rejected("erase", [&] { one.store.erase(one.stream, kTable, two); });
    rejected("expire", [&] { one.store.expire(kTable, 1); });
    expect_error([&] { one.store.restore(folder.path()); }, {"restore() was called on a store in use"});
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "saved"));
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "exported.unfinished"));

    // Calls that concern no rows are allowed at any time.
    std::int64_t sum = 1;
    one.store.wait_allreduce({&sum, 1});
    EXPECT_EQ(sum, one.store.ranks());
    EXPECT_EQ(one.store.wait_allgather("x").size(), static_cast<std::size_t>(one.store.ranks()));

    one.store.advance_clock();
    EXPECT_NE(one.store.table_hash(), before);
    EXPECT_EQ(one.store.size(kTable), 2U);
  });
}

// Without this check a single rank could update rows while a look-up reads them.
TEST(StoreMisuse, AdvanceClockRejectsLookupInFlight) {
  run_on_ranks([](Group const& group) {
    Trained one(group);
    std::vector<Key> const keys{Key{1}, Key{2}, Key{3}};
    for (int t = 0; t < 5; ++t) {
      Matrix<float> const rows(Device::host(), keys.size(), kDim);
      auto const lookup = one.store.begin_lookup(one.stream, kTable, View<Key const>(keys), rows, {});
      auto const batch = one.prepare(keys);
      one.store.wait_ready(batch);
      one.push(batch);
      expect_error([&] { one.store.advance_clock(); }, {"look-up is in flight", "call wait_lookup"});
      one.store.wait_lookup(one.stream, lookup);
      EXPECT_EQ(rows.row(2)[0], static_cast<float>(-t));
      one.store.advance_clock();
    }
    // A look-up whose handle is gone does not delay later steps.
    {
      Matrix<float> const rows(Device::host(), keys.size(), kDim);
      one.store.begin_lookup(one.stream, kTable, View<Key const>(keys), rows, {});
    }
    one.step(keys);
    one.store.wait_barrier();
  });
}

TEST(StoreMisuse, RejectsEmptyHandles) {
  with_store([](Trained& one) {
    auto const batch = one.prepare({Key{1}, Key{2}});
    auto gone = batch;
    auto const taken = std::move(gone);
    for (PreparedBatch const& none : {PreparedBatch(), gone}) {  // NOLINT(bugprone-use-after-move)
      auto const rejected = [&](char const* name, std::function<void()> const& call) {
        expect_error(call, {name, "an empty batch", "use a batch that prepare() has returned"});
      };
      rejected("wait_ready", [&] { one.store.wait_ready(none); });
      rejected("pull", [&] { one.store.pull(one.stream, none, {}); });
      rejected("pull_pooled", [&] { one.store.pull_pooled(one.stream, none, 0, Pooling::kSum, {}); });
      rejected("push", [&] { one.store.push(one.stream, none, {}); });
      rejected("clock", [&] { none.clock(); });
      rejected("samples", [&] { none.samples(); });
      rejected("parts", [&] { none.parts(); });
      rejected("table", [&] { none.table(0); });
      rejected("entries", [&] { none.entries(0); });
      rejected("rows", [&] { none.rows(0); });
      rejected("keys", [&] { none.keys(0); });
      rejected("positions", [&] { none.positions(0); });
      rejected("pattern", [&] { none.pattern(); });
    }
    expect_error([&] { one.store.prepare(BatchPattern(), Clock{1}); }, {"from an empty pattern"});
    expect_error([&] { one.store.wait_lookup(one.stream, LookupRequest()); }, {"wait_lookup", "start another"});

    auto const no_part = [&](char const* name, std::function<void()> const& call) {
      expect_error(call, {name, "part 1 of a batch with 1 parts", "numbered from 0"});
    };
    no_part("table", [&] { taken.table(1); });
    no_part("entries", [&] { taken.entries(1); });
    no_part("rows", [&] { taken.rows(1); });
    no_part("keys", [&] { taken.keys(1); });
    no_part("positions", [&] { taken.positions(1); });
    one.store.wait_ready(taken);
    no_part("pull_pooled", [&] { one.store.pull_pooled(one.stream, taken, 1, Pooling::kSum, {}); });
    expect_error([&] { one.store.table(TableId{1}); }, {"table 1 does not exist"});
    expect_error([&] { one.store.size(TableId{7}); }, {"table 7 does not exist"});
    one.push(taken);
    one.store.advance_clock();
  });
}

TEST(StoreMisuse, RejectsBatchesOfAnotherStore) {
  with_store([](Trained& one) {
    Trained other(Group::alone());
    auto const batch = one.prepare({Key{1}, Key{2}});
    auto const foreign = other.prepare({Key{1}, Key{2}});
    auto const rejected = [&](char const* name, std::function<void()> const& call) {
      expect_error(call, {name, "of another store", "use the store that prepared it"});
    };
    Matrix<float> const rows(Device::host(), 2, kDim);
    MatrixView<float> const view(rows);
    rejected("wait_ready", [&] { one.store.wait_ready(foreign); });
    one.store.wait_ready(batch);
    other.store.wait_ready(foreign);
    rejected("pull", [&] { one.store.pull(one.stream, foreign, {&view, 1}); });
    rejected("pull_pooled", [&] { one.store.pull_pooled(one.stream, foreign, 0, Pooling::kSum, rows); });
    rejected("push", [&] { one.push(foreign); });
    if (one.store.ranks() == 1) {  // the other store has one rank too
      expect_error([&] { one.store.prepare(foreign.pattern(), Clock{1}); }, {"the pattern of another store"});
    }
    auto const lookup = other.store.begin_lookup(other.stream, kTable, foreign.keys(0), rows, {});
    expect_error([&] { one.store.wait_lookup(one.stream, lookup); },
                 {"of another store", "use the store that started"});
    other.store.wait_lookup(other.stream, lookup);
    other.push(foreign);
    other.store.advance_clock();
    one.push(batch);
    one.store.advance_clock();
  });
}

TEST(StoreMisuse, MovedFromStoreThrows) {
  Trained one(Group::alone());
  auto batch = one.prepare({Key{1}});
  Store store = std::move(one.store);
  store.wait_ready(batch);
  std::vector<Key> const keys{Key{1}};
  Matrix<float> const rows(Device::host(), 1, kDim);
  Store& empty = one.store;  // NOLINT(bugprone-use-after-move)
  std::vector<std::function<void()>> const calls{
      [&] { empty.rank(); },
      [&] { empty.ranks(); },
      [&] { empty.options(); },
      [&] { empty.make_stream(); },
      [&] { empty.add_table({.name = "u", .dim = 1}); },
      [&] { empty.table(kTable); },
      [&] { empty.memory_plan(); },
      [&] { empty.prepare(one.stream, Clock{1}, {}, 1); },
      [&] { empty.prepare(batch.pattern(), Clock{1}); },
      [&] { empty.wait_ready(batch); },
      [&] { empty.pull(one.stream, batch, {}); },
      [&] { empty.pull_pooled(one.stream, batch, 0, Pooling::kSum, rows); },
      [&] { empty.push(one.stream, batch, {}); },
      [&] { empty.advance_clock(); },
      [&] { empty.clock(); },
      [&] { empty.wait_applied(); },
      [&] { empty.flush_residuals(); },
      [&] { empty.synchronize(Clock{1}); },
      [&] { empty.signals(); },
      [&] { empty.throw_if_failed(); },
      [&] { empty.wait_barrier(); },
      [&] { empty.wait_allgather({}); },
      [&] { empty.wait_allreduce({}); },
      [&] { empty.lookup(one.stream, kTable, View<Key const>(keys), rows, {}); },
      [&] { empty.wait_lookup(one.stream, {}); },
      [&] { empty.assign(one.stream, kTable, View<Key const>(keys), rows); },
      [&] { empty.erase(one.stream, kTable, View<Key const>(keys)); },
      [&] { empty.expire(kTable, 1); },
      [&] { empty.scan(one.stream, kTable, [](auto, auto) {}); },
      [&] { empty.size(kTable); },
      [&] { empty.table_hash(); },
      [&] { empty.save("/nowhere", {}); },
      [&] { empty.restore("/nowhere"); },
      [&] { empty.export_rows("/nowhere", ExportFormat::kNpy); },
      [&] { empty.stats(); }};
  for (auto const& call : calls) expect_error(call, {"moved from", "use the one that it was moved to"});
  one.push(batch, {}, store);
  store.advance_clock();
  EXPECT_EQ(store.size(kTable), 1U);
}

TEST(StoreMisuse, MovedFromGroupAndStreamStayValid) {
  Group group = Group::alone();
  Group const other = std::move(group);
  EXPECT_EQ(group.size(), other.size());  // NOLINT(bugprone-use-after-move)
  Stream stream(Device::host(), 1);
  Stream const next = std::move(stream);
  EXPECT_EQ(stream.threads(), next.threads());  // NOLINT(bugprone-use-after-move)

  TopKAllreduce sums(group, 4, {});
  TopKAllreduce const moved = std::move(sums);
  std::vector<float> four(4);
  Stream on(Device::host(), 1);
  for (auto const& call : std::vector<std::function<void()>>{
           [&] { sums.begin(on, View<float const>(four)); }, [&] { sums.wait(on, View<float>(four)); },
           [&] { sums.density(); }, [&] { sums.algorithm(); }, [&] { sums.residual(); }, [&] { sums.save(); },
           [&] { sums.wait_save_all(on); }, [&] { sums.restore({}); }}) {
    expect_error(call, {"moved from"});
  }
}

class SourceIndices : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, SourceIndices, kDevices, device_name);

// On the host push() throws, and the batch can be pushed again. On a GPU the indices are checked later: then all ranks
// reject the step, as for a gradient that is not finite.
TEST_P(SourceIndices, RejectsIndicesBeyondSources) {
  for (int const ranks : {1, 2}) {
    for (std::uint32_t const wrong : {3U, 4U, 0xFFFFFFFFU}) {
      run_ranks(Group::threads(ranks), [&](Group const& group) {
        Trained one(group, GetParam());
        one.step({Key{1}, Key{2}, Key{3}});
        auto const before = one.store.table_hash();
        auto const batch = one.prepare({Key{1}, Key{2}, Key{3}});
        one.store.wait_ready(batch);
        if (GetParam().is_host()) {
          expect_error(
              [&] {
                one.push(batch, {0, wrong, 2});
              },
              {"source index", std::to_string(wrong).c_str(), "entry 1", "table 't'", "3 sources", "below"});
          one.push(batch, {2, 2, 0});
          one.store.advance_clock();
          one.store.wait_applied();
          EXPECT_NE(one.store.table_hash(), before);
          return;
        }
        if (group.rank() == Rank{0}) {
          one.push(batch, {0, wrong, 2});
        } else {
          one.push(batch);
        }
        one.store.advance_clock();
        EXPECT_THROW(one.store.wait_applied(), GradientError);
        EXPECT_EQ(one.store.table_hash(), before);
      });
    }
  }
}

}  // namespace
}  // namespace gpups::test::store_misuse_test
