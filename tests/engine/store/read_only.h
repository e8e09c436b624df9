// Workspaces that may only be read, and somebody without rights to read them.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

namespace stacklab {

// A process of its own, because it gives up its rights.
inline void in_child_as_nobody(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) {
    if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(3);
    bool good = false;
    try {
      good = check();
    } catch (...) {
    }
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

inline void make_read_only(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::filesystem::permissions(entry.path(),
                                 entry.is_directory() ? std::filesystem::perms(0555) : std::filesystem::perms(0444));
  }
  std::filesystem::permissions(folder, std::filesystem::perms(0555));
}

inline void make_writable(const std::filesystem::path& folder) {
  std::filesystem::permissions(folder, std::filesystem::perms(0755));
  std::filesystem::permissions(folder / "runs", std::filesystem::perms(0755));
}

}  // namespace stacklab
