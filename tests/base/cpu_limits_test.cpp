#include "base/cpu_limits.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_folder.h"

namespace fusewise {
namespace {

class CpuLimitsTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = folder_.path() / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  CpuLimits read(const std::vector<int>& cpus) const { return read_cpu_limits(cpus, folder_.path()); }

  TemporaryFolder folder_;
};

TEST_F(CpuLimitsTest, HardwareThreadsOfACoreCountOnce) {
  for (int cpu = 0; cpu < 4; ++cpu) {
    write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
          cpu % 2 == 0 ? "0,2\n" : "1,3\n");
  }
  EXPECT_EQ(read({0, 1, 2, 3}).logical_cpus, 4);
  EXPECT_EQ(read({0, 1, 2, 3}).physical_cores, 2);
  EXPECT_EQ(read({1, 3}).physical_cores, 1);
  EXPECT_EQ(thread_count_for(read({0, 1, 2, 3})), 2);
}

TEST_F(CpuLimitsTest, WithoutFilesNothingLimits) {
  const CpuLimits limits = read({0, 5, 6});
  EXPECT_EQ(limits.physical_cores, 3);
  EXPECT_FALSE(limits.quota.has_value());
  EXPECT_EQ(thread_count_for(limits), 3);
  EXPECT_EQ(thread_count_for(read({})), 1);
}

TEST_F(CpuLimitsTest, TightestQuotaOfTheGroupsAroundCounts) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
  write("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  EXPECT_DOUBLE_EQ(read({0, 1, 2, 3}).quota.value(), 2.5);
  EXPECT_EQ(thread_count_for(read({0, 1, 2, 3})), 2);
  write("sys/fs/cgroup/outer/inner/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(read({0, 1}).quota.value(), 0.5);
  EXPECT_EQ(thread_count_for(read({0, 1})), 1);
}

TEST_F(CpuLimitsTest, ReadsTheOlderFormatOfQuotas) {
  write("proc/self/cgroup", "4:memory:/x\n3:cpu,cpuacct:/job\n1:name=systemd:/\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(read({0, 1, 2, 3}).quota.value(), 3.0);
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(read({0, 1, 2, 3}).quota.has_value());
}

TEST_F(CpuLimitsTest, DamagedFilesCountAsNoLimit) {
  write("proc/self/cgroup", "nonsense\n0::\n7:cpu\n");
  write("sys/fs/cgroup/cpu.max", "many few\n");
  EXPECT_FALSE(read({0}).quota.has_value());
}

TEST(CpuLimits, ThisProcessHasAThread) {
  EXPECT_FALSE(allowed_cpus().empty());
  EXPECT_GE(default_thread_count(), 1);
  EXPECT_LE(default_thread_count(), static_cast<int>(allowed_cpus().size()));
}

}  // namespace
}  // namespace fusewise
