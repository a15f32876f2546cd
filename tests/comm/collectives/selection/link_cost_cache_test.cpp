// SPDX-License-Identifier: Apache-2.0
// Link costs are kept for later jobs, and damaged files in the cache folder are ignored.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/collectives/selection/link_cost_cache.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::comm::link_cost_cache_test {
namespace {

constexpr LinkCosts kModel{.round_s = 1.1e-5, .byte_s = 1e-9, .add_s = 3e-10, .entry_s = 7e-10, .code_s = 1e-9};

std::string read(std::filesystem::path const& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(std::filesystem::path const& file, std::string const& text) {
  std::ofstream(file, std::ios::binary) << text;
}

TEST(LinkCostCache, FindReturnsStoredCosts) {
  test::TemporaryFolder const folder;
  LinkCostCache const cache(folder.path() / "made" / "when_needed");
  EXPECT_EQ(cache.find("a b"), std::nullopt);
  cache.put("a b", kModel);
  EXPECT_EQ(cache.find("a b"), kModel);
  EXPECT_EQ(cache.find("b a"), std::nullopt);
  LinkCosts other = kModel;
  other.byte_s = 2;
  cache.put("a b", other);
  EXPECT_EQ(LinkCostCache(folder.path() / "made" / "when_needed").find("a b"), other);
}

TEST(LinkCostCache, RejectsDamagedFiles) {
  test::TemporaryFolder const folder;
  LinkCostCache const cache(folder.path());
  cache.put("a b", kModel);
  std::string const whole = read(cache.file_of("a b"));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      write(cache.file_of("a b"), damaged);
      EXPECT_EQ(cache.find("a b"), std::nullopt) << "byte " << i << ", bit " << bit;
    }
    write(cache.file_of("a b"), whole.substr(0, i));
    EXPECT_EQ(cache.find("a b"), std::nullopt) << "cut after " << i;
  }
  write(cache.file_of("a b"), whole + whole);
  EXPECT_EQ(cache.find("a b"), std::nullopt);
  write(cache.file_of("a b"), std::string(1 << 20, 'x'));
  EXPECT_EQ(cache.find("a b"), std::nullopt);
  cache.put("a b", kModel);
  EXPECT_EQ(cache.find("a b"), kModel);
}

// Costs of any age are used, so that two runs a year apart select the same algorithms.
TEST(LinkCostCache, CostsNeverExpire) {
  test::TemporaryFolder const folder;
  LinkCostCache const cache(folder.path());
  cache.put("a b", kModel);
  auto const file = cache.file_of("a b");
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 400));
  EXPECT_EQ(cache.find("a b"), kModel);
  std::filesystem::remove(file);
  EXPECT_EQ(cache.find("a b"), std::nullopt);
}

TEST(LinkCostCache, UnwritableFolderKeepsNothing) {
  LinkCostCache const nowhere{std::filesystem::path()};
  nowhere.put("a b", kModel);
  EXPECT_EQ(nowhere.find("a b"), std::nullopt);
  LinkCostCache const impossible("/proc/gpups");
  impossible.put("a b", kModel);
  EXPECT_EQ(impossible.find("a b"), std::nullopt);
}

TEST(LinkCostCache, ConcurrentWritersLeaveOneFile) {
  test::TemporaryFolder const folder;
  std::vector<std::thread> writers;
  for (int w = 1; w <= 4; ++w) {
    writers.emplace_back([&folder, w] {
      LinkCostCache const cache(folder.path());
      LinkCosts model = kModel;
      model.round_s = w;
      for (int i = 0; i < 200; ++i) {
        cache.put("a b", model);
        auto const found = cache.find("a b");
        ASSERT_TRUE(found.has_value());  // complete, whichever thread wrote it
        EXPECT_EQ(found->byte_s, kModel.byte_s);
      }
    });
  }
  for (auto& writer : writers) writer.join();
  std::size_t files = 0;
  for ([[maybe_unused]] auto const& file : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1U);
}

TEST(LinkCostCache, FolderFollowsEnvironment) {
  using Value = std::optional<std::string>;
  auto const folder_with = [](Value ours, Value xdg, Value home) {
    test::Environment const set({{"GPUPS_CACHE_DIR", ours}, {"XDG_CACHE_HOME", xdg}, {"HOME", home}});
    return user_cache_folder().string();
  };
  EXPECT_EQ(folder_with("/a", "/b", "/c"), "/a");
  EXPECT_EQ(folder_with("", "/b", "/c"), "");
  EXPECT_EQ(folder_with({}, "/b", "/c"), "/b/gpups");
  EXPECT_EQ(folder_with({}, "not/absolute", "/c"), "/c/.cache/gpups");
  EXPECT_EQ(folder_with({}, {}, {}), "");
}

}  // namespace
}  // namespace gpups::comm::link_cost_cache_test
