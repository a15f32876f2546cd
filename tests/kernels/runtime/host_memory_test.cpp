// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/host_memory.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/temporary_folder.hpp"

namespace gpups::kernels::host_memory_test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMega = 1 << 20;

class HostMemoryFiles : public testing::Test {
 protected:
  void SetUp() override {
    write("proc/meminfo", "MemTotal:       8192 kB\nMemFree:         100 kB\nMemAvailable:   4096 kB\n");
  }
  void write(std::string const& file, std::string const& text) const { folder_.write(file, text); }
  fs::path root() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(HostMemoryFiles, UsesMachineMemoryWithoutCgroups) {
  auto const memory = host_memory(root());
  EXPECT_EQ(memory.total, 8 * kMega);
  EXPECT_EQ(memory.available, 4 * kMega);
}

TEST_F(HostMemoryFiles, UsesTightestEnclosingCgroup) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/step/memory.current", std::to_string(kMega));
  write("sys/fs/cgroup/job/memory.max", std::to_string(6 * kMega));
  write("sys/fs/cgroup/job/memory.current", std::to_string(5 * kMega));
  write("sys/fs/cgroup/job/memory.stat",
        "anon 100\ninactive_file " + std::to_string(kMega) + "\nactive_file " + std::to_string(kMega) + "\n");
  auto const memory = host_memory(root());
  EXPECT_EQ(memory.total, 6 * kMega);
  EXPECT_EQ(memory.available, 3 * kMega);  // cached pages of files can be freed
}

TEST_F(HostMemoryFiles, ReadsCgroupsOfVersion1) {
  write("proc/self/cgroup", "5:cpu:/a\n4:memory:/job\n0::/\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(2 * kMega));
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(3 * kMega));
  EXPECT_EQ(host_memory(root()).available, 0U);
}

TEST_F(HostMemoryFiles, IsUnlimitedWithoutSystemFiles) {
  auto const memory = host_memory(root() / "nowhere");
  EXPECT_EQ(memory.total, UINT64_MAX);
  EXPECT_EQ(memory.available, UINT64_MAX);
}

TEST(HostMemory, ShortageReservesAnEighthOfTheMachine) {
  HostMemory const memory{.total = 8 * kMega, .available = 3 * kMega};
  EXPECT_EQ(memory_shortage(memory, kMega), 0U);
  EXPECT_EQ(memory_shortage(memory, 2 * kMega), 0U);
  EXPECT_EQ(memory_shortage(memory, 2 * kMega + 5), 5U);
  EXPECT_EQ(memory_shortage({}, std::uint64_t{1} << 60), 0U);
}

TEST(HostMemory, ThisMachineHasAvailableMemory) {
  auto const memory = host_memory();
  EXPECT_GT(memory.available, kMega);
  EXPECT_LE(memory.available, memory.total);
}

}  // namespace
}  // namespace gpups::kernels::host_memory_test
