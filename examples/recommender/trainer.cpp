// SPDX-License-Identifier: Apache-2.0
#include "trainer.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

using namespace gpups;

namespace {

constexpr std::int64_t kAhead = 4;  // steps from preparing a batch to training on it
constexpr std::size_t kMicrobatches = 16, kMicrobatch = kBatch / kMicrobatches;
constexpr std::int64_t kServeEvery = 4;  // steps
constexpr std::size_t kServed = 8;       // requests at once; each takes kTables look-ups
static_assert(kServed * kTables <= Store::kLookupsMax);

template <class Float>
SampleRows<Float> rows_of(Matrix<float> const (&matrices)[kTables], std::size_t sample) {
  return {.habit = matrices[kUsers].row(sample).data(),
          .item = matrices[kItems].row(sample).data(),
          .liked = matrices[kLiked].row(sample).data(),
          .context = matrices[kContexts].row(sample).data()};
}

// Returns the log-loss in units of 2^-30.
std::int64_t log_loss(float logit, bool clicked) {
  return std::llround(0x1p30 * std::log1p(std::exp(static_cast<double>(clicked ? -logit : logit))));
}

}  // namespace

void Progress::add(Impression const& impression, float logit) {
  loss += log_loss(logit, impression.clicked);
  least += log_loss(impression.logit, impression.clicked);
  clicks += impression.clicked ? 1 : 0;
  ++impressions;
}

Report wait_report(Store& store, Progress const& mine) {
  auto const places = static_cast<std::int64_t>(store.stats().rows_reserved);
  std::vector<std::int64_t> sums{mine.loss, mine.least, mine.clicks, mine.impressions, mine.requests, places};
  store.wait_allreduce(sums);
  std::size_t rows = 0;
  for (Table const table : kAllTables) rows += store.size(TableId{table});
  auto const impressions = static_cast<double>(sums[3]), clicks = static_cast<double>(sums[2]) / impressions;
  return {.loss = static_cast<double>(sums[0]) * 0x1p-30 / impressions,
          .least = static_cast<double>(sums[1]) * 0x1p-30 / impressions,
          .base = -clicks * std::log(clicks) - (1 - clicks) * std::log(1 - clicks),
          .requests = static_cast<std::size_t>(sums[4]),
          .rows = rows,
          .places = static_cast<std::size_t>(sums[5])};
}

Trainer::Trainer(Group const& group, Store& store, Model& model)
    : group_(group), store_(store), stream_(store.make_stream()), model_(model), sums_(Device::host(), Model::size()) {}

Progress Trainer::train_until(Clock end, std::uint32_t (*signal)()) {
  Progress progress;
  std::deque<VisitBatch> ahead;  // prepared, so that owners send their rows in time
  for (Clock clock = store_.clock(), next = clock; clock < end; clock = clock + 1) {
    for (; next < end && next - clock < kAhead; next = next + 1) ahead.push_back(prepare(next));
    train_step(ahead.front(), signal(), progress);
    ahead.pop_front();
  }
  store_.wait_applied();
  return progress;
}

// Trains on a batch. Look-ups for requests and the allreduce of the dense layer are in flight while this rank computes.
void Trainer::train_step(VisitBatch const& batch, std::uint32_t signal, Progress& progress) {
  store_.wait_ready(batch.prepared);
  std::vector<Scoring> served = begin_serving();
  pull(batch);
  forward_backward(batch, progress);
  CollectiveRequest const request = group_.begin_allreduce(stream_, sums_);
  push(batch);
  for (Scoring& scoring : served) {
    scoring.wait(store_, stream_, model_);  // a server would send these probabilities
    ++progress.requests;
  }
  store_.advance_clock(signal);
  group_.wait_allreduce(stream_, request);
  model_.update(sums_, kBatch);
}

// Prepares a batch: this rank's microbatches, perhaps none, and the keys of their rows.
Trainer::VisitBatch Trainer::prepare(Clock clock) {
  std::size_t const rank = number(store_.rank()), ranks = static_cast<std::size_t>(store_.ranks());
  std::size_t const begin = kMicrobatches * rank / ranks, end = kMicrobatches * (rank + 1) / ranks;
  VisitBatch batch;
  for (std::size_t i = begin * kMicrobatch; i < end * kMicrobatch; ++i) {
    Impression const& impression = batch.impressions.emplace_back(make_impression(number(clock), i));
    add_row(batch.rows.tables[kUsers], impression.visit.user);
    add_row(batch.rows.tables[kItems], impression.item);
    add_history(batch.rows.tables[kLiked], impression.visit.history);
    add_row(batch.rows.tables[kContexts], impression.visit.context);
  }
  std::vector<TableBatch> tables;
  for (Table const table : kAllTables) {
    tables.push_back({TableId{table}, batch.rows.tables[table].keys, batch.rows.tables[table].offsets});
  }
  batch.prepared = store_.prepare(stream_, clock, tables, batch.impressions.size());
  return batch;
}

// Starts the look-ups of synthetic requests. They read rows with the updates of all steps before this one.
std::vector<Scoring> Trainer::begin_serving() {
  std::vector<Scoring> served;
  std::int64_t const step = number(store_.clock());
  for (std::size_t i = 0; step % kServeEvery == 0 && i < kServed; ++i) {
    served.emplace_back(store_, stream_, make_request(step, number(store_.rank()) * kServed + i));
  }
  return served;
}

// Reads one row for each impression and table: the weighted mean of a bag.
void Trainer::pull(VisitBatch const& batch) {
  for (Table const table : kAllTables) {
    values_[table] = Matrix<float>(Device::host(), batch.impressions.size(), kDims[table]);
    gradients_[table] = Matrix<float>(Device::host(), batch.impressions.size(), kDims[table]);
    store_.pull_pooled(stream_, batch.prepared, table, Pooling::kMean, values_[table],
                       batch.rows.tables[table].weights);
  }
}

void Trainer::forward_backward(VisitBatch const& batch, Progress& progress) {
  std::fill(sums_.view().begin(), sums_.view().end(), 0);
  for (std::size_t first = 0; first < batch.impressions.size(); first += kMicrobatch) {
    std::vector<float> dense(Model::size());
    for (std::size_t i = first; i < first + kMicrobatch; ++i) {
      Impression const& impression = batch.impressions[i];
      float const logit =
          model_.learn(rows_of<float const>(values_, i), impression.clicked, rows_of<float>(gradients_, i), dense);
      progress.add(impression, logit);
    }
    Model::add_to_sums(dense, sums_);
  }
}

// Pushes one gradient for each bag. Each row of a bag gets its share of it, and the store sums exactly.
void Trainer::push(VisitBatch const& batch) {
  std::vector<TableGradients> gradients;
  for (Table const table : kAllTables) {
    gradients.push_back({.sources = gradients_[table], .coefficients = batch.rows.tables[table].shares});
  }
  store_.push(stream_, batch.prepared, gradients);
}
