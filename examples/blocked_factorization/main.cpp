// SPDX-License-Identifier: Apache-2.0
// Matrix factorization with parameter blocking: each rank tells the store on which rows it works next. See README.md.
//
//   blocked_factorization [--static] [RANKS]    --static: no row moves; RANKS: threads, if no launcher starts ranks
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"

using namespace gpups;

namespace {

constexpr std::size_t kSizes[] = {4000, 2000}, kEntries = 200'000;  // rows and columns of the matrix
constexpr std::size_t kTrueDim = 8, kDim = 32;                      // rank of the matrix, and of the model
constexpr std::size_t kBlocks = 8;                                  // row i and column i are in block i % kBlocks
constexpr std::size_t kEpochs = 50, kBatches = 10;                  // mini-batches in a subepoch
constexpr TableId kRows{0}, kColumns{1};

struct Share {  // one rank's share of a mini-batch
  std::vector<Key> rows, columns;
  std::vector<float> values;
};
using Epoch = std::array<std::array<Share, kBatches>, kBlocks>;  // of each mini-batch of each subepoch

// The blocks first .. end - 1 of the matrix's rows, which are those of a rank.
struct Blocks {
  std::size_t first, end;
};

// Makes a rank's entries of a matrix whose factors are random numbers in [-1, 1). Subepoch s has the strata of row
// block b and column block (b + s) % kBlocks, which share no row and no column. The entries of all ranks in a
// mini-batch do not depend on the number of ranks, so the results have the same bits.
Epoch make_epoch(Blocks mine) {
  std::mt19937_64 random(1);
  std::vector<std::array<float, kTrueDim>> factors(kSizes[0] + kSizes[1]);
  for (auto& factor : factors) {
    for (float& x : factor) x = static_cast<float>(random() >> 40) * 0x1p-23F - 1;
  }
  Epoch epoch;
  for (std::size_t i = 0; i < kEntries; ++i) {
    std::size_t const row = random() % kSizes[0], column = random() % kSizes[1], block = row % kBlocks;
    if (block < mine.first || block >= mine.end) continue;
    auto const &a = factors[row], &b = factors[kSizes[0] + column];
    Share& share = epoch[(column + kBlocks - block) % kBlocks][i % kBatches];
    share.rows.push_back(Key{row});
    share.columns.push_back(Key{column});
    share.values.push_back(std::inner_product(a.begin(), a.end(), b.begin(), 0.0F));
  }
  return epoch;
}

// Moves blocks of a table to this rank: those of its rows, or as many columns, `shift` blocks further.
void localize(Store& store, Stream& stream, TableId table, Blocks mine, std::size_t shift) {
  std::vector<Key> keys;
  for (std::size_t i = 0; i < kSizes[number(table)]; ++i) {
    std::size_t const block = (i + kBlocks - shift) % kBlocks;
    if (block >= mine.first && block < mine.end) keys.push_back(Key{i});
  }
  store.localize(stream, table, keys);
}

// Trains on a mini-batch. The loss of a value is half its squared error, so the gradient of its row is the error times
// the column. Returns the sum of squared errors in units of 2^-30: sums of integers do not depend on their order.
std::int64_t step(Store& store, Stream& stream, PreparedBatch const& batch, std::vector<float> const& values) {
  store.wait_ready(batch);
  Matrix<float> rows(Device::host(), batch.rows(0), kDim), columns(Device::host(), batch.rows(1), kDim);
  store.pull(stream, batch, std::vector<MatrixView<float>>{rows, columns});
  View<std::uint32_t const> const row = batch.positions(0), column = batch.positions(1);
  std::vector<float> errors;
  std::int64_t squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto const a = rows.row(row[i]), b = columns.row(column[i]);
    errors.push_back(std::inner_product(a.begin(), a.end(), b.begin(), 0.0F) - values[i]);
    squares += std::llround(errors[i] * errors[i] * 0x1p30F);
  }
  store.push(stream, batch, std::vector<TableGradients>{{columns, column, errors}, {rows, row, errors}});
  store.advance_clock();
  return squares;
}

// Every rank runs this function.
void train(Group const& group, bool moving) {
  Store store(group, {.placement = PlacementPolicy::kStatic});  // rows move by localize() only
  Stream stream = store.make_stream();
  for (char const* name : {"rows", "columns"}) {
    store.add_table({.name = name,
                     .dim = kDim,
                     .initializer = {Initializer::Kind::kNormal, 0.2F},
                     .optimizer = {.kind = Optimizer::Kind::kRowwiseAdagrad, .learning_rate = 0.2F}});
  }
  std::size_t const rank = number(group.rank()), ranks = static_cast<std::size_t>(group.size());
  Blocks const mine{kBlocks * rank / ranks, kBlocks * (rank + 1) / ranks};
  Epoch const shares = make_epoch(mine);
  std::int64_t squares = 0;

  if (moving) localize(store, stream, kRows, mine, 0);  // once: no other rank ever uses them
  for (std::size_t epoch = 0; epoch < kEpochs; ++epoch) {
    squares = 0;
    for (std::size_t subepoch = 0; subepoch < kBlocks; ++subepoch) {
      if (moving) localize(store, stream, kColumns, mine, subepoch);  // no other rank uses them in this subepoch
      std::vector<PreparedBatch> batches;  // prepared only now, since no row moves while a batch is prepared
      for (Share const& share : shares[subepoch]) {
        std::vector<TableBatch> const parts{{kRows, share.rows}, {kColumns, share.columns}};
        Clock const clock = store.clock() + static_cast<std::int64_t>(batches.size());
        batches.push_back(store.prepare(stream, clock, parts, share.values.size()));
      }
      for (std::size_t i = 0; i < kBatches; ++i) squares += step(store, stream, batches[i], shares[subepoch][i].values);
    }
  }

  store.wait_applied();
  std::vector<std::int64_t> sums{squares, static_cast<std::int64_t>(store.stats().sent.bytes())};
  store.wait_allreduce(sums);
  std::uint64_t const hash = store.table_hash();
  if (rank == 0) {
    std::printf("ranks %zu  RMSE %.4f  table hash %016llx  MB sent %.2f\n", ranks,
                std::sqrt(static_cast<double>(sums[0]) * 0x1p-30 / kEntries), static_cast<unsigned long long>(hash),
                static_cast<double>(sums[1]) * 1e-6);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> words(argv + 1, argv + argc);
  bool const moving = std::erase(words, "--static") == 0, launched = Group::launch_info().ranks != 1;
  std::string const ranks = words.empty() ? "1" : words[0];
  if (words.size() > (launched ? 0 : 1) || ranks.size() != 1 || ranks[0] < '1' || ranks[0] > '0' + int{kBlocks}) {
    std::fprintf(stderr, "usage: blocked_factorization [--static] [RANKS]    RANKS: 1 to %zu, without a launcher\n",
                 kBlocks);
    return 2;
  }
  std::string const placement = moving ? "localize" : "static";
  run_ranks(
      launched ? std::vector{Group::join({.must_match = {{"placement", placement}}})} : Group::threads(ranks[0] - '0'),
      [&](Group const& group) { train(group, moving); });
} catch (std::exception const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
