// Faults of the world around a run: locks, full disks, odd places, clocks, damaged files.
#include <SQLiteCpp/Database.h>

#include <nlohmann/json.hpp>
#include <random>

#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

namespace fs = std::filesystem;

Json straight_loss(std::int64_t steps = 12) {
  const Workspace workspace;
  workspace.write_config(steps);
  return workspace({"train", workspace.config(), "--json"}).json()["loss"];
}

Json loss_curve(const Workspace& workspace) {
  return workspace({"runs", "export", "small", "--json"}).json()["metrics"]["loss"];
}

bool is_state(const Workspace& workspace, const std::string& state) {
  const Answer answer = workspace({"runs", "list", "--json"});
  if (answer.code != 0) return false;
  const Json runs = answer.json()["runs"];
  return !runs.empty() && runs[0]["state"] == state;
}

TEST(Faults, ALockedStoreCostsTrainingNothing) {
  const Workspace workspace;
  workspace.write_config(400);
  Child child(workspace.words({"train", workspace.config()}), workspace.path());
  while (!is_state(workspace, "running")) std::this_thread::yield();
  {
    SQLite::Database db((workspace / "stacklab.db").string(), SQLite::OPEN_READWRITE, 20000);
    db.exec("BEGIN EXCLUSIVE");
    EXPECT_TRUE(child.says("cannot be written for now"));
    std::this_thread::sleep_for(std::chrono::seconds(7));  // longer than the store is patient: rows go to a file
    db.exec("ROLLBACK");
  }
  ASSERT_EQ(child.wait(), 0) << child.err();
  const Json loss = loss_curve(workspace);
  ASSERT_EQ(loss.size(), 400u);
  EXPECT_EQ(loss[399][1], straight_loss(400));
  EXPECT_EQ(workspace({"runs", "show", "small", "--json"}).json()["state"], "finished");
}

TEST(Faults, ARequestThatALockKeepsFromTheRunIsNoSuccess) {
  const Workspace workspace;
  workspace.write_config(1000000);
  Child child(workspace.words({"train", workspace.config()}), workspace.path());
  while (!is_state(workspace, "running")) std::this_thread::yield();
  {
    SQLite::Database db((workspace / "stacklab.db").string(), SQLite::OPEN_READWRITE, 20000);
    db.exec("BEGIN EXCLUSIVE");
    const Answer answer = workspace({"pause", "small", "--wait", "--json"});
    EXPECT_EQ(answer.code, 1) << answer.err;
    EXPECT_NE(answer.err.find("was not asked"), std::string::npos) << answer.err;
    EXPECT_NE(answer.json()["remedy"].get<std::string>().find("kill -INT "), std::string::npos);
    db.exec("ROLLBACK");
  }
  EXPECT_TRUE(is_state(workspace, "running"));
  const Answer answer = workspace({"pause", "small", "--wait", "--json"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.json()["state"], "paused");
  EXPECT_EQ(child.wait(), 130);
}

// The end of the run waits for the lock longer than a second.
TEST(Faults, ASecondSignalAfterAWhileEndsAtOnceAndSaysWhatIsLost) {
  const Workspace workspace;
  workspace.write_config(1000000);
  Child child(workspace.words({"train", workspace.config(), "--json"}), workspace.path());
  while (!is_state(workspace, "running")) std::this_thread::yield();
  SQLite::Database db((workspace / "stacklab.db").string(), SQLite::OPEN_READWRITE, 20000);
  db.exec("BEGIN EXCLUSIVE");
  child.send(SIGINT);
  ASSERT_TRUE(child.says("Stopping"));
  while (child.err().find("are lost") == std::string::npos) {
    child.send(SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(child.wait(), 1);
  EXPECT_NE(Json::parse(child.out())["error"].get<std::string>().find("are lost"), std::string::npos) << child.out();
}

TEST(Faults, TwoProcessesOnOneRunAreToldApart) {
  const Workspace workspace;
  workspace.write_config(1000000);
  Child child(workspace.words({"train", workspace.config()}), workspace.path());
  while (!is_state(workspace, "running")) std::this_thread::yield();
  for (const char* verb : {"train", "resume"}) {
    const Answer second = workspace({verb, verb == std::string("train") ? workspace.config() : "small", "--json"});
    EXPECT_EQ(second.code, 3);
    EXPECT_NE(second.err.find("is already running in process "), std::string::npos) << second.err;
  }
  child.send(SIGINT);
  EXPECT_EQ(child.wait(), 130);
  EXPECT_TRUE(is_state(workspace, "paused"));
}

TEST(Faults, TwoWorkspacesAtOnceDoNotMeet) {
  const Workspace one, two;
  Child first(one.words({"train", one.config()}), one.path()), second(two.words({"train", two.config()}), two.path());
  EXPECT_EQ(first.wait(), 0) << first.err();
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(loss_curve(one), loss_curve(two));
}

TEST(Faults, OddPlacesAndNamesWork) {
  const Workspace source;
  const Json loss = straight_loss();
  for (const char* name : {"with space", "ünïcödé 日本", "a?b#c%20d", "file:uri", "quote'\"", "new\nline"}) {
    const fs::path place = source / name;
    fs::create_directories(place / "data");
    fs::copy(source / "data/sample", place / "data/sample", fs::copy_options::recursive);
    const Answer answer = stacklab({"train", source.config(), "--workspace", place.string(), "--json"});
    ASSERT_EQ(answer.code, 0) << name << answer.err;
    EXPECT_EQ(answer.json()["loss"], loss);
    const Answer fork = stacklab({"fork", "small", "--at", "8", "--workspace", place.string(), "--start", "--json"});
    EXPECT_EQ(fork.code, 0) << name << fork.err;
  }
}

TEST(Faults, AWorkspaceCanBeMovedBetweenTwoParts) {
  const Workspace workspace;
  const std::string place = (workspace / "here").string(), there = (workspace / "there").string();
  fs::create_directories(place + "/data");
  fs::copy(workspace / "data/sample", place + "/data/sample", fs::copy_options::recursive);
  ASSERT_EQ(stacklab({"train", workspace.config(), "--workspace", place, "--max-steps", "6"}).code, 0);
  fs::rename(place, there);
  const Answer answer = stacklab({"resume", "small", "--workspace", there, "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.json()["loss"], straight_loss());
}

TEST(Faults, AWorkspaceThatIsMovedWhileItIsTrainedInIsNoticed) {
  const Workspace workspace;
  workspace.write_config(1000000);
  const std::string place = (workspace / "here").string(), there = (workspace / "there").string();
  fs::create_directories(place + "/data");
  fs::copy(workspace / "data/sample", place + "/data/sample", fs::copy_options::recursive);
  Child child({"train", workspace.config(), "--workspace", place}, workspace.path());
  while (stacklab({"runs", "list", "--filter", "step > 8", "--workspace", place, "--json"}).out.find("small") ==
         std::string::npos)
    std::this_thread::yield();
  fs::rename(place, there);
  // It ends by itself: what it trains from here on could never be saved.
  EXPECT_EQ(child.wait(), 1) << child.err();
  EXPECT_NE(child.err().find("was moved to " + fs::canonical(there).string()), std::string::npos) << child.err();
  EXPECT_FALSE(fs::exists(place)) << "nothing is made anew";
  const Json run = stacklab({"runs", "show", "small", "--workspace", there, "--json"}).json();
  EXPECT_EQ(run["state"], "failed");
  EXPECT_NE(run["cause"].get<std::string>().find("was moved to"), std::string::npos) << run["cause"];
  const std::string further = std::to_string(run["step"].get<std::int64_t>() + 4);
  EXPECT_EQ(stacklab({"train", workspace.config(), "--workspace", there, "--resume", "--max-steps", further}).code, 0);
}

TEST(Faults, ARunWhoseFolderIsDeletedEndsAndSaysSo) {
  const Workspace workspace;
  workspace.write_config(1000000);
  Child child(workspace.words({"train", workspace.config()}), workspace.path());
  while (workspace({"runs", "list", "--filter", "step > 8", "--json"}).out.find("small") == std::string::npos)
    std::this_thread::yield();
  const std::string folder = workspace({"runs", "show", "small", "--json"}).json()["folder"];
  // A checkpoint may come into it meanwhile.
  for (std::error_code ec; fs::exists(workspace / folder);) fs::remove_all(workspace / folder, ec);
  EXPECT_EQ(child.wait(), 1) << child.err();
  EXPECT_NE(child.err().find(folder + " was deleted"), std::string::npos) << child.err();
  const Json run = workspace({"runs", "show", "small", "--json"}).json();
  EXPECT_EQ(run["state"], "failed");
  EXPECT_NE(run["cause"].get<std::string>().find("was deleted"), std::string::npos);
}

TEST(Faults, ALocaleWithCommasChangesNothing) {
  const Workspace one, two;
  const auto train = [](const Workspace& w, const char* locale) {
    return run_words({program, "train", w.config(), "--workspace", w.path().string(), "--set", "optim.adam_lr=0.0123",
                      "--json", "--set", "run.budget.hours=1.5"},
                     {{"LC_ALL", locale}});
  };
  const Answer c = train(one, "C"), german = train(two, "de_DE.UTF-8");
  ASSERT_EQ(german.code, 0) << german.err;
  EXPECT_EQ(c.json()["loss"], german.json()["loss"]);
  EXPECT_EQ(c.json()["run"], german.json()["run"]);
  EXPECT_EQ(loss_curve(one), loss_curve(two));
}

// Every other page gets a bit turned. What cannot be read is said in one line; nothing crashes, nothing hangs.
TEST(Faults, ADamagedStoreIsSaidNeverACrash) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"train", workspace.config()}).code, 0);
  const std::string whole = file_text(workspace / "stacklab.db");
  std::mt19937 random(11);
  for (int trial = 0; trial < 25; ++trial) {
    std::string damaged = whole;
    const int flips = trial < 10 ? 1 : 200;
    for (int i = 0; i < flips; ++i) {
      const auto at = std::uniform_int_distribution<std::size_t>(0, damaged.size() - 1)(random);
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << std::uniform_int_distribution<int>(0, 7)(random)));
    }
    for (const char* beside : {"stacklab.db-wal", "stacklab.db-shm"}) fs::remove(workspace / beside);
    put_file(workspace / "stacklab.db", damaged);
    for (const std::vector<std::string>& words : {std::vector<std::string>{"runs", "list"},
                                                  {"runs", "show", "small"},
                                                  {"runs", "export", "small"},
                                                  {"train", workspace.config(), "--resume"}}) {
      const Answer answer = workspace(words);
      EXPECT_TRUE(answer.code >= 0 && answer.code <= 3) << words[1] << ": " << answer.code << " " << answer.err;
      if (answer.code != 0) {
        EXPECT_NE(answer.err.find("error: "), std::string::npos) << answer.err;
      }
    }
  }
}

// A database that ends early, as a copy that broke off leaves it.
TEST(Faults, ACutStoreIsSaidNeverACrash) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"train", workspace.config()}).code, 0);
  const std::string whole = file_text(workspace / "stacklab.db");
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{99}, std::size_t{4096}, whole.size() / 2, whole.size() - 1}) {
    for (const char* beside : {"stacklab.db-wal", "stacklab.db-shm"}) fs::remove(workspace / beside);
    put_file(workspace / "stacklab.db", whole.substr(0, size));
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"runs", "list"}, {"train", workspace.config(), "--resume"}}) {
      const Answer answer = workspace(words);
      EXPECT_TRUE(answer.code >= 0 && answer.code <= 3) << size << " " << words[1] << ": " << answer.code;
      if (answer.code != 0) {
        EXPECT_NE(answer.err.find("stacklab.db"), std::string::npos) << answer.err;
      }
    }
  }
}

// Whatever makes files: what is missing is room, where, and what helps; nothing half-made has the name of a whole.
TEST(Faults, AFullDiskIsSaidByWhateverMakesFiles) {
  const Workspace workspace;
  std::string text;
  std::mt19937 letters(1);
  for (int i = 0; i < 600000; ++i) text += letters() % 6 == 0 ? ' ' : static_cast<char>('a' + letters() % 26);
  put_file(workspace / "letters.txt", text);
  const std::string disk = (workspace / "disk").string(), own = (workspace / "letters.txt").string();
  fs::create_directory(disk);
  const std::vector<std::pair<std::string, std::string>> all = {
      {"corpus add " + own + " --name own", "data/own"},
      {"corpus get tinyworld", "data/tinyworld"},
      {"corpus make tinyworld --documents 5000 --name world", "data/world"},
      {"tokenizer train --vocab 8000 --input " + own + " --out " + disk + "/tokenizers/t", "tokenizers/t"},
      {"data build " + own + " --out " + disk + "/shards", "shards"}};
  for (const auto& [command, made] : all) {
    SCOPED_TRACE(command);
    const Answer answer =
        shell("unshare -rm sh -c 'mount -t tmpfs -o size=200k none " + disk + " || exit 77; " + program + " " +
              command + " --workspace " + disk + "; echo $?; find " + disk + " -type f' || exit 77");
    if (answer.code == 77 && answer.out.empty()) GTEST_SKIP() << "this system lets nobody mount a small disk";
    EXPECT_TRUE(answer.out.starts_with("1\n")) << answer.out << answer.err;
    EXPECT_EQ(answer.out.find("/" + made), std::string::npos) << answer.out;
    EXPECT_NE(answer.err.find("No space left"), std::string::npos) << answer.err;
    EXPECT_NE(answer.err.find(disk), std::string::npos) << answer.err;
    EXPECT_TRUE(answer.err.ends_with(")\n")) << "says what helps: " << answer.err;
  }
}

TEST(Faults, AClockThatGoesBackLosesNothing) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"train", workspace.config(), "--max-steps", "6"}).code, 0);
  {
    // As if what is recorded came from the future.
    SQLite::Database db((workspace / "stacklab.db").string(), SQLite::OPEN_READWRITE);
    db.exec(
        "UPDATE sessions SET started = started + 1e6, ended = ended + 1e6, last_beat = last_beat + 1e6, next_by = "
        "next_by + 1e6");
    db.exec("UPDATE steps SET unix_time = unix_time + 1e6");
    db.exec("UPDATE runs SET created = created + 1e6");
  }
  const Answer answer = workspace({"resume", "small", "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.json()["loss"], straight_loss());
  EXPECT_EQ(loss_curve(workspace).size(), 12u);
}

}  // namespace
}  // namespace stacklab::cli
