// SPDX-License-Identifier: Apache-2.0
// Extreme values of every numeric option and argument of the public headers: each invalid value is an Error that names
// the option, and changes nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::extreme_options_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
constexpr float kNanF = std::numeric_limits<float>::quiet_NaN(), kInfinityF = std::numeric_limits<float>::infinity();
constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
constexpr std::int64_t kLeast64 = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost64 = std::numeric_limits<std::int64_t>::max();
constexpr int kLeast = std::numeric_limits<int>::min(), kMostInt = std::numeric_limits<int>::max();

// An invalid value of a field, and a part of the error text.
template <class Options>
struct Case {
  char const* says;
  std::function<void(Options&)> set;
};

template <class Options>
void expect_all_rejected(std::vector<Case<Options>> const& cases, Options const& good,
                         std::function<void(Options const&)> const& use) {
  use(good);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    Options bad = good;
    cases[i].set(bad);
    expect_error([&] { use(bad); }, {cases[i].says});
  }
}

TEST(ExtremeOptions, TableOptionsAreRejected) {
  using T = TableOptions;
  std::vector<Case<T>> cases{
      {"has no name", [](T& t) { t.name = ""; }},
      {"name of", [](T& t) { t.name = std::string(100000, 'x'); }},
      {"name of", [](T& t) { t.name = "\xFF\xFE"; }},
      {"dim 0", [](T& t) { t.dim = 0; }},
      {"has dim", [](T& t) { t.dim = kMost; }},
      {"an initializer of kind 7", [](T& t) { t.initializer.kind = static_cast<Initializer::Kind>(7); }},
      {"has initializer.scale", [](T& t) { t.initializer.scale = kNanF; }},
      {"has initializer.scale", [](T& t) { t.initializer.scale = kInfinityF; }},
      {"has initializer.scale -1", [](T& t) { t.initializer.scale = -1; }},
      {"has initializer.scale",
       [](T& t) {
         t.initializer = {Initializer::Kind::kNormal, 3e38F};
       }},
      {"an optimizer of kind 9", [](T& t) { t.optimizer.kind = static_cast<Optimizer::Kind>(9); }},
      {"an optimizer of kind -1", [](T& t) { t.optimizer.kind = static_cast<Optimizer::Kind>(-1); }},
      {"as beta1 or beta2", [](T& t) { t.optimizer.beta1 = 1; }},
      {"as beta1 or beta2", [](T& t) { t.optimizer.beta2 = kNanF; }},
      {"a schedule of kind 3", [](T& t) { t.schedule.kind = static_cast<Schedule::Kind>(3); }},
      {"schedule.min_factor", [](T& t) { t.schedule.min_factor = 1.5F; }},
      {"schedule.min_factor", [](T& t) { t.schedule.min_factor = -0.1F; }},
      {"schedule.min_factor", [](T& t) { t.schedule.min_factor = kNanF; }},
      {"has -1 warmup_steps", [](T& t) { t.schedule.warmup_steps = -1; }},
      {"correct warmup_steps or total_steps", [](T& t) { t.schedule.warmup_steps = kLeast64; }},
      {"correct warmup_steps or total_steps", [](T& t) { t.schedule.warmup_steps = kMost64; }},
      {"correct warmup_steps or total_steps", [](T& t) { t.schedule.total_steps = -1; }},
      {"set total_steps",
       [](T& t) {
         t.schedule = {Schedule::Kind::kLinear, 5, 5, 0};
       }},
      {"correct warmup_steps or total_steps",
       [](T& t) {
         t.schedule = {Schedule::Kind::kCosine, -10, -5, 0};
       }},
      {"grid_log2", [](T& t) { t.grid_log2 = kLeast; }},
      {"grid_log2", [](T& t) { t.grid_log2 = kMostInt; }},
      {"has 18446744073709551615 expected_rows", [](T& t) { t.expected_rows = kMost; }},
      {"lower expected_rows", [](T& t) { t.expected_rows = kMost - 1; }},
      {"lower expected_rows", [](T& t) { t.expected_rows = std::size_t{1} << 63; }},
      {"lower expected_rows", [](T& t) { t.expected_rows = std::size_t{1} << 32; }},
      {"has admission_count 0", [](T& t) { t.admission_count = 0; }},
      {"has admission_count", [](T& t) { t.admission_count = 0xFFFFFFFF; }},
      {"value_type number 9", [](T& t) { t.value_type = static_cast<DataType>(9); }},
      {"dictionary_keys", [](T& t) { t.dictionary_keys = kMost; }},
      {"top_k 1 for its refreshes", [](T& t) { t.refresh_compression.top_k = 1; }},
      {"top_k", [](T& t) { t.gradient_compression.top_k = kMost; }},
  };
  float Optimizer::*const settings[] = {&Optimizer::learning_rate,
                                        &Optimizer::epsilon,
                                        &Optimizer::initial_accumulator,
                                        &Optimizer::l2,
                                        &Optimizer::clip_norm,
                                        &Optimizer::l1,
                                        &Optimizer::beta};
  for (auto const setting : settings) {
    for (float const value : {-1.0F, kNanF, kInfinityF}) {
      cases.push_back({"of its optimizer", [=](T& t) { t.optimizer.*setting = value; }});
    }
  }
  for (auto const transfer : {&T::gradient_compression, &T::refresh_compression}) {
    cases.push_back({"codec", [=](T& t) { (t.*transfer).codec = static_cast<RowCodec>(99); }});
    cases.push_back({"filter.age_max", [=](T& t) { (t.*transfer).filter.age_max = 0xFFFFFFFF; }});
    for (float const value : {-1.0F, kNanF, kInfinityF}) {
      cases.push_back({"filter.density", [=](T& t) { (t.*transfer).filter.density = value; }});
      cases.push_back({"filter.threshold_max", [=](T& t) { (t.*transfer).filter.threshold_max = value; }});
    }
    cases.push_back({"capacity_rows", [=](T& t) { (t.*transfer).capacity_rows = 0; }});
    cases.push_back({"capacity_rows", [=](T& t) { (t.*transfer).capacity_rows = kMost; }});
  }
  expect_all_rejected<T>(cases, {.name = "t", .dim = 4}, [](T const& options) {
    Store store(Group::alone(), {.threads = 1});
    store.add_table(options);
  });
}

// The largest accepted value does not overflow the memory plan.
TEST(ExtremeOptions, LargestExpectedRowsCanBePlanned) {
  Store store(Group::alone(), {.threads = 1});
  store.add_table({.name = "t", .dim = 65536, .expected_rows = (std::size_t{1} << 31) - 2});
  std::uint64_t bytes = 0;
  for (auto const& line : store.memory_plan()) {
    EXPECT_EQ(line.bytes >> 60, 0U) << line.what;
    bytes += line.bytes;
  }
  EXPECT_GT(bytes, std::uint64_t{1} << 48);
}

TEST(ExtremeOptions, StoreOptionsAreRejected) {
  using S = StoreOptions;
  std::vector<Case<S>> cases{
      {"StoreOptions::threads is -1", [](S& s) { s.threads = -1; }},
      {"StoreOptions::threads", [](S& s) { s.threads = kLeast; }},
      {"StoreOptions::threads", [](S& s) { s.threads = kMostInt; }},
      {"device",
       [](S& s) {
         s.device = {Device::Kind::kHost, 3};
       }},
      {"device", [](S& s) { s.device = Device::cuda(-1); }},
      {"device",
       [](S& s) {
         s.device = {static_cast<Device::Kind>(5), 0};
       }},
  };
  for (double const timeout : {0.0, -1.0, kNan, kInfinity, -kInfinity}) {
    cases.push_back({"wait_timeout_s", [=](S& s) { s.wait_timeout_s = timeout; }});
  }
  expect_all_rejected<S>(cases, {.threads = 1, .wait_timeout_s = 1e9},
                         [](S const& options) { Store(Group::alone(), options); });
}

TEST(ExtremeOptions, GroupOptionsAreRejected) {
  for (double const timeout : {0.0, -1.0, kNan, kInfinity}) {
    expect_error([&] { Group::join({.join_timeout_s = timeout}); }, {"JoinOptions::join_timeout_s"});
    expect_error([&] { Group::join({.peer_timeout_s = timeout}); }, {"JoinOptions::peer_timeout_s"});
    expect_error([&] { Group::alone().wait_connect_devices({}, {.timeout_s = timeout}); },
                 {"ConnectOptions::timeout_s"});
  }
  for (int const ranks : {0, -1, kLeast, kMostInt, 1025}) {
    expect_error([&] { Group::threads(ranks); }, {"ranks cannot be created"});
    expect_error([&] { Group::simulated(ranks, {}); }, {"ranks cannot be created"});
  }
  using S = Simulation;
  std::vector<Case<S>> cases;
  for (double const value : {-1.0, kNan, kInfinity, 1e300}) {
    cases.push_back({"ms", [=](S& s) { s.delay_ms_max = value; }});
    cases.push_back({"ms", [=](S& s) { s.stall_ms_max = value; }});
    cases.push_back({"stall probability", [=](S& s) { s.stall_probability = value; }});
  }
  expect_all_rejected<S>(cases,
                         {.seed = ~std::uint64_t{0}, .delay_ms_max = 0, .stall_probability = 1, .stall_ms_max = 0},
                         [](S const& options) {
                           run_ranks(Group::simulated(2, options), [](Group const& group) {
                             Store store(group, {.threads = 1});
                             store.wait_barrier();
                           });
                         });
  for (int const threads : {-1, kLeast, kMostInt}) {
    expect_error([&] { Stream(Device::host(), threads); }, {"number of threads of a Stream"});
  }
  expect_error([] { device_from("auto", -1); }, {"local rank -1"});
}

TEST(ExtremeOptions, AllreduceOptionsAreRejected) {
  Group const group = Group::alone();
  Store store(group, {.threads = 1});
  auto stream = store.make_stream();
  std::vector<float> four(4);
  View<float> const values(four);
  auto const format = static_cast<WireFormat>(77);
  expect_error([&] { group.begin_allreduce(stream, values, {.format = format}); }, {"unknown"});
  expect_error([&] { group.begin_allreduce(stream, values, {.algorithm = "", .format = {}}); }, {"algorithm"});
  expect_error([&] { group.wait_allreduce(stream, {}); }, {"begin another"});
  expect_error([&] { group.wait_result(stream, {}); }, {"begin another"});
  expect_error([&] { group.begin_allreduce(stream, SparseView{.size = kMost}); }, {"18446744073709551615"});
  std::vector<std::uint32_t> const beyond{1, 9}, falling{2, 1};
  std::vector<float> const two(2);
  for (auto const& indices : {beyond, falling}) {
    expect_error(
        [&] {
          group.wait_result(stream, group.begin_allreduce(stream, {.size = 4,
                                                                   .indices = View<std::uint32_t const>(indices),
                                                                   .values = View<float const>(two)}));
        },
        {"indices"});
  }

  using T = TopKOptions;
  std::vector<Case<T>> cases{
      {"momentum", [](T& t) { t.momentum = 1; }},     {"momentum", [](T& t) { t.momentum = -1; }},
      {"momentum", [](T& t) { t.momentum = kNanF; }}, {"algorithm", [](T& t) { t.algorithm = "none"; }},
      {"format", [=](T& t) { t.format = format; }},   {"grid_log2", [](T& t) { t.grid_log2 = kLeast; }},
      {"grid_log2", [](T& t) { t.grid_log2 = 201; }},
  };
  for (double const value : {0.0, -1.0, 1.5, kNan, kInfinity}) {
    cases.push_back({"density", [=](T& t) { t.density = value; }});
    cases.push_back({"density", [=](T& t) { t.warmup_steps = 5, t.initial_density = value; }});
  }
  expect_all_rejected<T>(cases, {.warmup_steps = ~std::uint64_t{0}},
                         [&](T const& options) { EXPECT_LE(TopKAllreduce(group, 4, options).density(), 1); });
  expect_error([&] { TopKAllreduce(group, kMost, {}); }, {"too long"});
}

TEST(ExtremeOptions, StepArgumentsAreRejected) {
  Store store(Group::alone(), {.threads = 1});
  store.add_table({.name = "t", .dim = 4});
  auto stream = store.make_stream();
  std::vector<Key> const keys{Key{1}};
  TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys), .offsets = {}};
  auto const prepare = [&](Clock clock, std::size_t samples) { store.prepare(stream, clock, {&part, 1}, samples); };
  for (std::size_t const samples : {kMost, std::size_t{1} << 63, (std::size_t{1} << 40) + 1}) {
    expect_error([&] { prepare(Clock{0}, samples); }, {"prepare() was called with", std::to_string(samples).c_str()});
  }
  for (std::int64_t const clock : {kLeast64, std::int64_t{-1}, kMost64}) {
    expect_error([&] { prepare(Clock{clock}, 1); }, {"a batch is prepared for step"});
  }
  TableBatch nowhere = part;
  nowhere.table = TableId{0xFFFFFFFF};
  expect_error([&] { store.prepare(stream, Clock{0}, {&nowhere, 1}, 1); }, {"uses table 4294967295"});
  // Two parts of 2^63 entries each: their sum wraps to 0.
  TableBatch half = part;
  half.keys = {keys.data(), (kMost / 2) + 1};
  TableBatch const both[] = {half, half};
  expect_error([&] { store.prepare(stream, Clock{0}, both, 1); }, {"use smaller batches"});
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // sanitizers end a program that allocates so much
  expect_error([&] { Array<double>(Device::host(), kMost / 4); }, {"no memory"});
  expect_error([&] { Array<double>(Device::host(), kMost / 8 + 2); }, {"no memory"});
  expect_error([&] { Matrix<float>(Device::host(), kMost / 16 + 2, 16); }, {"no memory"});
#endif

  prepare(Clock{0}, std::size_t{1} << 40);
}

TEST(ExtremeOptions, ArgumentsBetweenStepsAreRejected) {
  Store store(Group::alone(), {.threads = 1});
  store.add_table({.name = "t", .dim = 4});
  for (std::int64_t const age : {std::int64_t{0}, std::int64_t{-1}, kLeast64, kMost64}) {
    expect_error([&] { store.expire(TableId{0}, age); }, {("the age " + std::to_string(age)).c_str()});
  }
  expect_error([&] { store.wait_allgather(std::string((std::size_t{32} << 20) + 1, 'x')); }, {"gather them in parts"});
  auto stream = store.make_stream();
  expect_error([&] { store.scan(stream, TableId{0}, {}); }, {"an empty function"});
  TemporaryFolder const folder;
  auto const format = static_cast<ExportFormat>(9);
  expect_error([&] { store.export_rows(folder.path() / "out", format); }, {"the format number 9"});
  std::uint64_t const wraps[] = {std::uint64_t{1} << 32, std::uint64_t{1} << 32};
  expect_error([&] { export_array(folder.path() / "a", ExportFormat::kNpy, wraps, {}); }, {"a shape of"});
  expect_error([&] { export_array(folder.path() / "a", format, {}, {}); }, {"the format number 9"});
  expect_error([&] { store.save("", {}); }, {"cannot be written"});
  expect_error([&] { store.export_rows("", ExportFormat::kNpy); }, {"not the path of a folder"});
  expect_error([&] { read_blobs(""); }, {"manifest.json"});
  std::string const too_long(300, 'x');  // longer than the operating system allows
  expect_error([&] { read_blobs(too_long); }, {"manifest.json"});
  expect_error([&] { store.save(too_long, {}); }, {"cannot be written"});
  expect_error([&] { store.export_rows(too_long, ExportFormat::kNpy); }, {"cannot be created"});
}

// Non-finite values on one rank: all ranks throw, and no row has changed on any rank.
TEST(ExtremeOptions, AllRanksRejectAssignOfNonFiniteValues) {
  for (int const ranks : {1, 3}) {
    run_ranks(Group::threads(ranks), [](Group const& group) {
      Store store(group, {.threads = 1});
      store.add_table({.name = "floats", .dim = 3});
      store.add_table({.name = "halves", .dim = 3, .value_type = DataType::kHalf});
      store.add_table({.name = "bfloats", .dim = 3, .value_type = DataType::kBFloat16});
      auto stream = store.make_stream();
      auto const before = store.table_hash();
      std::uint64_t const r = number(group.rank());
      std::vector<Key> const keys{Key{10 * r + 1}, Key{10 * r + 2}};
      auto const assign = [&](std::uint32_t table, float value) {
        Matrix<float> values(Device::host(), 2, 3);
        for (std::size_t i = 0; i < 2; ++i) std::fill_n(values.row(i).data(), 3, 1.0F);
        if (r + 1 == static_cast<std::uint64_t>(group.size())) values.row(1)[2] = value;
        store.assign(stream, TableId{table}, View<Key const>(keys), values);
      };
      std::string const key = std::to_string(10 * (group.size() - 1) + 2);
      for (std::uint32_t table = 0; table < 3; ++table) {
        for (float const value : {kNanF, kInfinityF, -kInfinityF}) {
          expect_error([&] { assign(table, value); }, {"not finite", ("key " + key).c_str(), "give finite values"});
        }
      }
      expect_error([&] { assign(1, 65520); }, {"not finite or has a magnitude above"});
      expect_error([&] { assign(2, 3.4e38F); }, {"not finite or has a magnitude above"});
      EXPECT_EQ(store.table_hash(), before);
      assign(0, std::numeric_limits<float>::max());
      assign(1, 65519);
      assign(2, 3.39e38F);
      for (std::uint32_t table = 0; table < 3; ++table) {
        EXPECT_EQ(store.size(TableId{table}), 2U * static_cast<std::size_t>(group.size()));
      }
      // Other errors are thrown on all ranks too.
      expect_error([&] { assign(7, 1); }, {"table 7 does not exist"});
    });
  }
}

TEST(ExtremeOptions, BlobNamesMustBeUnique) {
  TemporaryFolder const folder;
  run_ranks(Group::threads(2), [&](Group const& group) {
    Store store(group, {.threads = 1});
    store.add_table({.name = "t", .dim = 4});
    auto const save = [&](std::vector<Blob> const& blobs) {
      store.save(folder.path() / "saved", group.rank() == Rank{0} ? std::span(blobs) : std::span<Blob const>());
    };
    expect_error([&] { save({{"a", "1"}, {"", "2"}}); }, {"a blob that has no name"});
    expect_error([&] { save({{"a", "1"}, {"b", "2"}, {"a", "3"}}); }, {"two blobs named 'a'"});
    expect_error([&] { save({{"\xFF", "1"}}); }, {"not UTF-8"});
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "saved"));
    store.wait_barrier();
    save({{"a", "1"}, {"b", ""}});
    EXPECT_EQ(read_blobs(folder.path() / "saved").size(), 2U);
  });
}

}  // namespace
}  // namespace gpups::test::extreme_options_test
