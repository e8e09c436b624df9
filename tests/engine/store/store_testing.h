// What tests of the store share: a run to write, and a child process to do it elsewhere.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/store/store.h"
#include "engine/store/store_reader.h"
#include "tests/temporary_folder.h"

extern char** environ;

namespace stacklab {

inline RunId test_id(int n) {
  std::string id = std::to_string(n);
  return std::string(12 - id.size(), 'a') + id;
}

inline ClaimRequest test_request(int n, bool resume = false) {
  ClaimRequest request;
  request.id = test_id(n);
  request.name = "run " + std::to_string(n);
  request.folder = "run-" + request.id;
  request.config_json = "{\"name\": \"run\"}";
  request.corpus_sha256 = std::string(64, 'c');
  request.commit = "abcdef012345";
  request.total_steps = 100;
  request.resume = resume;
  return request;
}

inline MetricEvent test_metrics(std::int64_t step, double loss) {
  MetricEvent event;
  event.step = step;
  event.tokens = step * 10;
  event.process_seconds = static_cast<double>(step) * 0.5;
  event.unix_time = 1.7e9 + static_cast<double>(step);
  event.values = {{metric::loss, loss}, {metric::grad_norm, loss * 2}};
  return event;
}

// Unwraps a Result, or fails the test with its message.
template <class T>
T must(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().message();
    throw std::runtime_error(result.error().message());
  }
  return std::move(*result);
}
inline void must(const Status& status) {
  if (!status) {
    ADD_FAILURE() << status.error().message();
    throw std::runtime_error(status.error().message());
  }
}

// A test's helper program (store_child, if not named) with arguments, its standard input and output in our hands.
class ChildProcess {
 public:
  explicit ChildProcess(std::vector<std::string> arguments, const std::string& program = "store_child") {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    arguments.insert(arguments.begin(), STACKLAB_BIN_DIR "/" + program);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const int error = posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
    if (error != 0) throw std::runtime_error("cannot start " + program);
  }
  ~ChildProcess() {
    close_input();
    if (from_ >= 0) close(from_);
    if (!reaped_) {
      kill(pid_, SIGKILL);
      wait();
    }
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // One line of its output, without the end; empty when it has ended.
  std::string line() {
    std::string text;
    char c = 0;
    while (read(from_, &c, 1) == 1 && c != '\n') text += c;
    return text;
  }
  void close_input() {
    if (to_ >= 0) close(to_);
    to_ = -1;
  }
  void send(int signal) { kill(pid_, signal); }
  // Its exit code, or 128 + signal.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    reaped_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  int to_ = -1, from_ = -1;
  bool reaped_ = false;
};

}  // namespace stacklab
