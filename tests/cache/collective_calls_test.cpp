// SPDX-License-Identifier: Apache-2.0
// Two ranks that make different collective calls: for every pair of calls, both ranks get an error that names both.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::collective_calls_test {
namespace {

constexpr std::size_t kDim = 2;
TableId const kUsers{0}, kItems{1};

// One rank: its membership, its store with two tables, and a folder that all ranks share.
struct Member {
  Group& group;
  Store& store;
  Stream& stream;
  std::filesystem::path folder;
};

// A collective call, and the text by which errors name it.
struct Call {
  std::string text;
  std::function<void(Member&)> make;
  bool is_of_group = false;
};

template <class T>
void sum(Member& mine, std::size_t size, AllreduceOptions const& options = {}) {
  auto const values = to_device(mine.stream, std::vector<T>(size));
  if constexpr (std::is_same_v<T, float>) {
    mine.group.wait_allreduce(mine.stream, mine.group.begin_allreduce(mine.stream, values.view(), options));
  } else {
    mine.group.wait_allreduce(mine.stream, mine.group.begin_allreduce(mine.stream, values.view()));
  }
}

void sum_top_k(Member& mine) {
  auto const values = to_device(mine.stream, std::vector<float>(64));
  TopKAllreduce sums(mine.group, values.size(), {.density = 0.1});
  sums.begin(mine.stream, View<float const>(values));
  sums.wait(mine.stream, values.view());
}

Array<Key> no_keys() { return Array<Key>(Device::host(), 0); }

std::vector<Call> all_calls() {
  auto const of_table = [](std::string const& function, TableId table, auto change) {
    return Call{function + "(table '" + (table == kUsers ? "users" : "items") + "')",
                [table, change](Member& mine) { change(mine, table); }};
  };
  auto const erase = [](Member& mine, TableId table) { mine.store.erase(mine.stream, table, no_keys()); };
  auto const size = [](Member& mine, TableId table) { (void)mine.store.size(table); };
  return {
      {"wait_barrier()", [](Member& mine) { mine.store.wait_barrier(); }},
      {"wait_allgather()", [](Member& mine) { (void)mine.store.wait_allgather("x"); }},
      {"wait_gather_to(rank 0)", [](Member& mine) { (void)mine.store.wait_gather_to(Rank{0}, "x"); }},
      {"wait_gather_to(rank 1)", [](Member& mine) { (void)mine.store.wait_gather_to(Rank{1}, "x"); }},
      {"wait_allreduce(2 values)",
       [](Member& mine) {
         std::array<std::int64_t, 2> values{};
         mine.store.wait_allreduce(values);
       }},
      {"wait_allreduce(1000 values)",
       [](Member& mine) {
         std::array<std::int64_t, 1000> values{};
         mine.store.wait_allreduce(values);
       }},
      of_table("assign", kUsers,
               [](Member& mine, TableId table) {
                 mine.store.assign(mine.stream, table, no_keys(), MatrixView<float const>());
               }),
      of_table("erase", kUsers, erase),
      of_table("erase", kItems, erase),
      {"expire(table 'users', age 3)", [](Member& mine) { (void)mine.store.expire(kUsers, 3); }},
      {"expire(table 'users', age 4)", [](Member& mine) { (void)mine.store.expire(kUsers, 4); }},
      of_table("localize", kUsers,
               [](Member& mine, TableId table) { mine.store.localize(mine.stream, table, no_keys()); }),
      of_table("size", kUsers, size),
      of_table("size", kItems, size),
      {"table_hash()", [](Member& mine) { (void)mine.store.table_hash(); }},
      {"save()", [](Member& mine) { mine.store.save(mine.folder / "saved", {}); }},
      {"export_rows(npy)", [](Member& mine) { mine.store.export_rows(mine.folder / "npy", ExportFormat::kNpy); }},
      {"export_rows(flat)", [](Member& mine) { mine.store.export_rows(mine.folder / "flat", ExportFormat::kFlat); }},
      {"restore()", [](Member& mine) { (void)mine.store.restore(mine.folder / "saved"); }},
      {"sums 64 integers", [](Member& mine) { sum<std::int64_t>(mine, 64); }, true},
      {"sums 65 integers", [](Member& mine) { sum<std::int64_t>(mine, 65); }, true},
      {"sums 64 floats by auto", [](Member& mine) { sum<float>(mine, 64); }, true},
      {"sums 64 floats by recursive_doubling",
       [](Member& mine) { sum<float>(mine, 64, {.algorithm = "recursive_doubling"}); }, true},
      {"sums 64 sparse floats by auto",
       [](Member& mine) {
         (void)mine.group.wait_result(mine.stream, mine.group.begin_allreduce(mine.stream, SparseView{.size = 64}));
       },
       true},
      {"sums 64 sparse floats by ssar_split_allgather",
       [](Member& mine) {
         (void)mine.group.wait_result(mine.stream,
                                      mine.group.begin_reduce_scatter(mine.stream, SparseView{.size = 64}));
       },
       true},
      {"sums 64 elements of gradients", sum_top_k, true},
  };
}

// Returns the error of each rank if rank r makes calls[r].
std::array<std::string, 2> errors_of(std::array<Call const*, 2> calls, std::filesystem::path const& folder) {
  std::array<std::string, 2> errors;
  try {
    run_ranks(Group::simulated(2, {.seed = 1, .delay_ms_max = 1, .stall_probability = 0}), [&](Group group) {
      auto const me = number(group.rank());
      try {
        Store store(group, {.threads = 1});
        for (char const* name : {"users", "items"}) store.add_table({.name = name, .dim = kDim});
        Stream stream(Device::host(), 1);
        Member mine{group, store, stream, folder};
        if (calls[0]->text != "restore()" && calls[1]->text != "restore()") store.wait_barrier();
        calls.at(me)->make(mine);
      } catch (std::exception const& error) {
        errors.at(me) = error.what();
        throw;
      }
    });
  } catch (Error const&) {
  }
  return errors;
}

// If one call is of the Group and one of the Store, the error comes after the time that ranks wait, which is simulated.
TEST(CollectiveCalls, TwoDifferentCallsAreAnErrorThatNamesBoth) {
  TemporaryFolder const folder;
  auto const calls = all_calls();
  for (auto const& first : calls) {
    for (auto const& second : calls) {
      if (&first == &second) continue;
      auto const errors = errors_of({&first, &second}, folder.path());
      for (std::size_t rank = 0; rank < errors.size(); ++rank) {
        auto const has = [&](std::string const& text) { return errors[rank].find(text) != std::string::npos; };
        // A rank knows its own sum by its number. A rank that has not used its Store cannot read what another one
        // calls.
        auto const names = [&](Call const& call) {
          return has(call.text) || (call.is_of_group && has(" 0 from rank ")) ||
                 (call.text == "restore()" && has("a function of its Store"));
        };
        EXPECT_TRUE(names(first) && names(second))
            << first.text << " and " << second.text << ", rank " << rank << ": " << errors[rank];
      }
    }
  }
}

// The pairs above are errors because the calls differ.
TEST(CollectiveCalls, EqualCallsSucceed) {
  TemporaryFolder const folder;
  for (auto const& call : all_calls()) {
    auto const errors = errors_of({&call, &call}, folder.path());
    EXPECT_EQ(errors[0] + errors[1], "") << call.text;
  }
}

}  // namespace
}  // namespace gpups::test::collective_calls_test
