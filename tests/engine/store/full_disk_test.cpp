// A disk that fills up while a run reports, and has room again later. In child processes, for the limits hold for a
// whole process.
#include <sys/resource.h>

#include <fstream>
#include <iostream>
#include <thread>

#include "tests/engine/store/store_testing.h"
#include "tests/in_child.h"

namespace stacklab {
namespace {

// Reports far more than fits, then make_room, then everything must be there. Returns an exit code that names the line
// that failed.
int fill_and_recover(const std::filesystem::path& workspace, const std::function<bool()>& make_room) {
  constexpr int steps = 20000;
  StoreOptions options;
  options.patience = std::chrono::milliseconds(0);
  auto opened = Store::open(workspace, options);
  if (!opened) {
    std::cerr << opened.error().message() << "\n";
    return 1;
  }
  auto& store = *opened;
  auto claim = store->claim(test_request(1), {});
  if (!claim) return 2;
  const auto sink = store->sink(*claim);
  for (int step = 1; step <= steps; ++step) sink->metrics(test_metrics(step, step));
  const Status full = store->flush();
  if (store->health().available) return 3;
  if (full) return 4;  // neither data base nor spill file can hold so much here
  if (store->health().held_rows == 0) return 5;
  std::cerr << full.error().message() << "\n";
  // Readers go on reading what there is.
  auto reader = open_store_reader(workspace);
  if (!reader || !(*reader)->run(test_id(1))) return 6;
  if (!make_room()) return 7;
  if (!store->end(*claim, {.state = RunState::finished, .cause = {}})) return 8;
  while (!store->health().available) std::this_thread::yield();
  if (!store->flush() || store->health().lost_rows != 0) return 9;
  const auto points = (*reader)->series(test_id(1), "loss", 0, 1 << 30);
  if (!points || points->size() != steps) return 10;
  return (*reader)->run(test_id(1))->state == RunState::finished ? 0 : 11;
}

TEST(FullDisk, RowsWaitInMemoryUntilThereIsRoom) {
  const TemporaryFolder folder;
  const int code = in_child([&] {
    if (!mount_small(folder.path(), "1m")) return skip_code;
    return fill_and_recover(folder.path(), [&] { return resize_small(folder.path(), "64m"); });
  });
  if (code == skip_code) GTEST_SKIP() << "a small file system cannot be mounted here";
  EXPECT_EQ(code, 0);
}

// Nothing fits any more, and nothing ever does while the process lives: what happened and how it ended is known all the
// same, and what is lost is said.
int end_on_a_full_disk(const std::filesystem::path& workspace) {
  StoreOptions options;
  options.patience = std::chrono::milliseconds(0);
  {
    auto store = must(Store::open(workspace, options));
    const auto claim = must(store->claim(test_request(1), {}));
    const auto sink = store->sink(claim);
    sink->metrics(test_metrics(1, 1));
    must(store->flush());
    std::string filler(8 << 20, 'x');
    std::ofstream(workspace / "filler", std::ios::binary) << filler;
    for (int step = 2; step <= 20000; ++step) sink->metrics(test_metrics(step, step));
    sink->event({RunEvent::Kind::warning, 20000, "told on a full disk"});
    if (store->flush()) return 1;
    if (store->end(claim, {.state = RunState::failed, .cause = "the disk is full"})) return 2;
  }
  std::filesystem::remove(workspace / "filler");
  auto reader = must(open_store_reader(workspace));
  const RunSummary run = must(reader->run(test_id(1)));
  std::cerr << to_string(run.state) << ": " << run.cause << "\n";
  if (run.state != RunState::failed || run.cause != "the disk is full") return 3;
  bool told = false, no_room = false, lost = false;
  for (const RunEventRow& row : must(reader->events(test_id(1), 0, 1000))) {
    std::cerr << row.event.text << "\n";
    told |= row.event.text == "told on a full disk";
    no_room |= row.event.text.starts_with("Neither the store nor a file beside it");
    lost |= row.event.text.find(" 20000 are lost: ") != std::string::npos && row.resolved == 0 &&
            row.event.severity == RunEvent::Severity::critical;
  }
  return !told ? 4 : !no_room ? 5 : !lost ? 6 : 0;
}

TEST(FullDisk, WhatHappenedAndHowItEndedHasRoomOfItsOwn) {
  const TemporaryFolder folder;
  const int code =
      in_child([&] { return mount_small(folder.path(), "1m") ? end_on_a_full_disk(folder.path()) : skip_code; });
  if (code == skip_code) GTEST_SKIP() << "a small file system cannot be mounted here";
  EXPECT_EQ(code, 0);
}

TEST(FullDisk, AFileSizeLimitIsAnErrorNotAnEnd) {
  const TemporaryFolder folder;
  const int code = in_child([&] {
    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = 400 << 10;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 20;
    return fill_and_recover(folder.path(), [&] {
      limit.rlim_cur = limit.rlim_max;
      return setrlimit(RLIMIT_FSIZE, &limit) == 0;
    });
  });
  EXPECT_EQ(code, 0);
}

TEST(FullDisk, AStoreThatCannotBeMadeSaysWhy) {
  const TemporaryFolder folder;
  const int code = in_child([&] {
    if (!mount_small(folder.path(), "16k")) return skip_code;
    put_file(folder / "filler", std::string(1 << 20, 'x'));
    const auto store = Store::open(folder.path());
    if (store) return 1;
    std::cerr << store.error().message() << "\n";
    const bool named = store.error().what.find("disk is full") != std::string::npos &&
                       store.error().what.find(folder.path().string()) != std::string::npos;
    return named && !store.error().remedy.empty() ? 0 : 2;
  });
  if (code == skip_code) GTEST_SKIP() << "a small file system cannot be mounted here";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace stacklab
