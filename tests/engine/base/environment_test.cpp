#include "engine/base/environment.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "engine/base/paths.h"
#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

TEST(Environment, FactsAreThere) {
  EXPECT_FALSE(cpu_model().empty());
  EXPECT_TRUE(cpu_isa() == "AVX-512" || cpu_isa() == "AVX2" || cpu_isa() == "baseline");
  const Memory memory = system_memory();
  EXPECT_GT(memory.total, 1 << 20);
  EXPECT_GT(memory.available, 0);
  EXPECT_LE(memory.available, memory.total);
  EXPECT_GT(resident_bytes(), 0);
  EXPECT_GE(peak_resident_bytes(), resident_bytes() / 2);
}

TEST(Environment, ThreadsFollowAffinity) {
  EXPECT_GE(usable_threads(), 1);
  std::thread([] {
    cpu_set_t all, one;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &all)) {
        CPU_SET(cpu, &one);
        break;
      }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_threads(), 1);
  }).join();
}

TEST(Environment, DiskFreeOfFoldersYetToBe) {
  const TemporaryFolder folder;
  EXPECT_GT(disk_free(folder.path()), 0);
  EXPECT_GT(disk_free(folder / "a/b/c"), 0);
  EXPECT_GT(disk_free("not/there"), 0);
}

TEST(Environment, ProcessesAreToldApart) {
  const ProcessIdentity self = current_process();
  EXPECT_EQ(self.pid, getpid());
  EXPECT_TRUE(process_alive(self));
  ProcessIdentity other = self;
  other.start_ticks += 1;  // the number was given to another process
  EXPECT_FALSE(process_alive(other));
  other = self;
  other.boot_id = "another boot";
  EXPECT_FALSE(process_alive(other));
  EXPECT_FALSE(process_alive({}));

  int hold[2];
  ASSERT_EQ(pipe(hold), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(hold[1]);
    char byte;
    [[maybe_unused]] const ssize_t n = read(hold[0], &byte, 1);
    _exit(0);
  }
  close(hold[0]);
  // The child's start is read from /proc, as another process would have recorded it.
  ProcessIdentity identity{child, 0, self.boot_id};
  const std::string stat = file_text("/proc/" + std::to_string(child) + "/stat");
  std::size_t at = stat.rfind(')');
  for (int field = 2; field < 22; ++field) at = stat.find(' ', at + 1);
  identity.start_ticks = std::stoull(stat.substr(at + 1));
  EXPECT_TRUE(process_alive(identity));
  close(hold[1]);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(process_alive(identity)) << "a zombie is not alive";
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(process_alive(identity));
}

TEST(Environment, BuildAndFingerprint) {
  EXPECT_FALSE(build_info().version.empty());
  EXPECT_FALSE(build_info().commit.empty());
  const auto libraries = base_library_versions();
  const std::string fingerprint = environment_fingerprint(libraries);
  EXPECT_EQ(fingerprint.size(), 16u);
  EXPECT_EQ(fingerprint, environment_fingerprint(libraries));
  auto upgraded = libraries;
  upgraded[0].second += ".1";
  EXPECT_NE(fingerprint, environment_fingerprint(upgraded));
}

TEST(Paths, ShareFolderOfABuild) {
  EXPECT_TRUE(executable_path().is_absolute());
  EXPECT_TRUE(std::filesystem::exists(share_folder() / "resources" / "cmake" / "StacklabBuild.cmake"))
      << share_folder();
}

}  // namespace
}  // namespace stacklab
