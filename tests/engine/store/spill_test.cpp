#include "engine/store/spill.h"

#include <sys/resource.h>

#include <thread>

#include "tests/engine/store/store_testing.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
using store::Record;
using store::to_json_line;

Record step_record(std::int64_t step) {
  return {{test_id(1), 1}, store::StepRecord{step, step, 1, 1, {{"loss", static_cast<double>(step)}}}};
}

std::vector<fs::path> spill_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("spill-")) files.push_back(entry.path());
  return files;
}

TEST(Spill, RecordsComeBackInOrder) {
  const TemporaryFolder folder;
  store::SpillFile file(folder.path());
  EXPECT_TRUE(file.empty());
  must(file.append({}));
  EXPECT_TRUE(spill_files(folder.path()).empty());
  const std::vector<Record> first = {step_record(1), step_record(2)}, second = {step_record(3)};
  must(file.append(first));
  must(file.append(second));
  std::vector<std::int64_t> steps;
  must(file.read([&](const Record& r) { steps.push_back(std::get<store::StepRecord>(r.body).step); }));
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3}));
  file.discard();
  EXPECT_TRUE(file.empty());
  EXPECT_TRUE(spill_files(folder.path()).empty());
}

TEST(Spill, ALivingOwnersFileIsLeftAlone) {
  const TemporaryFolder folder;
  store::SpillFile file(folder.path());
  const std::vector<Record> records = {step_record(1)};
  must(file.append(records));
  int calls = 0;
  store::take_in_spills(folder.path(), [&](const store::LeftSpill&) -> Result<std::int64_t> {
    ++calls;
    return 0;
  });
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(spill_files(folder.path()).size(), 1u);
}

TEST(Spill, ADeadOwnersFileIsTakenInAndRemoved) {
  const TemporaryFolder folder;
  put_file(folder / "spill-1-a.jsonl", to_json_line(step_record(1)) + "\n" + to_json_line(step_record(2)) + "\n");
  put_file(folder / "something else", "x");
  std::int64_t records = 0;
  const auto notes = store::take_in_spills(
      folder.path(), [&](const store::LeftSpill& left) { return left.read([&](const Record&) { ++records; }); });
  EXPECT_EQ(records, 2);
  EXPECT_TRUE(notes.empty());
  EXPECT_TRUE(spill_files(folder.path()).empty());
  EXPECT_TRUE(fs::exists(folder / "something else"));
}

TEST(Spill, AFileThatCannotBeTakenInStays) {
  const TemporaryFolder folder;
  put_file(folder / "spill-1-a.jsonl", to_json_line(step_record(1)) + "\n");
  const auto notes = store::take_in_spills(
      folder.path(), [&](const store::LeftSpill&) -> Result<std::int64_t> { return failed("the disk is full"); });
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("the disk is full"), std::string::npos) << notes[0];
  EXPECT_TRUE(fs::exists(folder / "spill-1-a.jsonl"));
}

TEST(Spill, BrokenLinesAreKeptForAPerson) {
  const TemporaryFolder folder;
  const std::string text =
      to_json_line(step_record(1)) + "\n{\"run\": \"aaa\n" + to_json_line(step_record(2)) + "\n{\"ru";
  put_file(folder / "spill-1-a.jsonl", text);
  std::int64_t records = 0;
  const auto notes = store::take_in_spills(
      folder.path(), [&](const store::LeftSpill& left) { return left.read([&](const Record&) { ++records; }); });
  EXPECT_EQ(records, 2);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("2 lines"), std::string::npos) << notes[0];
  EXPECT_EQ(file_text(folder / "spill-1-a.jsonl.unread"), text);
  EXPECT_EQ(spill_files(folder.path()).size(), 1u);
}

// A store that cannot grow: the data base's ceiling stands for a full disk.
StoreOptions small_store() {
  StoreOptions options;
  options.max_pages = 40;
  options.patience = std::chrono::milliseconds(0);
  return options;
}

TEST(Spill, WhatDoesNotFitTheDatabaseIsTakenInLater) {
  const TemporaryFolder folder;
  constexpr int steps = 5000;
  {
    auto store = must(Store::open(folder.path(), small_store()));
    const auto claim = must(store->claim(test_request(1), {}));
    const auto sink = store->sink(claim);
    for (int step = 1; step <= steps; ++step) sink->metrics(test_metrics(step, step));
    sink->event({RunEvent::Kind::info, steps, "told while the disk was full"});
    must(store->end(claim, {.state = RunState::finished, .cause = {}}));
    const auto health = store->health();
    EXPECT_FALSE(health.available);
    EXPECT_NE(health.problem.find("the disk is full"), std::string::npos) << health.problem;
    EXPECT_GT(health.spilled_rows, 0);
    EXPECT_EQ(health.held_rows, 0);
    EXPECT_EQ(health.lost_rows, 0);
  }
  ASSERT_EQ(spill_files(folder / "runs").size(), 1u);
  const std::string spilled = file_text(spill_files(folder / "runs").front());
  for (int time = 0; time < 2; ++time) {
    must(Store::open(folder.path()));
    EXPECT_TRUE(spill_files(folder / "runs").empty());
    auto reader = must(open_store_reader(folder.path()));
    const auto points = must(reader->series(test_id(1), "loss", 0, 100000));
    ASSERT_EQ(points.size(), static_cast<std::size_t>(steps));
    for (int step = 1; step <= steps; ++step) EXPECT_EQ(points[static_cast<std::size_t>(step - 1)].value, step);
    EXPECT_EQ(must(reader->run(test_id(1))).state, RunState::finished);
    const auto events = must(reader->events(test_id(1), 0, 100));
    ASSERT_EQ(events.size(), 2u);
    // That rows had to wait is an alert, said once and over with the process.
    const auto alert = std::find_if(events.begin(), events.end(), [](const auto& e) { return e.event.is_alert(); });
    ASSERT_NE(alert, events.end());
    EXPECT_EQ(alert->event.kind, RunEvent::Kind::store);
    EXPECT_GT(alert->resolved, 0);
    // As if the first taking in had been killed before it could remove the file.
    put_file(folder / "runs" / "spill-1-again.jsonl", spilled);
  }
}

// Nobody need open the store to write, for a run that ended during a lock to read as it ended.
TEST(Spill, WhoOnlyReadsTakesInToo) {
  const TemporaryFolder folder;
  StoreOptions options;
  options.busy_timeout = std::chrono::milliseconds(5);
  options.patience = std::chrono::milliseconds(0);
  {
    auto store = must(Store::open(folder.path(), options));
    const auto claim = must(store->claim(test_request(1), {}));
    ChildProcess lock({"lock", folder.path().string()});
    ASSERT_EQ(lock.line(), "locked");
    store->sink(claim)->metrics(test_metrics(1, 1));
    must(store->end(claim, {.state = RunState::failed, .cause = "the reason"}));
    store.reset();
    EXPECT_EQ(must(must(open_store_reader(folder.path()))->run(test_id(1))).state, RunState::running) << "still locked";
  }
  auto reader = must(open_store_reader(folder.path()));
  EXPECT_EQ(must(reader->run(test_id(1))).state, RunState::failed);
  EXPECT_EQ(must(reader->run(test_id(1))).cause, "the reason");
  EXPECT_EQ(must(reader->series(test_id(1), "loss", 0, 100)).size(), 1u);
  EXPECT_TRUE(spill_files(folder / "runs").empty());
}

TEST(Spill, TheOwnerTakesItsFileInItselfWhenItCan) {
  const TemporaryFolder folder;
  StoreOptions options;
  options.busy_timeout = std::chrono::milliseconds(5);
  options.patience = std::chrono::milliseconds(0);
  auto store = must(Store::open(folder.path(), options));
  const auto claim = must(store->claim(test_request(1), {}));
  const auto sink = store->sink(claim);
  ChildProcess child({"lock", folder.path().string()});
  ASSERT_EQ(child.line(), "locked");
  int step = 0;
  while (store->health().spilled_rows == 0) {
    ++step;
    sink->metrics(test_metrics(step, step));
    must(store->flush());
  }
  EXPECT_EQ(spill_files(folder / "runs").size(), 1u);
  child.close_input();
  EXPECT_EQ(child.wait(), 0);
  ++step;
  sink->metrics(test_metrics(step, step));
  while (!store->health().available) std::this_thread::yield();
  must(store->flush());
  EXPECT_EQ(store->health().spilled_rows, 0);
  EXPECT_TRUE(spill_files(folder / "runs").empty());
  EXPECT_EQ(must(must(open_store_reader(folder.path()))->series(test_id(1), "loss", 0, 100000)).size(),
            static_cast<std::size_t>(step));
}

TEST(Spill, LateRowsOfAnEarlierProcessFillOnlyWhatIsStillTheirs) {
  const TemporaryFolder folder;
  {
    auto store = must(Store::open(folder.path()));
    const auto first = must(store->claim(test_request(1), {}));
    store->sink(first)->metrics(test_metrics(1, 1));
    must(store->end(first, {.state = RunState::paused, .cause = "stopped"}));
    const auto second = must(store->claim(test_request(1, true), {}));
    store->sink(second)->resumed_after(3);
    store->sink(second)->metrics(test_metrics(4, 400));
    must(store->end(second, {.state = RunState::paused, .cause = "stopped again"}));
  }
  std::string text;
  for (int step = 2; step <= 6; ++step)
    text +=
        to_json_line({{test_id(1), 1}, store::StepRecord{step, step, 1, 1, {{"loss", static_cast<double>(step)}}}}) +
        "\n";
  text += to_json_line({{test_id(1), 1}, store::EventRecord{50, 5, 1, RunEvent::Kind::spike, "spike"}}) + "\n";
  text += to_json_line({{test_id(1), 1}, store::EventRecord{51, 5, 1, RunEvent::Kind::info, "note"}}) + "\n";
  text += to_json_line({{test_id(1), 1}, store::EndRecord{RunState::finished, "", 1, 0, 0, 0, 0, 0, 0, 0}}) + "\n";
  const auto before = must(must(open_store_reader(folder.path()))->series_epoch(test_id(1)));
  put_file(folder / "runs" / "spill-1-a.jsonl", text);
  must(Store::open(folder.path()));
  auto reader = must(open_store_reader(folder.path()));
  const auto points = must(reader->series(test_id(1), "loss", 0, 100));
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[1].value, 2);
  EXPECT_EQ(points[2].value, 3);
  EXPECT_EQ(points[3].value, 400);
  EXPECT_EQ(must(reader->run(test_id(1))).state, RunState::paused);
  EXPECT_GT(must(reader->series_epoch(test_id(1))), before);
  const auto events = must(reader->events(test_id(1), 0, 100));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].event.text, "note");
}

TEST(Spill, AlertsThatComeTwiceStayOne) {
  const TemporaryFolder folder;
  {
    auto store = must(Store::open(folder.path()));
    const auto claim = must(store->claim(test_request(1), {}));
    store->sink(claim)->metrics(test_metrics(1, 1));
    must(store->end(claim, {.state = RunState::paused, .cause = "stopped"}));
  }
  const store::SessionKey key{test_id(1), 1};
  const auto alert = [&](std::int64_t sequence, std::int64_t step) {
    return to_json_line({key, store::EventRecord{sequence, step, 1, RunEvent::Kind::spike, "spike",
                                                 RunEvent::Severity::warning, 6.5}}) +
           "\n";
  };
  const std::string text =
      alert(50, 2) + to_json_line({key, store::ResolvedRecord{51, 3, 9, RunEvent::Kind::spike}}) + "\n" + alert(52, 4);
  for (int time = 0; time < 2; ++time) {
    put_file(folder / "runs" / "spill-1-a.jsonl", text);
    must(Store::open(folder.path()));
    auto reader = must(open_store_reader(folder.path()));
    EXPECT_EQ(must(reader->alerts(false, 10)).size(), 2u);
    const auto open = must(reader->alerts(true, 10));
    ASSERT_EQ(open.size(), 1u) << "what ended the first does not end the second";
    EXPECT_EQ(open[0].row.event.step, 4);
    EXPECT_EQ(open[0].row.event.value, 6.5);
  }
}

TEST(Spill, ACompletionThatWasSpilledCountsBeforeTheRunIsContinued) {
  const TemporaryFolder folder;
  auto store = must(Store::open(folder.path()));
  {
    ChildProcess child({"hold", folder.path().string(), test_id(1)});
    ASSERT_EQ(child.line(), "holding");
  }  // killed, with this in its spill file
  put_file(folder / "runs" / "spill-1-a.jsonl",
           to_json_line({{test_id(1), 1}, store::StepRecord{1, 1, 1, 1, {{"loss", 2}}}}) + "\n" +
               to_json_line({{test_id(1), 1}, store::EndRecord{RunState::finished, "", 1, 1, 1, 1, 0, 0, 0, 0}}) +
               "\n");
  EXPECT_EQ(must(store->claim(test_request(1, true), {})).kind, Claim::Kind::already_finished);
  EXPECT_TRUE(spill_files(folder / "runs").empty());
}

TEST(Spill, RowsOfAnUnknownRunAreKept) {
  const TemporaryFolder folder;
  must(Store::open(folder.path()));
  put_file(folder / "runs" / "spill-1-a.jsonl", to_json_line(step_record(1)) + "\n");
  must(Store::open(folder.path()));
  EXPECT_TRUE(fs::exists(folder / "runs" / "spill-1-a.jsonl.unread"));
}

TEST(Spill, WithoutDatabaseAndFileMemoryIsBoundedAndTheLossIsToldAsAnEvent) {
  const TemporaryFolder folder;
  StoreOptions options;
  options.busy_timeout = std::chrono::milliseconds(5);
  options.patience = std::chrono::milliseconds(0);
  options.held_rows_limit = 300;
  auto store = must(Store::open(folder.path(), options));
  const auto claim = must(store->claim(test_request(1), {}));
  const auto sink = store->sink(claim);
  must(store->flush());
  ChildProcess child({"lock", folder.path().string()});
  ASSERT_EQ(child.line(), "locked");
  // No folder, no spill file.
  fs::rename(folder / "runs", folder / "runs away");
  for (int step = 1; step <= 1000; ++step) sink->metrics(test_metrics(step, step));
  EXPECT_FALSE(store->flush());
  EXPECT_EQ(store->health().held_rows, 302) << "and the alerts that they have to wait, and where";
  EXPECT_EQ(store->health().lost_rows, 2700);
  child.close_input();
  EXPECT_EQ(child.wait(), 0);
  while (!store->health().available) std::this_thread::yield();
  must(store->flush());
  auto reader = must(open_store_reader(folder.path()));
  EXPECT_EQ(must(reader->series(test_id(1), "loss", 0, 10000)).size(), 100u);
  const auto events = must(reader->events(test_id(1), 0, 10));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_TRUE(events[1].event.text.starts_with("Neither the store nor a file beside it")) << events[1].event.text;
  EXPECT_EQ(events[1].event.severity, RunEvent::Severity::critical);
  EXPECT_TRUE(events[0].event.text.starts_with("The store cannot be written")) << events[0].event.text;
  EXPECT_EQ(events[2].event.kind, RunEvent::Kind::store);
  EXPECT_TRUE(events[2].event.text.starts_with("2700 rows of steps 101 to 1000 are lost")) << events[2].event.text;
  sink->metrics(test_metrics(1001, 1));
  must(store->flush());
  EXPECT_EQ(must(reader->events(test_id(1), 0, 10)).size(), 3u);
}

}  // namespace
}  // namespace stacklab
