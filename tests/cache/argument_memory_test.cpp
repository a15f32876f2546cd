// SPDX-License-Identifier: Apache-2.0
// Public calls reject null arrays that have elements, and change nothing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test::argument_memory_test {
namespace {

constexpr std::size_t kDim = 3;

template <class T>
View<T> null_view(std::size_t size) {
  return {nullptr, size};
}
template <class T>
MatrixView<T> null_rows(std::size_t rows) {
  return {nullptr, rows, kDim, row_stride(kDim)};
}

template <class Call>
void reject(Call call, std::string const& name, std::string const& what) {
  expect_error(call, {(name + " was given a null address for " + what).c_str(), "give the address of their memory"});
}

// Runs `check` on a group of one rank and on a group of two.
template <class Check>
void on_one_rank_and_two(Check check) {
  for (int const ranks : {1, 2}) {
    run_ranks(Group::threads(ranks), [&](Group group) {
      Store store(group, {.threads = 1});
      store.add_table({.name = "t", .dim = kDim});
      auto stream = store.make_stream();
      check(group, store, stream);
      store.wait_barrier();  // the rejected calls have changed nothing
    });
  }
}

TEST(NullArguments, RejectedByCollectives) {
  on_one_rank_and_two([](Group const& group, Store& store, Stream& stream) {
    std::vector<std::uint32_t> const indices{1, 3, 4};
    std::vector<float> const values{1, 2, 3};
    auto const keep = std::make_shared<int>(0);
    reject([&] { group.begin_allreduce(stream, null_view<std::int64_t>(10)); }, "begin_allreduce", "10 integers");
    reject([&] { group.begin_allreduce(stream, null_view<float>(11)); }, "begin_allreduce", "11 floats");
    reject([&] { group.begin_allreduce(stream, null_view<float const>(12), keep); }, "begin_allreduce", "12 floats");
    for (bool const keeps : {false, true}) {
      SparseView vector{.size = 5, .indices = null_view<std::uint32_t const>(3), .values = View<float const>(values)};
      if (keeps) vector.keep = keep;
      reject([&] { group.begin_allreduce(stream, vector); }, "begin_allreduce", "3 indices");
      vector.indices = View<std::uint32_t const>(indices);
      vector.values = null_view<float const>(3);
      reject([&] { group.begin_allreduce(stream, vector); }, "begin_allreduce", "3 values");
      reject([&] { group.begin_reduce_scatter(stream, vector); }, "begin_reduce_scatter", "3 values");
    }
    TopKAllreduce sums(group, 7, {.density = 1});
    reject([&] { sums.begin(stream, null_view<float const>(7)); }, "TopKAllreduce::begin", "7 elements of a gradient");
    reject([&] { sums.begin(stream, null_view<std::int64_t const>(7)); }, "TopKAllreduce::begin", "7 elements");
    std::vector<float> gradient(7, 1);
    sums.begin(stream, View<float const>(gradient));
    reject([&] { sums.wait(stream, null_view<float>(7)); }, "TopKAllreduce::wait", "7 sums");
    sums.wait(stream, View<float>(gradient));
    reject([&] { store.wait_allreduce({static_cast<std::int64_t*>(nullptr), 2}); }, "wait_allreduce", "2 integers");
  });
}

TEST(NullArguments, RejectedByStepCalls) {
  on_one_rank_and_two([](Group const&, Store& store, Stream& stream) {
    std::vector<Key> const keys{Key{1}, Key{2}, Key{2}, Key{9}};
    auto const prepare = [&](View<Key const> of, View<std::uint32_t const> offsets) {
      TableBatch const part{.table = TableId{0}, .keys = of, .offsets = offsets};
      return store.prepare(stream, store.clock(), {&part, 1}, 1);
    };
    reject([&] { prepare(null_view<Key const>(4), {}); }, "prepare", "4 keys");
    reject([&] { prepare(View<Key const>(keys), null_view<std::uint32_t const>(3)); }, "prepare", "3 bag offsets");

    std::vector<std::uint32_t> const offsets{0, 2, 4};
    auto const batch = prepare(View<Key const>(keys), View<std::uint32_t const>(offsets));
    store.wait_ready(batch);
    Matrix<float> const rows(Device::host(), keys.size(), kDim);
    memory::fill_bytes(stream, rows.view().data(), 0, rows.view().flat().bytes());
    auto const pool = [&](MatrixView<float> out, View<float const> coefficients) {
      store.pull_pooled(stream, batch, 0, Pooling::kSum, out, coefficients);
    };
    auto const push = [&](TableGradients const& gradients) { store.push(stream, batch, {&gradients, 1}); };
    auto const all = rows.view();
    reject([&] { store.pull(stream, batch, std::vector{null_rows<float>(4)}); }, "pull", "4 rows");
    reject([&] { pool(null_rows<float>(2), {}); }, "pull_pooled", "2 rows");
    reject([&] { pool(all, null_view<float const>(4)); }, "pull_pooled", "4 coefficients");
    reject([&] { push({.sources = null_rows<float const>(2)}); }, "push", "2 sources");
    reject([&] { push({.sources = all, .source_indices = null_view<std::uint32_t const>(4)}); }, "push",
           "4 source indices");
    reject([&] { push({.sources = all, .coefficients = null_view<float const>(4)}); }, "push", "4 coefficients");
    push({.sources = all.slice(0, 2)});
    store.advance_clock();
    store.wait_applied();
    EXPECT_EQ(store.size(TableId{0}), 3U);
  });
}

TEST(NullArguments, RejectedByLookupAssignAndErase) {
  on_one_rank_and_two([](Group const&, Store& store, Stream& stream) {
    TableId const table{0};
    std::vector<Key> const keys{Key{1}, Key{2}};
    View<Key const> const two(keys);
    Matrix<float> const rows(Device::host(), 2, kDim);
    auto const nothing = null_view<Key const>(2);
    reject([&] { store.lookup(stream, table, nothing, rows, {}); }, "lookup", "2 keys");
    reject([&] { store.lookup(stream, table, two, null_rows<float>(2), {}); }, "lookup", "2 rows");
    reject([&] { store.lookup(stream, table, two, rows, null_view<std::uint8_t>(2)); }, "lookup", "2 marks");
    reject([&] { store.assign(stream, table, nothing, rows); }, "assign", "2 keys");
    reject([&] { store.assign(stream, table, two, null_rows<float const>(2)); }, "assign", "2 rows");
    reject([&] { store.erase(stream, table, nothing); }, "erase", "2 keys");
    store.lookup(stream, table, {}, null_rows<float>(0), {});  // no elements need no memory
  });
}

TEST(NullArguments, RejectedByCopies) {
  Stream stream(Device::host(), 1);
  std::vector<float> const values{1, 2};
  expect_error([&] { to_host(stream, null_view<float>(2)); }, {"8 bytes are to be copied from a null address"});
  expect_error([&] { copy<float>(stream, null_view<float>(2), View<float const>(values)); },
               {"8 bytes are to be copied to a null address"});
  EXPECT_TRUE(to_host(stream, null_view<float>(0)).empty());
}

}  // namespace
}  // namespace gpups::test::argument_memory_test
