// SPDX-License-Identifier: Apache-2.0
// The bytes that a store counts as sent and as saved, exactly. Sparse vectors: saved compared with 8 bytes for each
// element, or 4 for each position if that is less. Top-k: saved compared with an exact sum of the gradient.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/accounts/metrics.hpp"

namespace gpups::test::compression_counters_test {
namespace {

using Places = std::set<std::uint32_t>;

// Bytes of data. A message that coding makes longer saves nothing, and is not subtracted from what others save.
struct Counted {
  std::uint64_t sent = 0, saved_bytes = 0;

  void add(std::uint64_t plain, std::uint64_t coded, std::uint64_t times = 1) {
    sent += times * coded;
    saved_bytes += times * (plain > coded ? plain - coded : 0);
  }
};

// Returns the statistics of each rank after `sum`. Headers of messages are counted elsewhere, as control.
std::vector<Stats> count(int ranks, std::function<void(Group const&, Stream&)> const& sum) {
  std::vector<Stats> all(static_cast<std::size_t>(ranks));
  run_ranks(Group::threads(ranks), [&](Group group) {
    Store store(group, {.threads = 1});
    auto stream = store.make_stream();
    sum(group, stream);
    store.wait_barrier();
    all[number(group.rank())] = store.stats();
    store.wait_barrier();
  });
  return all;
}

void expect(std::vector<Stats> const& all, std::function<Counted(std::uint32_t)> const& expected) {
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    EXPECT_EQ(all[rank].sent.allreduces, expected(rank).sent) << "sent by rank " << rank;
    EXPECT_EQ(all[rank].saved_bytes.allreduces, expected(rank).saved_bytes) << "saved by rank " << rank;
  }
}

// Sums vectors with ones at places[rank].
std::vector<Stats> count_vectors(std::vector<Places> const& places, std::uint64_t size, AllreduceOptions const& options,
                                 bool scatters = false) {
  return count(static_cast<int>(places.size()), [&](Group const& group, Stream& stream) {
    auto const& mine = places[number(group.rank())];
    std::vector<std::uint32_t> const indices(mine.begin(), mine.end());
    std::vector<float> const values(indices.size(), 1);
    SparseView const vector{size, indices, values};
    auto const sum = scatters ? group.begin_reduce_scatter(stream, vector, options.format)
                              : group.begin_allreduce(stream, vector, options);
    (void)group.wait_result(stream, sum);
  });
}

Places every(std::uint32_t step, std::uint32_t first, std::uint32_t last) {
  Places places;
  for (std::uint32_t i = first; i < last; i += step) places.insert(i);
  return places;
}

Places both(Places a, Places const& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// A stream has a header of 48 bytes, a word of 4 bytes for each block of 65536 positions, padded to 8 bytes, then
// values and positions.
TEST(CompressionCounters, CountEachPositionEncoding) {
  struct Case {
    char const* name;
    std::uint64_t size;
    Places places;
    std::uint64_t plain, floats, halves;  // bytes
  };
  Case const cases[] = {
      {"none", 1000, {}, 0, 56, 56},
      {"fewer than pay for the header", 1000, every(300, 0, 900), 3 * 8, 56 + 3 * 4 + 3 + 2, 56 + 3 * 2 + 3 + 2},
      {"gaps", 1000, every(10, 5, 1000), 100 * 8, 56 + 100 * 4 + 100, 56 + 100 * 2 + 100},
      {"gaps above 254", 2000, both(every(10, 0, 1000), {1900}), 101 * 8, 56 + 101 * 4 + 101 + 3,
       56 + 101 * 2 + 101 + 3},
      {"offsets", 65536, every(1600, 0, 64000), 40 * 8, 56 + 40 * 4 + 40 * 2, 56 + 40 * 2 + 40 * 2},
      {"a bitmap", 160, every(2, 0, 160), 80 * 8, 56 + 80 * 4 + 20, 56 + 80 * 2 + 20},
      {"a bitmap of more than half", 160, every(1, 0, 120), 160 * 4, 56 + 120 * 4 + 20, 56 + 120 * 2 + 20},
      {"all but two", 160, every(1, 0, 158), 160 * 4, 56 + 160 * 4, 56 + 160 * 2},
      {"three blocks, one of them empty", 2 * 65536 + 160, both(every(100, 0, 50000), every(1, 131072, 131232)),
       500 * 8 + 160 * 4, 64 + (500 + 160) * 4 + 500, 64 + (500 + 160) * 2 + 500},
  };
  for (int const ranks : {2, 3}) {
    for (auto const& c : cases) {
      for (auto const format : {WireFormat::kFloat, WireFormat::kHalf}) {
        SCOPED_TRACE(testing::Message() << c.name << " in " << name_of(format) << ", " << ranks << " ranks");
        Counted expected;
        expected.add(c.plain, format == WireFormat::kFloat ? c.floats : c.halves, static_cast<unsigned>(ranks - 1));
        std::vector<Places> const places(static_cast<std::size_t>(ranks), c.places);
        expect(count_vectors(places, c.size, {.algorithm = "sparse_allgather", .format = format}),
               [&](std::uint32_t) { return expected; });
      }
    }
  }
}

// Vectors of 6000 elements, so sparse that gaps are the shortest encoding.
class SparseSumCounters : public testing::TestWithParam<WireFormat> {
 protected:
  static constexpr std::uint32_t kSize = 6000;
  std::uint64_t value_bytes() const { return GetParam() == WireFormat::kFloat ? 4 : 2; }

  static std::vector<Places> places_of(int ranks) {
    std::vector<Places> all{every(20, 0, kSize), every(30, 3, kSize), every(50, 40, kSize)};
    all.resize(static_cast<std::size_t>(ranks));
    return all;
  }
  // Returns the positions in slice q of `ranks`, relative to its begin.
  static Places slice(Places const& places, std::uint32_t q, std::uint32_t ranks) {
    Places part;
    std::uint32_t const width = kSize / ranks;
    for (auto const i : places) {
      if (i / width == q) part.insert(i - q * width);
    }
    return part;
  }
  static Places sum_of(std::vector<Places> const& places) {
    Places all;
    for (auto const& of : places) all = both(all, of);
    return all;
  }

  static std::uint64_t plain(Places const& places) { return 8 * places.size(); }
  // No gap is above 254, so each takes a byte.
  static std::uint64_t coded(Places const& places, std::uint64_t value_bytes) {
    return 56 + (value_bytes + 1) * places.size();
  }
  std::uint64_t coded(Places const& places) const { return coded(places, value_bytes()); }

  Counted parts(Places const& mine, std::uint32_t me, std::uint32_t ranks, std::uint64_t value_bytes) const {
    Counted all;
    for (std::uint32_t q = 0; q < ranks; ++q) {
      auto const part = slice(mine, q, ranks);
      if (q != me) all.add(plain(part), coded(part, value_bytes));
    }
    return all;
  }
};

TEST_P(SparseSumCounters, CountSplitAllgather) {
  for (std::uint32_t const ranks : {2U, 3U}) {
    auto const places = places_of(static_cast<int>(ranks));
    expect(count_vectors(places, kSize, {.algorithm = "ssar_split_allgather", .format = GetParam()}),
           [&](std::uint32_t me) {
             Counted all = parts(places[me], me, ranks, value_bytes());
             auto const sum = slice(sum_of(places), me, ranks);
             all.add(plain(sum), coded(sum), ranks - 1);
             return all;
           });
  }
}

TEST_P(SparseSumCounters, CountReduceScatter) {
  for (std::uint32_t const ranks : {2U, 3U}) {
    auto const places = places_of(static_cast<int>(ranks));
    expect(count_vectors(places, kSize, {.format = GetParam()}, true),
           [&](std::uint32_t me) { return parts(places[me], me, ranks, value_bytes()); });
  }
}

// The sums are arrays of floats, which save nothing, or of halves.
TEST_P(SparseSumCounters, CountDenseSplitAllgather) {
  for (std::uint32_t const ranks : {2U, 3U}) {
    auto const places = places_of(static_cast<int>(ranks));
    expect(count_vectors(places, kSize, {.algorithm = "dsar_split_allgather", .format = GetParam()}),
           [&](std::uint32_t me) {
             Counted all = parts(places[me], me, ranks, sizeof(float));
             all.add(kSize / ranks * sizeof(float), kSize / ranks * value_bytes(), ranks - 1);
             return all;
           });
  }
}

// With three ranks, the last one sends its vector to the first and gets both terms of the sum in one message, the
// second at a multiple of 8 bytes.
TEST_P(SparseSumCounters, CountRecursiveDoubling) {
  AllreduceOptions const options{.algorithm = "ssar_recursive_doubling", .format = GetParam()};
  auto const two = places_of(2), three = places_of(3);
  auto const whole = [&](Places const& places) {
    Counted one;
    one.add(plain(places), coded(places));
    return one;
  };
  expect(count_vectors(two, kSize, options), [&](std::uint32_t me) { return whole(two[me]); });
  expect(count_vectors(three, kSize, options), [&](std::uint32_t me) {
    if (me > 0) return whole(three[me]);
    auto const sum = both(three[0], three[2]);
    Counted all = whole(sum);
    all.add(plain(sum) + plain(three[1]), (coded(sum) + 7) / 8 * 8 + coded(three[1]));
    return all;
  });
}

INSTANTIATE_TEST_SUITE_P(Formats, SparseSumCounters, testing::Values(WireFormat::kFloat, WireFormat::kHalf),
                         [](auto const& format) { return std::string(name_of(format.param)); });

// Returns tens at every 20th position, different positions for each rank.
std::vector<std::int64_t> gradient_of(Rank rank, std::size_t size) {
  std::vector<std::int64_t> gradient(size, 0);
  for (std::size_t i = 4 * number(rank); i < size; i += 20) gradient[i] = 10 * (std::int64_t{number(rank)} + 1);
  return gradient;
}
constexpr std::size_t kGradient = 3000;
std::vector<Stats> count_top_k(int ranks, TopKOptions const& options, std::size_t size = kGradient) {
  return count(ranks, [&](Group const& group, Stream& stream) {
    auto gradient = gradient_of(group.rank(), size);
    TopKAllreduce sum(group, gradient.size(), options);
    sum.begin(stream, View<std::int64_t const>(gradient));
    sum.wait(stream, View<std::int64_t>(gradient));
  });
}
// The exact sum would send 8 bytes for each element of the other ranks' slices, and to each of these ranks 8 bytes for
// each element of its own slice.
Counted instead_of_all(std::uint64_t sent, std::uint64_t ranks) {
  return {sent, 2 * (ranks - 1) * (kGradient / ranks) * 8 - sent};
}

// "float" sends units, here of a byte each; a block's values end at a multiple of 8.
TEST(TopKCounters, CountSparseAllgather) {
  for (auto const& [format, coded] :
       {std::pair(WireFormat::kFloat, 56 + 152 + 150), {WireFormat::kHalf, 56 + 150 * 2 + 150}}) {
    for (int const ranks : {2, 3}) {
      auto const others = static_cast<std::uint64_t>(ranks - 1);
      auto const all =
          count_top_k(ranks, {.density = .05, .algorithm = "sparse_allgather", .format = format, .grid_log2 = 0});
      Counted const expected = instead_of_all(others * static_cast<std::uint64_t>(coded), others + 1);
      expect(all, [&](std::uint32_t) { return expected; });
    }
  }
}

// Each rank sends the others its elements of their slices, and the 50 largest sums of its own slice.
TEST(TopKCounters, CountSparDL) {
  for (auto const& [format, coded] :
       {std::pair(WireFormat::kFloat, 56 + 56 + 50), {WireFormat::kHalf, 56 + 50 * 2 + 50}}) {
    auto const all = count_top_k(3, {.density = .05, .algorithm = "spardl", .format = format, .grid_log2 = 0});
    Counted const expected = instead_of_all(4 * static_cast<std::uint64_t>(coded), 3);
    expect(all, [&](std::uint32_t) { return expected; });
  }
}

// Slices of 3001 elements have different sizes; arrays of 400 are sent eagerly.
class TopKAndExactCounters : public testing::TestWithParam<std::size_t> {};

TEST_P(TopKAndExactCounters, SentPlusSavedIsEqual) {
  for (int const ranks : {1, 2, 3, 4, 5}) {
    auto const exact = count(ranks, [&](Group const& group, Stream& stream) {
      auto gradient = gradient_of(group.rank(), GetParam());
      group.wait_allreduce(stream, group.begin_allreduce(stream, View<std::int64_t>(gradient)));
    });
    for (auto const& algorithm : top_k_algorithms()) {
      auto const cut = count_top_k(ranks, {.density = .05, .algorithm = algorithm.name}, GetParam());
      for (std::size_t rank = 0; rank < cut.size(); ++rank) {
        EXPECT_EQ(cut[rank].sent.allreduces + cut[rank].saved_bytes.allreduces,
                  exact[rank].sent.allreduces + exact[rank].saved_bytes.allreduces)
            << algorithm.name << ", rank " << rank << " of " << ranks;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, TopKAndExactCounters, testing::Values(400, 3001));

// The compression ratio of the report counts all bytes, with headers.
TEST(TopKCounters, ReportContainsCompressionRatio) {
  auto const all = count_top_k(2, {.density = .05, .format = WireFormat::kHalf, .grid_log2 = 0});
  std::vector<std::int64_t> sums;
  std::uint64_t control = 0;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    auto const terms = trainer::to_terms(all[rank]);
    sums.resize(terms.size());
    for (std::size_t i = 0; i < terms.size(); ++i) sums[i] += terms[i];
    control += all[rank].sent.control;
  }
  double const sent = static_cast<double>(2 * 506 + control), plain = static_cast<double>(2 * 24000 + control);
  EXPECT_DOUBLE_EQ(trainer::to_json(trainer::from_sums(sums))["compression_ratio"].get<double>(), plain / sent);
}

}  // namespace
}  // namespace gpups::test::compression_counters_test
