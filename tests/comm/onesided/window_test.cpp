// SPDX-License-Identifier: Apache-2.0
// Tests that every kind of window must pass, and rows that are read while others write them.
#include "comm/onesided/window.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <ostream>
#include <thread>
#include <vector>

#include "comm/onesided/versioned_rows.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {

void PrintTo(WindowFactory const& entry, std::ostream* out) { *out << entry.name; }

namespace {

using Words = std::vector<std::uint64_t>;

std::span<std::byte const> bytes_of(Words const& words) { return std::as_bytes(std::span(words)); }
Rank rank(std::size_t i) { return Rank{static_cast<std::uint32_t>(i)}; }

class WindowConformance : public testing::TestWithParam<WindowFactory> {
 protected:
  using Ends = std::vector<std::unique_ptr<Window>>;
  static void progress(Ends const& ends) {
    for (auto const& end : ends) end->progress();
  }
};

TEST_P(WindowConformance, PutIsVisibleAfterNotify) {
  constexpr std::size_t kRanks = 3, kBytes = 1 << 20;
  auto const ends = GetParam().make(kRanks, kBytes);
  for (std::size_t size : {8UL, 64UL, 4096UL, 100000UL}) {
    for (std::size_t from = 0; from < kRanks; ++from) {
      for (std::size_t to = 0; to < kRanks; ++to) {
        Words const words(size / 8, 100 * from + to + size);
        std::size_t const offset = from * 104000 + 8;
        while (!ends[from]->put(rank(to), offset, bytes_of(words))) progress(ends);
        std::uint64_t const note = size + from;
        while (!ends[from]->notify(rank(to), note)) progress(ends);
        while (ends[to]->notified(rank(from)) != note) progress(ends);
        EXPECT_EQ(std::memcmp(ends[to]->memory().data() + offset, words.data(), size), 0);
      }
    }
  }
  for (auto const& end : ends) {
    while (!end->idle()) progress(ends);
  }
}

TEST_P(WindowConformance, NewMemoryIsZeroAndAligned) {
  auto const ends = GetParam().make(2, 1000);
  for (auto const& end : ends) {
    EXPECT_EQ(end->size(), 2);
    ASSERT_EQ(end->memory().size(), 1000U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(end->memory().data()) % 64, 0U);
    for (std::byte const byte : end->memory()) EXPECT_EQ(byte, std::byte{0});
    for (std::size_t from : {0, 1}) EXPECT_EQ(end->notified(rank(from)), 0U);
  }
}

TEST_P(WindowConformance, ManyPutsAllArrive) {
  constexpr std::size_t kPuts = 20000;
  auto const ends = GetParam().make(2, kPuts * 64);
  for (std::size_t i = 0; i < kPuts; ++i) {
    Words const words(8, i + 1);
    while (!ends[0]->put(rank(1), i * 64, bytes_of(words))) progress(ends);
  }
  while (!ends[0]->notify(rank(1), 1)) progress(ends);
  while (ends[1]->notified(rank(0)) != 1) progress(ends);
  auto const* const there = reinterpret_cast<std::uint64_t const*>(ends[1]->memory().data());
  for (std::size_t i = 0; i < kPuts * 8; ++i) ASSERT_EQ(there[i], i / 8 + 1);
}

TEST_P(WindowConformance, OnePutMayFillMemory) {
  constexpr std::size_t kBytes = (std::size_t{9} << 20) + 8;
  auto const ends = GetParam().make(2, kBytes);
  Words words(kBytes / 8);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = i * 0x9E3779B97F4A7C15U;
  constexpr int kTriesMax = 1 << 20;  // an empty window without enough room never gets it
  int tries = 0;
  while (!ends[0]->put(rank(1), 0, bytes_of(words)) && ++tries < kTriesMax) progress(ends);
  ASSERT_LT(tries, kTriesMax);
  while (!ends[0]->notify(rank(1), 1)) progress(ends);
  while (ends[1]->notified(rank(0)) != 1) progress(ends);
  EXPECT_EQ(std::memcmp(ends[1]->memory().data(), words.data(), kBytes), 0);
}

// Rank 0 writes rows in which each word depends on the version; rank 1 reads them at the same time.
TEST_P(WindowConformance, ConcurrentReadsSeeNoTornRows) {
  constexpr std::size_t kRows = 4, kWords = 64, kReads = 100000;
  auto const ends = GetParam().make(2, VersionedRows::bytes(kRows, kWords * 8));
  VersionedRows const rows(ends[1]->memory(), kRows, kWords * 8);
  std::atomic<bool> over = false, ended = false;
  std::thread writer([&] {
    VersionedRows::VersionedRow versioned_row;
    for (std::uint64_t version = 1; !over; ++version) {
      std::size_t const row = version % kRows;
      VersionedRows::make(versioned_row, version, Words(kWords, version * kRows + row).data(), kWords * 8);
      while (!ends[0]->put(rank(1), rows.offset(row), bytes_of(versioned_row))) ends[0]->progress();
      if (row > 0) continue;
      while (!ends[0]->notify(rank(1), version)) ends[0]->progress();
    }
    ended = true;
  });
  VersionedRows::VersionedRow scratch;
  Words row(kWords);
  std::vector<std::uint64_t> last(kRows);
  std::size_t whole = 0;
  for (std::size_t i = 0; whole < kReads; ++i) {
    if (i % 64 == 0) ends[1]->progress();
    std::size_t const which = i % kRows;
    auto const version = rows.read(which, row.data(), scratch);
    if (!version) continue;
    ++whole;
    ASSERT_EQ(row, Words(kWords, *version * kRows + which));
    ASSERT_GE(*version, last[which]);
    last[which] = *version;
  }
  over = true;
  while (!ended) ends[1]->progress();  // its last writes may need progress here
  writer.join();
  while (!ends[0]->idle()) progress(ends);
}

INSTANTIATE_TEST_SUITE_P(All, WindowConformance, testing::ValuesIn(all_windows().begin(), all_windows().end()),
                         [](auto const& entry) { return std::string(entry.param.name); });

TEST(VersionedRows, DetectEveryMixtureOfTwoValues) {
  constexpr std::size_t kWords = 9;
  VersionedRows::VersionedRow before, after, mixed;
  VersionedRows::make(before, 1, Words(kWords, 5).data(), kWords * 8);
  VersionedRows::make(after, 2, Words(kWords, 6).data(), kWords * 8);
  for (std::uint32_t from_after = 0; from_after < 1U << before.size(); ++from_after) {
    mixed = before;
    for (std::size_t i = 0; i < mixed.size(); ++i) {
      if (from_after >> i & 1) mixed[i] = after[i];
    }
    EXPECT_EQ(VersionedRows::is_consistent(mixed), mixed == before || mixed == after) << from_after;
  }
}

TEST(VersionedRows, ReadReturnsOnlyWrittenRows) {
  constexpr std::size_t kRowBytes = 13;
  alignas(8) std::byte memory[3 * 32] = {};
  VersionedRows const rows(memory, 3, kRowBytes);
  ASSERT_EQ(VersionedRows::bytes(3, kRowBytes), sizeof memory);
  char row[kRowBytes + 1] = {}, out[kRowBytes + 1] = {};
  VersionedRows::VersionedRow versioned_row;
  EXPECT_FALSE(rows.read(1, out, versioned_row));
  std::memcpy(row, "thirteen byte", kRowBytes);
  VersionedRows::make(versioned_row, 7, row, kRowBytes);
  std::memcpy(memory + rows.offset(1), versioned_row.data(), VersionedRows::versioned_row_bytes(kRowBytes));
  EXPECT_EQ(rows.read(1, out, versioned_row), 7U);
  EXPECT_STREQ(out, row);
  EXPECT_FALSE(rows.read(0, out, versioned_row));
  EXPECT_FALSE(rows.read(2, out, versioned_row));
}

}  // namespace
}  // namespace gpups::comm
