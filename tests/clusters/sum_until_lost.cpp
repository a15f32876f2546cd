// SPDX-License-Identifier: Apache-2.0
// A rank that sums over the ranks again and again, several sums at a time, until another one is lost: then it says
// which and ends.
//
// usage: sum_until_lost [WHAT [PEER_TIMEOUT_S]]
//   WHAT: integers, reduce_scatter, top_k, rows, or an ALGORITHM of allreduce_algorithms(), of arrays, or as
//   ALGORITHM:sparse of sparse vectors; without it, prints all of them
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::test {
namespace {

constexpr std::size_t kElements = std::size_t{1} << 21, kEvery = 16;  // of sparse vectors, one of so many is not zero
constexpr std::size_t kUnderWay = 3;
constexpr std::size_t kRows = 20000, kDim = 64;

// Says that the first is over: from now on one is always under way.
void say_going() {
  std::puts("going");
  std::fflush(stdout);
}

// begin: one sum more; end: waits for it.
void sum_without_end(std::function<Reduction()> const& begin, std::function<void(Reduction const&)> const& end) {
  std::deque<Reduction> open;
  for (std::size_t sums = 0;; ++sums) {
    open.push_back(begin());
    if (open.size() < kUnderWay) continue;
    end(open.front());
    open.pop_front();
    if (sums == kUnderWay) say_going();
  }
}

void sum_integers(Group const& group, Stream& stream) {
  std::vector<std::vector<std::int64_t>> arrays(kUnderWay, std::vector<std::int64_t>(kElements, 1 << 20));
  std::size_t next = 0;
  sum_without_end(
      [&] {
        auto& values = arrays[next++ % kUnderWay];
        std::fill(values.begin(), values.end(), 1 << 20);
        return group.begin_allreduce(stream, values);
      },
      [&](Reduction const& reduction) { group.wait_allreduce(stream, reduction); });
}

// dense: an array; else a sparse vector. algorithm: empty for a reduce-scatter.
void sum_floats(Group const& group, Stream& stream, std::string const& algorithm, bool dense) {
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = number(group.rank()); i < kElements; i += kEvery) indices.push_back(i);
  std::vector<float> const values(indices.size(), 1.5F);
  SparseView const vector{
      .size = kElements, .indices = View<std::uint32_t const>(indices), .values = View<float const>(values)};
  auto const begin = [&] {
    AllreduceOptions const options{.algorithm = algorithm};
    if (algorithm.empty()) return group.begin_reduce_scatter(stream, vector);
    return dense ? group.begin_allreduce(stream, Array<float>(Device::host(), kElements), options)
                 : group.begin_allreduce(stream, vector, options);
  };
  sum_without_end(begin, [&](Reduction const& reduction) { group.wait_sum(stream, reduction); });
}

void sum_top_k(Group const& group, Stream& stream) {
  std::vector<float> const gradient(kElements, 0x1p-10F);
  std::vector<float> sums(kElements);
  std::deque<TopKAllreduce> open;
  for (std::size_t i = 0; i < kUnderWay; ++i) {
    open.emplace_back(group, kElements, TopKOptions{.density = 1.0 / kEvery})
        .begin(stream, View<float const>(gradient));
  }
  for (std::size_t sums_ended = 0;; ++sums_ended) {
    auto& sum = open[sums_ended % kUnderWay];
    sum.wait(stream, View<float>(sums));
    sum.begin(stream, View<float const>(gradient));
    if (sums_ended == kUnderWay) say_going();
  }
}

void exchange_rows(Store& store, TableId table, Stream& stream) {
  std::vector<Key> keys;
  for (std::uint64_t k = 0; k < kRows; ++k) keys.push_back(Key{k});
  Matrix<float> const sources(Device::host(), kRows, kDim);
  for (std::size_t i = 0; i < kRows; ++i) std::fill(sources.row(i).begin(), sources.row(i).end(), 0.01F);
  TableBatch const part{.table = table, .keys = View<Key const>(keys)};
  auto next = store.prepare(stream, Clock{0}, {&part, 1}, 1);
  for (std::int64_t step = 0;; ++step) {
    auto const batch = next;
    next = store.prepare(stream, Clock{step + 1}, {&part, 1}, 1);
    store.wait_ready(batch);
    TableGradients const gradients{.sources = sources};
    store.push(stream, batch, {&gradients, 1});
    store.advance_clock();
    if (step == 2) say_going();
  }
}

void run(std::string const& what, double peer_timeout_s) {
  auto const group = Group::join({.peer_timeout_s = peer_timeout_s});
  Store store(group, {.threads = 1});
  auto const table = store.add_table({.name = "t", .dim = kDim, .expected_rows = kRows});
  auto stream = store.make_stream();
  if (what == "rows") return exchange_rows(store, table, stream);
  if (what == "integers") return sum_integers(group, stream);
  if (what == "reduce_scatter") return sum_floats(group, stream, "", false);
  if (what == "top_k") return sum_top_k(group, stream);
  for (auto const& algorithm : allreduce_algorithms()) {
    if (what == algorithm.name) return sum_floats(group, stream, what, true);
    if (what == std::string(algorithm.name) + ":sparse") return sum_floats(group, stream, algorithm.name, false);
  }
  throw Error("no such sum (see the usage): " + what);
}

void print_all() {
  for (char const* const what : {"integers", "reduce_scatter", "top_k", "rows"}) std::puts(what);
  for (auto const& algorithm : allreduce_algorithms()) {
    if (algorithm.by_nccl) continue;  // not on the host
    std::puts(algorithm.name);
    std::printf("%s:sparse\n", algorithm.name);
  }
}

}  // namespace
}  // namespace gpups::test

int main(int argc, char** argv) {
  if (argc < 2) {
    gpups::test::print_all();
    return 0;
  }
  try {
    gpups::test::run(argv[1], argc > 2 ? std::atof(argv[2]) : 30);
  } catch (gpups::PeerError const& error) {
    std::printf("lost: rank %u: %s\n", number(error.peer()), error.what());
    return 3;
  } catch (std::exception const& error) {
    std::printf("error: %s\n", error.what());
  }
  return 1;
}
