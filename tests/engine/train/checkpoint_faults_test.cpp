// Checkpoints on disks that are full, read-only or shared: what was there stays whole, and nothing is left behind.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "engine/base/atomic_file.h"
#include "engine/base/environment.h"
#include "engine/train/checkpoint.h"
#include "tests/engine/train/train_harness.h"
#include "tests/in_child.h"

namespace stacklab::test {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<TrainStep> make_step(const RunConfig& c) {
  auto step = TrainStep::create(c, *loader_shape(c), *find_backend("reference"), nullptr);
  (*step)->initialise(5);
  return std::move(*step);
}

Status save(const fs::path& run_dir, const RunConfig& c, TrainStep& step, std::int64_t n) {
  TrainerState state;
  state.step = n;
  return save_checkpoint(run_dir, c, some_provenance(c), step, state);
}

std::int64_t things_in(const fs::path& folder) { return std::distance(fs::directory_iterator(folder), {}); }

// After a save that failed: the older checkpoint is the latest and whole, and there is nothing else. The exit code
// names what is not so; 0: all is well.
int judge(const Status& saved, const fs::path& run_dir, std::string_view cause, std::int64_t things) {
  if (saved) return 1;
  std::cerr << saved.error().message() << "\n";
  if (saved.error().what.find("ckpt_step2 could not be written") == std::string::npos) return 2;
  if (saved.error().what.find(cause) == std::string::npos) return 3;
  if (saved.error().remedy.empty()) return 4;
  if (things_in(run_dir) != things) return 5;
  const auto latest = latest_checkpoint(run_dir);
  return latest && latest->step == 1 ? 0 : 6;
}

// The disk is as full as it must be for each of the files, and for the parts of large ones, to be the one that fails.
TEST(CheckpointFaults, AFullDiskAtEveryFile) {
  RunConfig c = small_config();
  c.model.d_model = 32, c.model.intermediate = 64;
  const CheckpointSize size = checkpoint_size(c);
  const TemporaryFolder folder;
  const int code = in_child([&] {
    if (!mount_small(folder.path(), "2m")) return skip_code;
    const auto step = make_step(c);
    const fs::path run = folder / "run";
    if (!save(run, c, *step, 1)) return 20;
    int failures = 0;
    // Pages of 4 KB: from no room at all to room for everything.
    for (std::int64_t room = 0; room < size.total() + (32 << 10); room += 4096) {
      fs::remove(folder / "filler");
      const auto filler = disk_free(folder.path()) - room;
      if (filler > 0 && !write_file_atomically(folder / "filler", std::string(static_cast<std::size_t>(filler), 'x')))
        return 21;
      const Status saved = save(run, c, *step, 2);
      fs::remove(folder / "filler");
      if (saved) {
        if (latest_checkpoint(run)->step != 2) return 22;
        fs::remove_all(run / "ckpt_step2");
        continue;
      }
      ++failures;
      if (const int wrong = judge(saved, run, "No space left", 1); wrong != 0) return wrong;
      // Large files are tried at some places only.
      if (room > (16 << 10) && room < size.optimiser - (16 << 10)) room += 20 << 10;
    }
    // With room again it goes on.
    return failures > 5 && save(run, c, *step, 2) && latest_checkpoint(run)->step == 2 ? 0 : 23;
  });
  if (code == skip_code) GTEST_SKIP() << "a small file system cannot be mounted here";
  EXPECT_EQ(code, 0);
}

TEST(CheckpointFaults, AFileSizeLimitIsAnErrorNotAnEnd) {
  const RunConfig c = small_config();
  const CheckpointSize size = checkpoint_size(c);
  for (const std::int64_t limit : {std::int64_t{0}, std::int64_t{1}, size.model - 1, size.model, size.optimiser - 1}) {
    const TemporaryFolder folder;
    const int code = in_child([&] {
      ignore_file_size_signal();
      const auto step = make_step(c);
      if (!save(folder.path(), c, *step, 1)) return 20;
      rlimit old{};
      getrlimit(RLIMIT_FSIZE, &old);
      rlimit now = old;
      now.rlim_cur = static_cast<rlim_t>(limit);
      setrlimit(RLIMIT_FSIZE, &now);
      const Status saved = save(folder.path(), c, *step, 2);
      setrlimit(RLIMIT_FSIZE, &old);
      return judge(saved, folder.path(), "File too large", 1);
    });
    EXPECT_EQ(code, 0) << limit;
  }
}

TEST(CheckpointFaults, AReadOnlyFolder) {
  const RunConfig c = small_config();
  const TemporaryFolder folder;
  const int code = in_child([&] {
    if (!mount_small(folder.path(), "8m")) return skip_code;
    const auto step = make_step(c);
    if (!save(folder.path(), c, *step, 1)) return 20;
    if (mount(nullptr, folder.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) return skip_code;
    const Status saved = save(folder.path(), c, *step, 2);
    if (saved) return 1;
    std::cerr << saved.error().message() << "\n";
    if (saved.error().what.find("Read-only file system") == std::string::npos || saved.error().remedy.empty()) return 2;
    return latest_checkpoint(folder.path())->step == 1 && prune_checkpoints(folder.path(), 0).empty() ? 0 : 3;
  });
  if (code == skip_code) GTEST_SKIP() << "a small file system cannot be mounted here";
  EXPECT_EQ(code, 0);
}

// Each of two processes has all its saves; what stands at the end is whole.
TEST(CheckpointFaults, TwoWritersOfOneRun) {
  const RunConfig c = small_config();
  const TemporaryFolder folder;
  const auto step = make_step(c);
  const auto writer = [&] {
    for (int n = 0; n < 40; ++n)
      if (const Status saved = save(folder.path(), c, *step, 1 + n % 2); !saved) {
        std::cerr << saved.error().message() << "\n";
        return 1;
      }
    return 0;
  };
  const pid_t other = fork();
  if (other == 0) _exit(writer());
  EXPECT_EQ(writer(), 0);
  int status = 0;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(things_in(folder.path()), 2);
  for (const CheckpointFolder& f : list_checkpoints(folder.path())) EXPECT_TRUE(verify_checkpoint(f)) << f.path;
}

// Killed anywhere in a save or a prune: a folder with a checkpoint's name is whole, and the rest is swept.
TEST(CheckpointFaults, KilledAtAnyInstant) {
  const RunConfig c = small_config();
  const TemporaryFolder folder;
  const auto step = make_step(c);
  ASSERT_TRUE(save(folder.path(), c, *step, 1));
  for (int round = 0; round < 200; ++round) {
    int started[2];
    ASSERT_EQ(pipe(started), 0);
    const pid_t child = fork();
    if (child == 0) {
      for (std::int64_t n = 2;; ++n) {
        if (n == 2) static_cast<void>(write(started[1], "x", 1));
        static_cast<void>(save(folder.path(), c, *step, 1 + n % 4));
        prune_checkpoints(folder.path(), 2);
      }
    }
    char byte = 0;
    ASSERT_EQ(read(started[0], &byte, 1), 1);
    close(started[0]);
    close(started[1]);
    // A little later each time, by work and not by the clock.
    for (int i = 0; i < round * 3; ++i) list_checkpoints(folder.path());
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (const CheckpointFolder& f : list_checkpoints(folder.path())) {
      const auto verified = verify_checkpoint(f);
      EXPECT_TRUE(verified) << verified.error().message();
    }
    ASSERT_TRUE(latest_checkpoint(folder.path()));
    remove_stale_temporaries(folder.path());
    for (const auto& entry : fs::directory_iterator(folder.path()))
      EXPECT_TRUE(entry.path().filename().string().starts_with("ckpt_step")) << entry.path();
  }
}

TEST(CheckpointFaults, WhatDeadProcessesLeftIsSweptWhenARunGoesOn) {
  const TemporaryFolder folder;
  put_file(folder / "run/.ckpt_step9.00000000-1-1-0.tmp~/model.safetensors", "half");
  fs::last_write_time(folder / "run/.ckpt_step9.00000000-1-1-0.tmp~",
                      fs::file_time_type::clock::now() - std::chrono::hours(48));
  put_file(folder / "run/notes.tmp", "mine");
  const Dataset data = small_data(folder.path());
  RecordingSink sink;
  TrainRequest request{small_config(), folder / "run", 3, true, 0};
  ASSERT_TRUE(train(request, data, sink, {}));
  EXPECT_FALSE(fs::exists(folder / "run/.ckpt_step9.00000000-1-1-0.tmp~"));
  EXPECT_TRUE(fs::exists(folder / "run/notes.tmp"));
}

// Training goes on without a checkpoint that cannot be written, says so, and the end of the run fails by name.
TEST(CheckpointFaults, ARunReportsAndGoesOn) {
  const TemporaryFolder folder;
  const Dataset data = small_data(folder.path());
  const int code = in_child([&] {
    ignore_file_size_signal();
    fs::create_directories(folder / "run");
    RecordingSink sink;
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto result = train({small_config(), folder / "run", 20, false, 0}, data, sink, {});
    if (result) return 1;
    if (result.error().message().find("ckpt_step20 could not be written") == std::string::npos) return 2;
    if (!sink.said("No checkpoint: the checkpoint ckpt_step7 could not be written")) return 3;
    return sink.series["loss"].size() == 20 ? 0 : 4;
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace stacklab::test
