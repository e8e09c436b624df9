#include "engine/base/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

bool mentions(const Error& error, std::string_view text) { return error.message().find(text) != std::string::npos; }

TEST(AtomicFile, ReplacesWholeFilesAndLeavesNothingElse) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "a.json", "first"));
  EXPECT_EQ(file_text(folder / "a.json"), "first");
  {
    AtomicFile file = AtomicFile::create(folder / "a.json").value();
    ASSERT_TRUE(file.write("sec"));
    ASSERT_TRUE(file.write("ond"));
    EXPECT_EQ(file_text(folder / "a.json"), "first") << "not before commit";
    ASSERT_TRUE(file.commit());
  }
  EXPECT_EQ(file_text(folder / "a.json"), "second");
  { ASSERT_TRUE(AtomicFile::create(folder / "a.json")->write("given up")); }
  EXPECT_EQ(file_text(folder / "a.json"), "second");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(AtomicFile, NamesWithoutAFolderAndLongNames) {
  const TemporaryFolder folder;
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_TRUE(write_file_atomically("plain", "x"));
  std::filesystem::current_path(here);
  EXPECT_EQ(file_text(folder / "plain"), "x");
  EXPECT_TRUE(write_file_atomically(folder / std::string(255, 'n'), "x"));
  const Status too_long = write_file_atomically(folder / std::string(256, 'n'), "x");
  ASSERT_FALSE(too_long);
  EXPECT_EQ(files_in(folder.path()), 2u);
}

TEST(AtomicFile, FollowsLinksAndRefusesWhatIsNotAFile) {
  const TemporaryFolder folder;
  put_file(folder / "real/file", "old");
  std::filesystem::create_symlink("real/file", folder / "link");
  ASSERT_TRUE(write_file_atomically(folder / "link", "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(file_text(folder / "real/file"), "new");

  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  for (const auto& target :
       {folder / "fifo", folder / "real", std::filesystem::path("/dev/null"), folder.path() / ""}) {
    const Status status = write_file_atomically(target, "x");
    ASSERT_FALSE(status) << target;
    EXPECT_TRUE(mentions(status.error(), target.string()));
  }
  EXPECT_TRUE(std::filesystem::is_fifo(folder / "fifo"));
}

TEST(AtomicFile, ReadOnlyOrMissingFolder) {
  const TemporaryFolder folder;
  Status status = write_file_atomically(folder / "missing/file", "x");
  ASSERT_FALSE(status);
  EXPECT_TRUE(mentions(status.error(), "missing/file"));
  EXPECT_FALSE(status.error().remedy.empty());
  if (geteuid() != 0) {
    std::filesystem::permissions(folder.path(),
                                 std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
    status = write_file_atomically(folder / "file", "x");
    std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
    ASSERT_FALSE(status);
    EXPECT_TRUE(mentions(status.error(), "may write"));
  }
  // Root writes everywhere but here.
  status = write_file_atomically("/proc/stacklab", "x");
  ASSERT_FALSE(status);
  EXPECT_TRUE(mentions(status.error(), "/proc/stacklab"));
}

// Runs check in a child whose files may have at most 64 KiB.
void with_small_files(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) {
    ignore_file_size_signal();
    const rlimit limit{65536, 65536};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(check() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(AtomicFile, FileSizeLimitIsAnErrorAndTheOldFileStays) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "file", "old"));
  with_small_files([&] {
    const Status status = write_file_atomically(folder / "file", std::string(100'000, 'x'));
    return !status && mentions(status.error(), "ulimit -f") && mentions(status.error(), "file");
  });
  EXPECT_EQ(file_text(folder / "file"), "old");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

// Runs check in a child that sees a disk of one mebibyte at folder. False: this system lets nobody make one.
bool with_small_disk(const std::filesystem::path& folder, const std::function<bool()>& check) {
  constexpr int not_allowed = 77;
  const pid_t child = fork();
  if (child == 0) {
    const bool mounted = (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
                         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         mount("none", folder.c_str(), "tmpfs", 0, "size=1m") == 0;
    _exit(!mounted ? not_allowed : check() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == not_allowed) return false;
  EXPECT_EQ(status, 0);
  return true;
}

TEST(AtomicFile, FullDisk) {
  const TemporaryFolder folder;
  const bool tried = with_small_disk(folder.path(), [&] {
    const std::string large(2 << 20, 'x');
    bool ok = write_file_atomically(folder / "file", "old").has_value();
    const Status full = write_file_atomically(folder / "file", large);
    ok &= !full && mentions(full.error(), "file") && mentions(full.error(), "free some space");
    ok &= file_text(folder / "file") == "old" && files_in(folder.path()) == 1;
    {
      const AtomicDirectory directory = AtomicDirectory::create(folder / "ckpt").value();
      ok &= !write_file_atomically(directory.path() / "model", large);
    }
    // What could not be finished takes no room.
    ok &= files_in(folder.path()) == 1;
    return ok && write_file_atomically(folder / "file", large.substr(0, 900'000)).has_value();
  });
  if (!tried) GTEST_SKIP() << "this system lets nobody mount a small disk";
}

TEST(AtomicFile, KilledWritersLeaveTheOldOrTheNewFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file_atomically(folder / "file", std::string(100'000, 'a')));
  for (int round = 0; round < 40; ++round) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      [[maybe_unused]] const ssize_t n = write(ready[1], "x", 1);
      for (char c = 'b';; c = c == 'z' ? 'a' : static_cast<char>(c + 1))
        static_cast<void>(write_file_atomically(folder / "file", std::string(100'000, c)));
    }
    char byte;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    // Each round lets it run a little longer.
    std::this_thread::sleep_for(std::chrono::microseconds(50 * round));
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    const std::string text = file_text(folder / "file");
    ASSERT_EQ(text, std::string(100'000, text.empty() ? '?' : text[0]));
  }
  remove_stale_temporaries(folder.path());
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(AtomicFile, ManyWritersOfOneFileLeaveOneWholeFile) {
  const TemporaryFolder folder;
  std::vector<std::thread> writers;
  for (char c = 'a'; c < 'e'; ++c)
    writers.emplace_back([&folder, c] {
      for (int i = 0; i < 10; ++i) EXPECT_TRUE(write_file_atomically(folder / "file", std::string(50'000, c)));
    });
  for (std::thread& writer : writers) writer.join();
  const std::string text = file_text(folder / "file");
  EXPECT_EQ(text, std::string(50'000, text[0]));
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(AtomicDirectory, AppearsWholeAndCanReplace) {
  const TemporaryFolder folder;
  const std::filesystem::path target = folder / "runs/a/ckpt";
  {
    AtomicDirectory directory = AtomicDirectory::create(target).value();
    put_file(directory.path() / "sub/file", "1");
    EXPECT_FALSE(std::filesystem::exists(target));
    ASSERT_TRUE(directory.commit());
  }
  EXPECT_EQ(file_text(target / "sub/file"), "1");
  {
    AtomicDirectory directory = AtomicDirectory::create(target).value();
    put_file(directory.path() / "other", "2");
    const Status status = directory.commit();
    ASSERT_FALSE(status);
    EXPECT_TRUE(mentions(status.error(), target.string()));
    ASSERT_TRUE(directory.commit(true));
  }
  EXPECT_EQ(file_text(target / "other"), "2");
  EXPECT_FALSE(std::filesystem::exists(target / "sub"));
  { EXPECT_TRUE(AtomicDirectory::create(target)); }
  EXPECT_EQ(files_in(target.parent_path()), 1u);
  EXPECT_FALSE(AtomicDirectory::create("/proc/stacklab/x"));
}

TEST(AtomicDirectory, StaleTemporariesOfDeadProcessesGo) {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    auto* left = new Result<AtomicDirectory>(AtomicDirectory::create(folder / "ckpt"));
    auto* file = new Result<AtomicFile>(AtomicFile::create(folder / "file"));
    _exit(*left && *file ? 0 : 1);  // as if killed: nothing is cleaned up
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  put_file(folder / ".hidden", "stays");
  put_file(folder / ".odd.tmp~", "stays");
  const AtomicDirectory living = AtomicDirectory::create(folder / "ckpt").value();
  ASSERT_EQ(files_in(folder.path()), 5u);
  remove_stale_temporaries(folder.path());
  EXPECT_EQ(files_in(folder.path()), 3u);
  EXPECT_TRUE(std::filesystem::exists(living.path()));
  remove_stale_temporaries(folder / "not there");
}

TEST(ReadFile, WholeFilesWithinALimit) {
  const TemporaryFolder folder;
  put_file(folder / "file", std::string("a\0b", 3));
  put_file(folder / "empty", "");
  EXPECT_EQ(read_file(folder / "file").value(), std::string("a\0b", 3));
  EXPECT_EQ(read_file(folder / "empty").value(), "");
  EXPECT_TRUE(read_file(folder / "file", 3));
  EXPECT_FALSE(read_file(folder / "file", 2));
  EXPECT_GT(read_file("/proc/self/status")->size(), 100u);
  for (const auto& bad : {folder.path(), folder / "missing", std::filesystem::path("/dev/zero")}) {
    const Result<std::string> text = read_file(bad);
    ASSERT_FALSE(text) << bad;
    EXPECT_TRUE(mentions(text.error(), bad.string()));
  }
}

TEST(ReadFile, SaysWhatIsNoFile) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("gone", folder / "link");
  const std::pair<std::string, std::string> all[] = {{(folder / "pipe").string(), "a pipe"},
                                                     {(folder / "link").string(), "a link to gone"},
                                                     {"/dev/null", "a device"}};
  for (const auto& [path, why] : all) {
    const Result<std::string> text = read_file(path);
    ASSERT_FALSE(text) << path;
    EXPECT_TRUE(mentions(text.error(), path));
    EXPECT_NE(text.error().what.find(why), std::string::npos) << text.error().message();
    EXPECT_FALSE(text.error().remedy.empty());
  }
}

}  // namespace
}  // namespace stacklab
