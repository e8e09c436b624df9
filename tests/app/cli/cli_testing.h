// Runs the program as its users do, and says what came of it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/process.h"
#include "engine/service/corpora.h"
#include "tests/temporary_folder.h"

extern char** environ;

namespace stacklab::cli {

using Json = nlohmann::json;

inline const std::string program = std::string(STACKLAB_BIN_DIR) + "/stacklab";
inline const std::string experiments = std::string(STACKLAB_SOURCE_DIR) + "/experiments/";

struct Answer {
  int code = -1;
  std::string out, err;

  Json json() const;  // stdout as one document
};

inline Answer run_words(std::vector<std::string> words,
                        std::vector<std::pair<std::string, std::string>> environment = {}) {
  ProcessOptions options;
  options.arguments = std::move(words);
  options.environment = std::move(environment);
  options.timeout_seconds = 100;
  const Result<ProcessResult> result = run_process(options);
  EXPECT_TRUE(result) << result.error().message();
  return result ? Answer{result->exit_code, result->output, result->errors} : Answer{};
}

inline Answer stacklab(std::vector<std::string> words) {
  words.insert(words.begin(), program);
  return run_words(std::move(words));
}

inline Answer shell(const std::string& script) { return run_words({"/bin/sh", "-c", script}); }

// A workspace with a small corpus "sample", and a config that trains on it in moments.
class Workspace {
 public:
  Workspace() {
    CorpusInfo info;
    info.name = "sample";
    info.title = "A sample";
    info.licence = "public domain";
    info.origin = "a test";
    DocumentSet documents;
    for (int i = 0; i < 40; ++i) {
      std::string text;
      for (int word = 0; word < 30; ++word) text += "word" + std::to_string((i * 7 + word * word) % 23) + " and ";
      documents.add(text);
    }
    const Status written = write_corpus(folder_ / "data/sample", info, documents);
    EXPECT_TRUE(written) << written.error().message();
    write_config(12);
  }

  void write_config(std::int64_t steps) const {
    put_file(config(), R"({"name": "small",
      "model": {"vocab_size": 256, "d_model": 16, "n_layers": 2, "n_heads": 2, "n_kv_heads": 1, "head_dim": 8, "intermediate": 24, "max_seq_len": 32},
      "optim": {"matrices": "adamw", "adam_lr": 0.01},
      "data": {"corpus": "sample", "validation_fraction": 0.2},
      "train": {"tokens": )" +
                           std::to_string(steps * 128) + R"(, "batch_tokens": 128, "seq_len": 32},
      "run": {"eval_every": 5, "eval_tokens": 256, "checkpoint_every": 4}})");
  }

  std::filesystem::path path() const { return folder_.path(); }
  std::filesystem::path operator/(std::string_view name) const { return folder_ / name; }
  std::string config() const { return (folder_ / "small.json").string(); }

  std::vector<std::string> words(std::vector<std::string> command) const {
    command.insert(command.end(), {"--workspace", path().string()});
    return command;
  }
  Answer operator()(std::vector<std::string> command) const { return stacklab(words(std::move(command))); }

 private:
  TemporaryFolder folder_;
};

// The program in the background, its output in files.
class Child {
 public:
  Child(std::vector<std::string> words, const std::filesystem::path& folder)
      : out_(folder / "child.out"), err_(folder / "child.err") {
    words.insert(words.begin(), program);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Until its messages hold the text; false when it ended before.
  bool says(std::string_view text) {
    for (;;) {
      if (file_text(err_).find(text) != std::string::npos) return true;
      siginfo_t info{};
      if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0)
        return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  void send(int signal) const { ::kill(pid_, signal); }
  // Exit code, or minus the signal.
  int wait() {
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }
  std::string out() const { return file_text(out_); }
  std::string err() const { return file_text(err_); }

 private:
  std::filesystem::path out_, err_;
  pid_t pid_ = -1;
};

}  // namespace stacklab::cli
