// Scenarios in a process of their own: limits, mounts and signals that hold for a whole process.
#pragma once

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>

namespace stacklab {

inline constexpr int skip_code = 77;

// The scenario's exit code; 128 and the signal where one ended it.
inline int in_child(const std::function<int()>& scenario) {
  const pid_t child = fork();
  if (child == 0) {
    int code = 99;
    try {
      code = scenario();
    } catch (const std::exception& e) {
      std::cerr << e.what() << "\n";
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// In a child: a file system of this size ("1m") at the folder, for this process alone. False where nobody may mount.
inline bool mount_small(const std::filesystem::path& folder, const char* size) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  return mount("tmpfs", folder.c_str(), "tmpfs", 0, (std::string("size=") + size).c_str()) == 0;
}
inline bool resize_small(const std::filesystem::path& folder, const char* size) {
  return mount("tmpfs", folder.c_str(), "tmpfs", MS_REMOUNT, (std::string("size=") + size).c_str()) == 0;
}

}  // namespace stacklab
