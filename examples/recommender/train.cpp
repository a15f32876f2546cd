// SPDX-License-Identifier: Apache-2.0
#include "train.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <optional>

#include "trainer.hpp"

using namespace gpups;

namespace {

constexpr std::int64_t kPeriod = 50;  // steps between two reports; then rows expire and signals are checked
// Steps without an update after which a row expires.
constexpr std::int64_t kUserAge = 30, kItemAge = 100;
constexpr std::int64_t kStepsToLearn = 400;  // after which predictions must be good
constexpr double kLearntLeast = 0.85;        // without the hidden layer, 0.71 is reached
// Without admission and expiry, there would be more. Each rank has places for replicas.
constexpr std::size_t kRowsMost = 6000, kPlacesMostEach = 12000;

std::atomic<std::uint32_t> stop_requested = 0;  // lock-free, so that a signal handler may set it
static_assert(decltype(stop_requested)::is_always_lock_free);
std::uint32_t stop() { return stop_requested; }

// Removes rows that were not updated for long. REQUIRES: no prepared batch exists.
void expire_rows(Store& store) {
  store.expire(TableId{kUsers}, kUserAge);
  store.expire(TableId{kItems}, kItemAge);
  store.expire(TableId{kLiked}, kItemAge);
}

void print(std::int64_t steps, Report const& report) {
  std::printf(
      "step %4lld  log-loss %.4f  best possible %.4f  learnt %2.0f%%  users so far %zu  rows %zu  places %zu  "
      "answered %zu\n",
      static_cast<long long>(steps), report.loss, report.least, 100 * report.learnt(), users_until(steps), report.rows,
      report.places, report.requests);
  std::fflush(stdout);
}

// Returns whether the results are good enough; prints why they are not.
bool check(Report const& last, int ranks) {
  bool const learnt = last.learnt() >= kLearntLeast;
  bool const bounded = last.rows <= kRowsMost && last.places <= kPlacesMostEach * static_cast<std::size_t>(ranks);
  if (!learnt) std::fprintf(stderr, "the model learnt only %.0f%% of what can be learnt\n", 100 * last.learnt());
  if (!bounded) std::fprintf(stderr, "there are %zu rows in %zu places, which is too many\n", last.rows, last.places);
  return learnt && bounded;
}

// Prints answers, to compare them with those of `recommender serve`.
void print_answers(Store& store, Stream& stream, Model const& model) {
  for (std::size_t i = 0; i < 3; ++i) {
    std::printf("%s\n", wait_answer(store, stream, model, make_request(number(store.clock()), i)).c_str());
  }
}

}  // namespace

bool train(Group const& group, std::filesystem::path const& folder, std::int64_t steps) {
  std::signal(SIGINT, [](int) { stop_requested = 1; });
  std::signal(SIGTERM, [](int) { stop_requested = 1; });
  Store store(group, {.seed = kSeed});
  Stream stream = store.make_stream();
  Model model;
  add_tables(store);
  if (std::filesystem::exists(folder / "manifest.json")) model.restore(store.restore(folder));

  bool const first = number(store.rank()) == 0;
  Trainer trainer(group, store, model);
  std::optional<Report> last;
  for (bool stopped = false; number(store.clock()) < steps && !stopped; stopped = store.signals() != 0) {
    std::int64_t const period_end = (number(store.clock()) / kPeriod + 1) * kPeriod;
    Progress const mine = trainer.train_until(Clock{std::min(steps, period_end)}, stop);
    expire_rows(store);
    last = wait_report(store, mine);
    if (first) print(number(store.clock()), *last);
  }

  store.save(folder, std::vector<Blob>{model.save()});
  std::uint64_t const hash = store.table_hash();
  if (first) {
    print_answers(store, stream, model);
    std::printf("table hash %016llx  dense hash %016llx\n", static_cast<unsigned long long>(hash),
                static_cast<unsigned long long>(model.hash()));
  }
  store.wait_barrier();  // every rank answers look-ups until all ranks have finished
  return !first || !last || number(store.clock()) < kStepsToLearn || check(*last, store.ranks());
}
