// SPDX-License-Identifier: Apache-2.0
// A recommender on gpups: matrix factorization. A rating is predicted as the dot product of a user's and an item's row.
//
//   recommender [RANKS [CHECKPOINT_FOLDER]]
//
// Read main() at the end first, then train().
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "ratings.hpp"

using namespace gpups;

constexpr std::size_t kDim = 16, kBatch = 2000, kTrain = 100'000, kHeldOut = 10'000, kEpochs = 10;
constexpr std::int64_t kAhead = 4;  // steps between announcing a batch and training on it
constexpr TableId kUserTable{0}, kItemTable{1};

float dot(float const* a, float const* b) { return std::inner_product(a, a + kDim, b, 0.0F); }

// Two tables of rows. A row begins with small random values, the same on every rank and in every run.
void add_tables(Store& store) {
  for (char const* name : {"users", "items"}) {
    store.add_table({.name = name,
                     .dim = kDim,
                     .initializer = {Initializer::Kind::kNormal, 0.3F},
                     .optimizer = {.kind = Optimizer::Kind::kRowwiseAdagrad, .learning_rate = 0.3F}});
  }
}

struct Keys {
  std::vector<Key> users, items;
};
Keys keys_of(std::span<Rating const> ratings) {
  Keys keys;
  for (Rating const& rating : ratings) {
    keys.users.push_back(Key{rating.user});
    keys.items.push_back(Key{rating.item});
  }
  return keys;
}

// One rank's part of a global batch.
struct Step {
  std::span<Rating const> ratings;
  Prepared prepared;
};

// Lists the rows that a step will use: rating i is entry i of both tables.
Step prepare(Store& store, Stream& stream, Clock clock, std::span<Rating const> ratings) {
  auto const [users, items] = keys_of(ratings);
  return {ratings, store.prepare(stream, clock, std::vector<TableBatch>{{kUserTable, users}, {kItemTable, items}},
                                 ratings.size())};
}

// The step: pull rows, compute, push gradients.
void train_step(Store& store, Stream& stream, Step const& step) {
  Prepared const& batch = step.prepared;
  store.wait_ready(batch);
  Matrix<float> users(Device::host(), batch.rows(0), kDim), items(Device::host(), batch.rows(1), kDim);
  store.pull(stream, batch, std::vector<MatrixView<float>>{users, items});

  // d(error^2 / 2) / d(user) = error * item, and the other way round: the sources of one table's gradients are the rows
  // of the other, named by their positions.
  std::vector<float> errors(step.ratings.size());
  for (std::size_t i = 0; i < errors.size(); ++i) {
    auto const user = users.row(batch.positions(0)[i]), item = items.row(batch.positions(1)[i]);
    errors[i] = dot(user.data(), item.data()) - step.ratings[i].value;
  }
  store.push(stream, batch,
             std::vector<TableGradients>{{items, batch.positions(1), errors}, {users, batch.positions(0), errors}});
  store.advance_clock();
}

// Reads rows as they are now, without training on them, and returns the root of the mean squared error.
double rmse(Store& store, Stream& stream, std::span<Rating const> ratings) {
  auto const [users, items] = keys_of(ratings);
  Matrix<float> user_rows(Device::host(), ratings.size(), kDim), item_rows(Device::host(), ratings.size(), kDim);
  store.lookup(stream, kUserTable, users, user_rows, {});
  store.lookup(stream, kItemTable, items, item_rows, {});
  double sum = 0;
  for (std::size_t i = 0; i < ratings.size(); ++i) {
    double const error = dot(user_rows.row(i).data(), item_rows.row(i).data()) - ratings[i].value;
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(ratings.size()));
}

// What each rank runs: the same code, on its share of every batch.
void train(Group const& group, std::span<Rating const> data, std::filesystem::path const& folder) {
  Store store(group, {.seed = 7});
  Stream stream = store.make_stream();
  add_tables(store);

  std::size_t const rank = number(store.rank()), ranks = store.ranks(), batches = kTrain / kBatch;
  std::int64_t const clock_end = kEpochs * batches;
  auto const share = [&](Clock clock) {  // of the global batch, which does not depend on the number of ranks
    std::size_t const first = number(clock) % batches * kBatch;
    std::size_t const begin = kBatch * rank / ranks, end = kBatch * (rank + 1) / ranks;
    return data.subspan(first + begin, end - begin);
  };

  std::deque<Step> ahead;  // announced, so that their rows arrive without being asked for
  for (Clock clock{0}, next{0}; number(clock) < clock_end; clock = clock + 1) {
    for (; number(next) < clock_end && next - clock < kAhead; next = next + 1) {
      ahead.push_back(prepare(store, stream, next, share(next)));
    }
    train_step(store, stream, ahead.front());
    ahead.pop_front();

    if ((number(clock) + 1) % batches == 0) {  // an epoch is over
      store.wait_flush();
      double const train_error = rmse(store, stream, data.first(kTrain));
      double const held_out_error = rmse(store, stream, data.subspan(kTrain));
      store.wait_barrier();
      if (rank == 0) {
        std::printf("epoch %2zu  train rmse %.4f  held-out rmse %.4f\n", (number(clock) + 1) / batches, train_error,
                    held_out_error);
      }
    }
  }
  store.save(folder, std::vector<Blob>{{"about", "planted ratings, 16 factors"}});
  std::uint64_t const hash = store.table_hash();
  if (rank == 0) std::printf("table hash %016lx, the same for every number of ranks\n", hash);
}

int main(int argc, char** argv) {
  int const ranks = argc > 1 ? std::stoi(argv[1]) : 1;
  std::filesystem::path const folder = argc > 2 ? argv[2] : "recommender-checkpoint";
  std::vector<Rating> const data = planted_ratings(kTrain + kHeldOut, 42);

  // Ranks are threads here; what they run would be the same in processes.
  run_ranks(Group::threads(ranks), [&](Group group) { train(group, data, folder); });

  // Serving: one rank reads what any number of ranks wrote.
  Store store(Group::alone(), {.seed = 7});
  Stream stream = store.make_stream();
  add_tables(store);
  std::vector<Blob> const blobs = store.restore(folder);
  double const error = rmse(store, stream, std::span(data).subspan(kTrain));
  double const error_max = 1.2 * kNoise;
  std::printf("restored %zu users and %zu items (%s): held-out rmse %.4f, noise %.4f\n", store.size(kUserTable),
              store.size(kItemTable), blobs.at(0).bytes.c_str(), error, kNoise);

  std::vector<Key> const stranger{Key{12345}};
  Matrix<float> row(Device::host(), 1, kDim);
  std::vector<std::uint8_t> found(1);
  store.lookup(stream, kUserTable, stranger, row, found);
  std::printf("user 12345 is %s\n", found[0] != 0 ? "known" : "new: their row has its initial value");

  if (error > error_max || found[0] != 0) {
    std::fprintf(stderr, "held-out rmse %.4f (it should be below %.4f): training is broken\n", error, error_max);
    return 1;
  }
}
