#include "engine/base/process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

ProcessOptions shell(std::string script) {
  ProcessOptions options;
  options.arguments = {"/bin/sh", "-c", std::move(script)};
  return options;
}

TEST(Process, OutputErrorsAndExitCode) {
  const Result<ProcessResult> result = run_process(shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(result->output, "out\n");
  EXPECT_EQ(result->errors, "err\n");
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_FALSE(result->truncated);
  EXPECT_EQ(run_process(shell("kill -9 $$"))->exit_code, 128 + 9);
}

TEST(Process, ArgumentsAreNotParsed) {
  ProcessOptions options;
  options.arguments = {"printf", "%s|", "a b", "$HOME", "*", ""};
  EXPECT_EQ(run_process(options)->output, "a b|$HOME|*||");
}

TEST(Process, FolderEnvironmentAndEmptyInput) {
  const TemporaryFolder folder;
  ProcessOptions options = shell("pwd; echo $STACKLAB_TEST; cat");
  options.folder = std::filesystem::canonical(folder.path());
  options.environment = {{"STACKLAB_TEST", "value = x"}};
  EXPECT_EQ(run_process(options)->output, options.folder.string() + "\nvalue = x\n");
}

TEST(Process, LargeOutputOnBothStreamsIsReadAndCut) {
  ProcessOptions options = shell("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2");
  options.output_limit = 1'000'000;
  const Result<ProcessResult> result = run_process(options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output.size(), 1'000'000u);
  EXPECT_EQ(result->errors.size(), 1'000'000u);
  EXPECT_TRUE(result->truncated);
  options.output_limit = 3'000'000;
  EXPECT_FALSE(run_process(options)->truncated);
}

TEST(Process, MissingProgramAndFolder) {
  ProcessOptions options;
  options.arguments = {"stacklab-no-such-program"};
  Result<ProcessResult> result = run_process(options);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("stacklab-no-such-program"), std::string::npos);
  options = shell("true");
  options.folder = "/no/such/folder";
  result = run_process(options);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("/no/such/folder"), std::string::npos);
  EXPECT_FALSE(run_process({}));
}

TEST(Process, TimeoutEndsTheWholeGroup) {
  const TemporaryFolder folder;
  // The grandchild would outlive its parent; it holds the output open.
  ProcessOptions options = shell("sleep 1000 & echo $! > pid; wait");
  options.folder = folder.path();
  options.timeout_seconds = 0.3;
  const Result<ProcessResult> result = run_process(options);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("0.3 s"), std::string::npos);
  const std::string pid = file_text(folder / "pid");
  ASSERT_FALSE(pid.empty());
  // Killed already, but it may still be on its way out; a descriptor of a process becomes readable when it has ended.
  const int ended = static_cast<int>(syscall(SYS_pidfd_open, std::stoi(pid), 0));
  if (ended < 0) {
    EXPECT_EQ(errno, ESRCH);
    return;
  }
  pollfd waiting = {ended, POLLIN, 0};
  EXPECT_EQ(poll(&waiting, 1, 60'000), 1) << "process " << pid << " lives";
  close(ended);
}

TEST(Process, StopFromAnotherThread) {
  const TemporaryFolder folder;
  const std::filesystem::path started = folder / "started";
  ASSERT_EQ(mkfifo(started.c_str(), 0600), 0);
  std::stop_source source;
  // Opening the pipe waits for the child: the stop arrives while it runs.
  std::thread stopper([&] {
    file_text(started);
    source.request_stop();
  });
  ProcessOptions options = shell("echo x > started; exec sleep 1000");
  options.folder = folder.path();
  const Result<ProcessResult> result = run_process(options, source.get_token());
  stopper.join();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, Error::Kind::stopped);
  EXPECT_FALSE(run_process(options, source.get_token()));
}

TEST(Process, IgnoredSignalsAreNotInherited) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  // With SIGPIPE ignored, yes would complain about its closed output instead of ending by the signal.
  const Result<ProcessResult> result = run_process(shell("yes | head -n 1"));
  std::signal(SIGPIPE, before);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "y\n");
  EXPECT_EQ(result->errors, "");
}

}  // namespace
}  // namespace stacklab
