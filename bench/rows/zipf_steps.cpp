// SPDX-License-Identifier: Apache-2.0
// Trains ranks on batches whose keys have a Zipf distribution, and measures the bytes that they send and the host
// memory that training takes beside the tables. Every row exists before the first step, as after long training. The
// ranks are threads; keys are sent as between hosts. Prints a line of JSON.
//   zipf_steps --ranks 4 --batch 4096 --features 26 --lookahead 16
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "bench/rows/rank_stats.hpp"
#include "gpups/gpups.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"
#include "tests/support/inputs.hpp"
#include "trainer/base/random.hpp"

namespace gpups::bench {
namespace {

struct Options {
  int ranks = 4;
  std::int64_t lookahead = 16, warm_up = 4, steps = 10, staleness = 0;
  std::size_t batch = 4096, features = 26, values = 10000000, dim = 64;
  double exponent = 1.05, own = 0, replica_fraction = .1;
  float gradient_max = .005F;
  PlacementPolicy placement = PlacementPolicy::kStatic;
  Optimizer::Kind optimizer = Optimizer::Kind::kSgd;
  RowCodec codec = RowCodec::kLossless;

  std::size_t entries() const { return batch * features; }
};

// The keys of all batches, as a function of rank and step.
class Trace {
 public:
  explicit Trace(Options const& o) : o_(o), zipf_(o.values, o.exponent) {}

  // Returns the keys of a rank's batch: a share `own` of them are keys that no other rank uses.
  std::vector<Key> keys(std::uint32_t rank, std::int64_t step) const {
    test::Random random(static_cast<std::uint64_t>(step) << 32 | rank);
    std::vector<Key> keys(o_.entries());
    for (Key& key : keys) {
      bool const own = test::uniform(random) < o_.own;
      key = Key{(own ? std::uint64_t{rank} + 1 : 0) << 32 | zipf_(random)};
    }
    return keys;
  }

  std::vector<Key> distinct(std::uint32_t rank, std::int64_t step) const { return sorted(keys(rank, step)); }

  // Returns the distinct keys of all batches that are prepared.
  std::vector<Key> all() const {
    std::vector<Key> all;
    for (std::int64_t step = 0; step < o_.warm_up + o_.steps + o_.lookahead; ++step) {
      for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(o_.ranks); ++rank) {
        auto const more = distinct(rank, step);
        all.insert(all.end(), more.begin(), more.end());
      }
    }
    return sorted(std::move(all));
  }

  // Returns the number of rows of steps first .. last - 1 whose home is not their reader, summed over ranks.
  std::size_t remote_rows(std::int64_t first, std::int64_t last) const {
    std::size_t rows = 0;
    for (std::int64_t step = first; step < last; ++step) {
      for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(o_.ranks); ++rank) {
        for (Key const key : distinct(rank, step)) {
          rows += kernels::home_of(key, static_cast<std::uint32_t>(o_.ranks)) != rank ? 1 : 0;
        }
      }
    }
    return rows;
  }

 private:
  static std::vector<Key> sorted(std::vector<Key> keys) {
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return keys;
  }

  Options const& o_;
  trainer::Zipf zipf_;
};

// Creates the rows of `keys`, from rank 0, in chunks that need little memory. Collective.
void create_rows(Store& store, Stream& stream, TableId table, std::vector<Key> const& keys, std::size_t dim) {
  constexpr std::size_t kChunk = 4096;
  Matrix<float> const values(Device::host(), kChunk, dim);
  std::fill_n(values.view().data(), values.view().flat().size(), .01F);
  for (std::size_t first = 0; first < keys.size(); first += kChunk) {
    std::size_t const count = number(store.rank()) == 0 ? std::min(kChunk, keys.size() - first) : 0;
    store.assign(stream, table, View<Key const>(keys).slice(first, count), values);
  }
}

// The counters of a rank, and the bytes of host memory of all ranks before the first batch was prepared and after the
// last step.
struct TrainedRank {
  CountedSteps counted;
  std::size_t bytes_before = 0, bytes_after = 0;
};

TrainedRank train(Group const& group, Trace const& trace, std::vector<Key> const& all, Options const& o) {
  Store store(group, {.device = Device::host(),
                      .threads = 1,
                      .replica_fraction = o.replica_fraction,
                      .placement = o.placement,
                      .placement_bytes_min = 0,
                      .staleness = o.staleness,
                      .key_format = KeyFormat::kDictionary});
  RowCompression const codec{.codec = o.codec};
  // The index has room for replicas, so that it does not grow while memory is measured.
  auto const table = store.add_table({.name = "values",
                                      .dim = o.dim,
                                      .optimizer = {.kind = o.optimizer},
                                      .expected_rows = 2 * all.size(),
                                      .gradient_compression = codec,
                                      .refresh_compression = codec});
  Stream stream = store.make_stream();
  create_rows(store, stream, table, all, o.dim);
  test::Random random(number(group.rank()) + 1);
  auto gradients = test::floats(random, o.entries(), o.dim);
  for (float& gradient : gradients) gradient *= o.gradient_max;
  store.wait_barrier();
  TrainedRank result{.counted = {}, .bytes_before = memory::usage(Device::host()).bytes, .bytes_after = 0};
  store.wait_barrier();

  Matrix<float> const sources = test::matrix(stream, gradients, o.entries(), o.dim);
  Matrix<float> const rows(Device::host(), o.entries(), o.dim);
  MatrixView<float> const row_view = rows;
  TableGradients const part_gradients{.sources = sources};
  std::deque<PreparedBatch> ahead;
  auto const prepare = [&](std::int64_t step) {
    auto const keys = trace.keys(number(group.rank()), step);
    TableBatch const part{.table = table, .keys = View<Key const>(keys)};
    ahead.push_back(store.prepare(stream, Clock{step}, {&part, 1}, o.batch));
  };
  for (std::int64_t step = 0; step < o.lookahead; ++step) prepare(step);
  for (std::int64_t step = 0; step < o.warm_up + o.steps; ++step) {
    if (step == o.warm_up) result.counted.before = wait_stats(store);
    prepare(step + o.lookahead);
    store.wait_ready(ahead.front());
    store.pull(stream, ahead.front(), {&row_view, 1});
    store.push(stream, ahead.front(), {&part_gradients, 1});
    store.advance_clock();
    ahead.pop_front();
  }
  result.counted.after = wait_stats(store);
  result.bytes_after = memory::usage(Device::host()).bytes;
  store.wait_barrier();
  return result;
}

void run(Options const& o) {
  Trace const trace(o);
  std::vector<TrainedRank> trained(static_cast<std::size_t>(o.ranks));
  {
    std::vector<Key> const all = trace.all();
    run_ranks(Group::threads(o.ranks),
              [&](Group const& group) { trained[number(group.rank())] = train(group, trace, all, o); });
  }
  std::vector<CountedSteps> counted;
  std::uint64_t keys = 0, late_keys = 0, rows_reserved = 0, moved_rows = 0, leased_keys = 0;
  for (auto const& rank : trained) {
    counted.push_back(rank.counted);
    keys += rank.counted.after.distinct_keys;
    rows_reserved += rank.counted.after.rows_reserved;
    late_keys += rank.counted.after.late_keys - rank.counted.before.late_keys;
    moved_rows += rank.counted.after.moved_rows - rank.counted.before.moved_rows;
    leased_keys += rank.counted.after.leased_keys - rank.counted.before.leased_keys;
  }
  auto const sent = sent_per_step(counted, o.steps);
  // A round sends the gradients of its step and the values of the next one.
  auto const per_step = [&](std::size_t rows) {
    return static_cast<double>(rows) / static_cast<double>(o.ranks) / static_cast<double>(o.steps);
  };
  std::int64_t const end = o.warm_up + o.steps;
  double const gradient_rows = per_step(trace.remote_rows(o.warm_up, end));
  double const refresh_rows = per_step(trace.remote_rows(o.warm_up + 1, end + 1));
  double const bytes_of_row = 4 * static_cast<double>(o.dim) + 1.0 / 8;
  double const gradients = sent["gradients"], refreshes = sent["refreshes"];
  double sent_in_all = 0;
  for (auto const& [kind, bytes] : sent.items()) sent_in_all += bytes.get<double>();
  nlohmann::ordered_json const line{
      {"ranks", o.ranks},
      {"batch", o.batch},
      {"features", o.features},
      {"own", o.own},
      {"gradient_max", o.gradient_max},
      {"placement", name_of(o.placement)},
      {"staleness", o.staleness},
      {"lookahead", o.lookahead},
      {"steps", o.steps},
      {"sent", sent},
      {"gradient_rows", gradient_rows},
      {"refresh_rows", refresh_rows},
      {"gradients_ratio", gradients / (gradient_rows * bytes_of_row)},
      {"refreshes_ratio", refreshes / (refresh_rows * bytes_of_row)},
      {"ratio", (gradients + refreshes) / ((gradient_rows + refresh_rows) * bytes_of_row)},
      {"late_keys", late_keys},
      {"moved_rows", per_step(moved_rows)},
      {"leased_keys", per_step(leased_keys)},
      {"bytes", sent_in_all},
      {"rows_reserved", rows_reserved},
      {"keys_announced", keys},
      {"bytes_of_tables", trained[0].bytes_before},
      {"bytes_of_training", memory::usage(Device::host()).bytes_peak - trained[0].bytes_before},
      {"bytes_at_end", trained[0].bytes_after - trained[0].bytes_before}};
  fmt::print("{}\n", line.dump());
}

}  // namespace
}  // namespace gpups::bench

int main(int argc, char** argv) {
  gpups::bench::Options o;
  CLI::App app("Measures the bytes between ranks and the memory of training on keys with a Zipf distribution");
  app.add_option("--ranks", o.ranks, "number of ranks")->check(CLI::Range(2, 256))->capture_default_str();
  app.add_option("--lookahead", o.lookahead, "steps that batches are prepared ahead")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--warm-up", o.warm_up, "steps whose bytes are not counted")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  app.add_option("--steps", o.steps, "steps whose bytes are counted")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--batch", o.batch, "samples of a rank in a step")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--features", o.features, "keys of a sample")->check(CLI::Range(1, 1024))->capture_default_str();
  app.add_option("--values", o.values, "number of keys that batches are drawn from")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--dim", o.dim, "numbers in a row")->check(CLI::Range(1, 65536))->capture_default_str();
  app.add_option("--exponent", o.exponent, "exponent of the Zipf distribution; not 1")->capture_default_str();
  app.add_option("--own", o.own, "share of the entries whose keys only this rank uses")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--gradient-max", o.gradient_max,
                 "magnitude of the largest gradient of an entry; a larger sum takes more bytes")
      ->check(CLI::Range(1e-6, 1.0))
      ->capture_default_str();
  using gpups::Optimizer;
  std::string placement = gpups::name_of(o.placement);
  app.add_option("--placement", placement, "policy that moves rows")->capture_default_str();
  std::map<std::string, Optimizer::Kind> const optimizers{{"sgd", Optimizer::Kind::kSgd},
                                                          {"rowwise_adagrad", Optimizer::Kind::kRowwiseAdagrad},
                                                          {"adagrad", Optimizer::Kind::kAdagrad},
                                                          {"adam", Optimizer::Kind::kAdam}};
  app.add_option("--staleness", o.staleness, "steps by which reads may be behind")
      ->check(CLI::Range(0, 65536))
      ->capture_default_str();
  app.add_option("--replica-fraction", o.replica_fraction, "most replicas that are kept, of the rows of a rank")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  std::map<std::string, gpups::RowCodec> const codecs{
      {"lossless", gpups::RowCodec::kLossless}, {"fp16", gpups::RowCodec::kHalf}, {"int8", gpups::RowCodec::kInt8}};
  app.add_option("--codec", o.codec, "codec of gradients and values: lossless (default), fp16 or int8")
      ->transform(CLI::CheckedTransformer(codecs))
      ->option_text("NAME");
  app.add_option("--optimizer", o.optimizer, "optimizer of the rows: sgd (default), rowwise_adagrad, adagrad or adam")
      ->transform(CLI::CheckedTransformer(optimizers))
      ->option_text("NAME");
  CLI11_PARSE(app, argc, argv);
  try {
    o.placement = gpups::placement_policy(placement);
    GPUPS_REQUIRE(o.exponent > 0 && o.exponent != 1, "--exponent is {} (it must be positive and not 1): use 1.05",
                  o.exponent);
    gpups::bench::run(o);
    return 0;
  } catch (std::exception const& error) {
    fmt::print(stderr, "zipf_steps: error: {}\n", error.what());
    return 2;
  }
}
