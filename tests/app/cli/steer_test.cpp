// Runs that are steered, forked, detached and limited from the command line.
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

namespace fs = std::filesystem;

Json run_of(const Workspace& workspace, const std::string& run) {
  const Answer answer = workspace({"runs", "show", run, "--json"});
  return answer.code == 0 ? answer.json() : Json();
}

// Waits for what another process does.
template <class Condition>
void until(Condition&& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

constexpr std::int64_t forever = 1000000;  // steps

TEST(Steer, ADetachedRunIsSteeredThroughTheStore) {
  const Workspace workspace;
  workspace.write_config(forever);
  const Answer started = workspace({"train", workspace.config(), "--detach", "--json"});
  ASSERT_EQ(started.code, 0) << started.err;
  const Json json = started.json();
  EXPECT_EQ(json["state"], "running");
  const pid_t pid = json["process"].get<pid_t>();
  EXPECT_EQ(getsid(pid), pid) << "a session of its own";
  EXPECT_EQ(fs::path(json["log"].get<std::string>()).filename(), "output.log");
  EXPECT_TRUE(run_of(workspace, "small")["detached"].get<bool>());
  EXPECT_EQ(workspace({"train", workspace.config(), "--detach"}).code, 3) << "it runs already";
  EXPECT_EQ(workspace({"runs", "delete", "small"}).code, 3);

  const Answer checkpoint = workspace({"checkpoint", "small", "--wait", "--json"});
  ASSERT_EQ(checkpoint.code, 0) << checkpoint.err;
  EXPECT_EQ(checkpoint.json()["state"], "running") << "it goes on";

  const Answer paused = workspace({"pause", "small", "--wait", "--json"});
  ASSERT_EQ(paused.code, 0) << paused.err;
  EXPECT_EQ(paused.json()["state"], "paused");
  EXPECT_NE(run_of(workspace, "small")["cause"].get<std::string>().find("paused at step"), std::string::npos);
  const Json queue = workspace({"queue", "list", "--json"}).json()["queue"];
  ASSERT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue[0]["name"], "small");

  ASSERT_EQ(workspace({"resume", "small", "--detach"}).code, 0);
  EXPECT_TRUE(workspace({"queue", "list", "--json"}).json()["queue"].empty());
  EXPECT_EQ(workspace({"stop", "small", "--wait", "--json"}).json()["state"], "paused");
  EXPECT_NE(run_of(workspace, "small")["cause"].get<std::string>().find("stopped at step"), std::string::npos);
  EXPECT_TRUE(workspace({"queue", "list", "--json"}).json()["queue"].empty());
  const Answer idle = workspace({"pause", "small", "--json"});
  EXPECT_EQ(idle.code, 0);
  EXPECT_EQ(idle.json()["state"], "paused") << "nothing to do is no failure";
}

// Text that is taken in on the way gives the run another id than its config has.
TEST(Steer, AKilledQueueLosesNoneOfItsRuns) {
  const Workspace workspace;
  workspace.write_config(forever);
  ASSERT_EQ(workspace({"queue", "add", workspace.config()}).code, 0);
  EXPECT_EQ(workspace({"queue", "add", workspace.config()}).code, 3) << "twice is once too often";
  ASSERT_EQ(workspace({"queue", "add", workspace.config(), "--set", "train.tokens=1280", "--set", "name=other"}).code,
            0);
  {
    Child child(workspace.words({"queue", "run"}), workspace.path());
    until([&] { return run_of(workspace, "small")["step"].is_number() && run_of(workspace, "small")["step"] > 4; });
    EXPECT_EQ(workspace({"queue", "list", "--json"}).json()["queue"].size(), 1u) << "what is trained waits no more";
    child.send(SIGKILL);
    child.wait();
  }
  const Json queue = workspace({"queue", "list", "--json"}).json()["queue"];
  ASSERT_EQ(queue.size(), 2u) << queue;
  EXPECT_EQ(queue[0]["name"], "small");
  EXPECT_EQ(queue[0]["process"], 0);
  EXPECT_EQ(run_of(workspace, "small")["state"], "lost") << "nothing begins by itself";
  {
    const auto before = run_of(workspace, "small")["step"].get<std::int64_t>();
    Child child(workspace.words({"queue", "run"}), workspace.path());
    until([&] { return run_of(workspace, "small")["step"] > before + 4; });
    EXPECT_EQ(workspace({"pause", "small", "--wait"}).code, 0);
    EXPECT_EQ(child.wait(), 130);
  }
  EXPECT_EQ(workspace({"queue", "list", "--json"}).json()["queue"].size(), 2u);
  EXPECT_EQ(workspace({"stop", "small"}).code, 0);
  const Answer rest = workspace({"queue", "run", "--json"});
  EXPECT_EQ(rest.code, 0) << rest.err;
  ASSERT_EQ(rest.json()["jobs"].size(), 1u) << "a paused run that is stopped waits no more";
  EXPECT_EQ(rest.json()["jobs"][0]["name"], "other");
}

TEST(Steer, AnEntryThatFailsKeepsNoOtherFromItsTurn) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"queue", "add", workspace.config(), "--set", "data.corpus=nowhere", "--set", "name=bad"}).code,
            0);
  ASSERT_EQ(workspace({"queue", "add", workspace.config()}).code, 0);
  const Answer answer = workspace({"queue", "run", "--json"});
  EXPECT_EQ(answer.code, 1) << "the command was right: " << answer.err;
  ASSERT_EQ(answer.json()["jobs"].size(), 2u);
  EXPECT_EQ(answer.json()["jobs"][0]["state"], "queued");
  EXPECT_EQ(answer.json()["jobs"][1]["state"], "finished");
  const Json queue = workspace({"queue", "list", "--json"}).json()["queue"];
  ASSERT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue[0]["name"], "bad");
}

TEST(Steer, SignalsThatComeTogetherAreOneRequest) {
  const Workspace workspace;
  workspace.write_config(forever);
  Child child(workspace.words({"train", workspace.config(), "--json"}), workspace.path());
  until([&] { return run_of(workspace, "small")["step"].is_number() && run_of(workspace, "small")["step"] > 4; });
  child.send(SIGINT);
  child.send(SIGTERM);
  EXPECT_EQ(child.wait(), 130);
  EXPECT_NE(child.out().find("\"state\": \"paused\""), std::string::npos) << child.out();
  const Json run = run_of(workspace, "small");
  EXPECT_TRUE(fs::exists(workspace.path() / run["folder"].get<std::string>() /
                         ("ckpt_step" + std::to_string(run["step"].get<std::int64_t>()))))
      << "no step is lost";
}

TEST(Steer, ACorpusThatRunsNeedIsNotRemoved) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"train", workspace.config(), "--max-steps", "4"}).code, 0);
  const Answer refused = workspace({"corpus", "remove", "sample", "--yes"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.err.find("small ("), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("), paused"), std::string::npos) << refused.err;
  ASSERT_EQ(workspace({"resume", "small"}).code, 0);
  EXPECT_EQ(workspace({"corpus", "remove", "sample", "--yes"}).code, 0) << "nobody has to go on with it";
}

TEST(Steer, AStoreThatIsLostBesideItsRunsIsSaid) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"train", workspace.config(), "--max-steps", "8"}).code, 0);
  for (const char* file : {"stacklab.db", "stacklab.db-wal", "stacklab.db-shm"}) fs::remove(workspace / file);
  const Answer resumed = workspace({"resume", "small"});
  EXPECT_EQ(resumed.code, 1);
  EXPECT_NE(resumed.err.find("has lost its store"), std::string::npos) << resumed.err;
  EXPECT_NE(resumed.err.find("config.json --resume"), std::string::npos) << resumed.err;
  const Answer trained = workspace({"train", workspace.config(), "--resume", "--json"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(trained.json()["steps"], 12);
  EXPECT_NE(trained.err.find("no rows of steps 1 to 8"), std::string::npos) << trained.err;
  const Json run = run_of(workspace, "small");
  bool open_alert = false;
  for (const Json& event : run["events"])
    open_alert |= event["text"].get<std::string>().find("no rows of steps 1 to 8") != std::string::npos &&
                  event.contains("open") && event["open"].get<bool>();
  EXPECT_TRUE(open_alert) << run["events"];
  EXPECT_EQ(workspace({"runs", "export", "small", "--json"}).json()["metrics"]["loss"].size(), 4u);
}

TEST(Steer, AStoreThatIsWholeHasNothingToSay) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"train", workspace.config(), "--max-steps", "6", "--set", "run.log_every=5"}).code, 0);
  const Answer trained = workspace({"resume", "small"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(trained.err.find("no rows"), std::string::npos) << trained.err;
}

TEST(Steer, WhatCannotBePrintedIsAFailure) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"train", workspace.config()}).code, 0);
  const std::string at = " --workspace " + workspace.path().string();
  for (const char* words : {" runs list", " runs export small", " runs clone small", " runs show small --json"}) {
    EXPECT_EQ(shell(program + words + at + " >&-").code, 1) << words;
    EXPECT_EQ(shell(program + words + at + " >/dev/full").code, 1) << words;
  }
  for (const auto& limits : {std::vector<std::string>{"--limit", "0"}, {"--offset", "1000000"}}) {
    const Answer none = workspace({"runs", "list", limits[0], limits[1]});
    EXPECT_EQ(none.code, 0);
    EXPECT_EQ(none.out.find("No runs yet"), std::string::npos) << none.out;
  }
  EXPECT_EQ(workspace({"runs", "note", "small", "not \xff text"}).code, 2);
  const Answer clone = stacklab({"clone", "--help"});
  EXPECT_EQ(clone.code, 2);
  EXPECT_NE(clone.err.find("stacklab runs clone"), std::string::npos) << clone.err;
}

TEST(Steer, ADetachedRunOfOnesOwnTextIsFound) {
  const Workspace workspace;
  workspace.write_config(forever);
  for (int i = 0; i < 40; ++i)
    put_file(workspace / ("own/" + std::to_string(i) + ".txt"),
             "text number " + std::to_string(i) + " of many more words");
  const Answer started =
      workspace({"train", workspace.config(), "--detach", "--json", "--set",
                 "data.corpus=" + (workspace / "own/").string(), "--set", "data.validation_fraction=0.3"});
  ASSERT_EQ(started.code, 0) << started.err;
  const Json run = run_of(workspace, "small"), json = started.json();
  EXPECT_EQ(json["run"], run["id"]);
  EXPECT_EQ(json["state"], "running");
  EXPECT_EQ(json["log"], (workspace.path() / run["folder"].get<std::string>() / "output.log").string());
  EXPECT_TRUE(fs::exists(json["log"].get<std::string>()));
  EXPECT_EQ(std::count_if(fs::directory_iterator(workspace / "runs"), fs::directory_iterator(),
                          [](const fs::directory_entry& entry) { return entry.is_directory(); }),
            1);
  EXPECT_EQ(workspace({"stop", "small", "--wait"}).code, 0);
}

TEST(Steer, ADetachedRunThatCannotBeginSaysWhy) {
  const Workspace workspace;
  const Answer answer = workspace({"train", workspace.config(), "--detach", "--set", "data.corpus=nowhere", "--json"});
  EXPECT_NE(answer.code, 0);
  EXPECT_NE(answer.err.find("nowhere"), std::string::npos) << answer.err;
  EXPECT_NE(answer.err.find("output.log"), std::string::npos) << answer.err;
}

TEST(Steer, AForkGoesOnFromItsParentsStep) {
  const Workspace workspace;
  const Json parent = workspace({"train", workspace.config(), "--json"}).json();
  const Answer made = workspace({"fork", "small", "--at", "8", "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  const Json fork = made.json();
  EXPECT_EQ(fork["state"], "paused");
  EXPECT_EQ(fork["step"], 8);
  EXPECT_EQ(fork["name"], "small-at8");
  EXPECT_NE(fork["run"], parent["run"]) << "a run of its own, though nothing else changed";
  // It needs nothing of its parent any more.
  ASSERT_EQ(workspace({"runs", "delete", "small", "--purge", "--yes"}).code, 0);
  const Answer trained = workspace({"resume", "small-at8", "--json"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(trained.json()["steps"], 12);
  EXPECT_EQ(trained.json()["loss"], parent["loss"]) << "the same settings: bit for bit the same course";
  const Json curve = workspace({"runs", "export", "small-at8", "--json"}).json()["metrics"]["loss"];
  ASSERT_EQ(curve.size(), 4u) << "its curve begins where it was forked";
  EXPECT_EQ(curve[0][0], 9);
  EXPECT_EQ(run_of(workspace, "small-at8")["parent"], parent["run"]);
}

// Its id is that of what it is trained on, not of the path that was named.
TEST(Steer, AForkOntoOnesOwnTextIsOne) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"train", workspace.config()}).code, 0);
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "It is line " + std::to_string(i) + " of another text.\n\n";
  put_file(workspace / "own/another.txt", text);
  const Answer made =
      workspace({"fork", "small", "--at", "8", "--set", "data.corpus=" + (workspace / "own/another.txt").string(),
                 "--name", "elsewhere", "--start", "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(run_of(workspace, "elsewhere")["fork_step"], 8);
  const Json curve = workspace({"runs", "export", "elsewhere", "--json"}).json()["metrics"]["loss"];
  ASSERT_EQ(curve.size(), 4u);
  EXPECT_EQ(curve[0][0], 9);
  EXPECT_EQ(workspace({"runs", "list", "--json"}).json()["runs"].size(), 2u);
}

TEST(Steer, AForkMayChangeWhatDoesNotShapeTheModel) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"train", workspace.config()}).code, 0);
  const Answer hot =
      workspace({"fork", "small", "--at", "8", "--set", "optim.adam_lr=0.05", "--name", "hot", "--start", "--json"});
  ASSERT_EQ(hot.code, 0) << hot.err;
  EXPECT_EQ(hot.json()["name"], "hot");
  EXPECT_EQ(hot.json()["steps"], 12);
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--at", "8", "--set", "model.d_model=32"}, "model.d_model"},
      {{"--at", "8", "--set", "optim.matrices=muon"}, "optim.matrices"},
      {{"--at", "8", "--set", "train.batch_tokens=64"}, "train.batch_tokens"},
      {{"--at", "12"}, "train.tokens"},
      {{"--at", "7"}, "there are those of steps 8, 12"}};
  for (const auto& [options, said] : wrong) {
    std::vector<std::string> words = {"fork", "small"};
    words.insert(words.end(), options.begin(), options.end());
    const Answer answer = workspace(words);
    EXPECT_EQ(answer.code, 2) << said;
    EXPECT_NE(answer.err.find(said), std::string::npos) << answer.err;
  }
  EXPECT_EQ(workspace({"fork", "small", "--at", "8"}).code, 0);
  const Answer twice = workspace({"fork", "small", "--at", "8"});
  EXPECT_EQ(twice.code, 3);
  EXPECT_NE(twice.err.find("stacklab resume"), std::string::npos) << twice.err;
  EXPECT_EQ(workspace({"runs", "list", "--json"}).json()["runs"].size(), 3u) << "nothing is left of what failed";
}

TEST(Steer, ABudgetIsHardAndNamesTheKeyThatOverridesIt) {
  const Workspace workspace;
  const Answer answer = workspace({"train", workspace.config(), "--set", "run.budget.tokens=700", "--json"});
  EXPECT_EQ(answer.code, 3) << answer.err;
  EXPECT_NE(answer.err.find("--set run.budget.tokens=0"), std::string::npos) << answer.err;
  EXPECT_EQ(answer.json()["steps"], 5) << "700 tokens are five steps of 128";
  EXPECT_EQ(answer.json()["state"], "paused");
  const Json run = run_of(workspace, "small");
  EXPECT_EQ(run["cause"].get<std::string>().find("budget"), 0u) << run["cause"];
  const Answer again = workspace({"resume", "small", "--set", "run.budget.tokens=640", "--json"});
  EXPECT_EQ(again.code, 3);
  EXPECT_EQ(run_of(workspace, "small")["step"], 5);
  const Answer more = workspace({"resume", "small", "--set", "run.budget.tokens=0", "--json"});
  ASSERT_EQ(more.code, 0) << more.err;
  const Workspace other;
  EXPECT_EQ(more.json()["loss"], other({"train", other.config(), "--json"}).json()["loss"]) << "as without a budget";
  const Answer wrong = workspace({"train", workspace.config(), "--set", "run.budget.usd=1"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("usd_per_hour"), std::string::npos) << wrong.err;
}

TEST(Steer, TheClockEndsARunToo) {
  const Workspace workspace;
  workspace.write_config(forever);
  const Answer answer = workspace({"train", workspace.config(), "--set", "run.budget.usd=0.0005", "--set",
                                   "run.budget.usd_per_hour=3.6", "--json", "--quiet"});
  EXPECT_EQ(answer.code, 3) << answer.err;  // half a second
  const Json run = run_of(workspace, "small");
  EXPECT_NE(run["cause"].get<std::string>().find("run.budget.usd"), std::string::npos);
  bool alert = false;
  for (const Json& event : run["events"]) alert |= event["kind"] == "budget" && event.contains("severity");
  EXPECT_TRUE(alert);
  EXPECT_TRUE(fs::exists(workspace.path() / run["folder"].get<std::string>() /
                         ("ckpt_step" + std::to_string(run["step"].get<std::int64_t>()))));
}

TEST(Steer, RunsAreTaggedComparedPrunedAndDeleted) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"train", workspace.config()}).code, 0);
  ASSERT_EQ(workspace({"train", workspace.config(), "--seed", "2", "--set", "name=other"}).code, 0);
  EXPECT_EQ(workspace({"runs", "tag", "small", "a", "b", "--json"}).json()["tags"], Json({"a", "b"}));
  EXPECT_EQ(workspace({"runs", "tag", "small", "--remove", "a", "--json"}).json()["tags"], Json({"b"}));
  EXPECT_EQ(workspace({"runs", "tag", "small", "two words"}).code, 2);
  EXPECT_EQ(workspace({"runs", "note", "small", "a", "note", "--json"}).json()["note"], "a note");
  EXPECT_EQ(workspace({"runs", "list", "--filter", "tag:b", "--json"}).json()["runs"].size(), 1u);
  EXPECT_EQ(workspace({"runs", "list", "--filter", "train.seed = 2", "--json"}).json()["runs"][0]["name"], "other");
  EXPECT_EQ(workspace({"runs", "list", "--sort", "nonsense"}).code, 2);
  const Json diff = workspace({"runs", "diff", "small", "other", "--json"}).json();
  ASSERT_EQ(diff["differences"].size(), 2u);
  EXPECT_EQ(diff["differences"][1]["key"], "train.seed");
  EXPECT_EQ(diff["differences"][1]["values"], Json({"1337", "2"}));

  const Json clone = workspace({"runs", "clone", "other", "--set", "train.seed=3", "--json"}).json();
  EXPECT_EQ(clone["train"]["seed"], 3);
  EXPECT_EQ(clone["model"]["d_model"], 16);

  const Json dry = workspace({"runs", "prune", "--keep", "1", "--json"}).json();
  EXPECT_TRUE(dry["dry_run"].get<bool>());
  ASSERT_EQ(dry["runs"].size(), 2u);
  EXPECT_EQ(dry["runs"][0]["steps"], Json({8}));
  const Json done = workspace({"runs", "prune", "small", "--keep", "1", "--yes", "--json"}).json();
  EXPECT_EQ(done["runs"][0]["steps"], Json({8}));
  EXPECT_GT(done["bytes"], 0);
  EXPECT_EQ(workspace({"runs", "prune", "--json"}).json()["runs"].size(), 1u) << "the other one's are still there";

  EXPECT_EQ(workspace({"runs", "archive", "small"}).code, 0);
  EXPECT_EQ(workspace({"runs", "list", "--json"}).json()["runs"].size(), 1u);
  EXPECT_EQ(workspace({"runs", "list", "--archived", "--json"}).json()["runs"].size(), 2u);
  EXPECT_EQ(workspace({"runs", "archive", "small", "--undo"}).code, 0);
  EXPECT_EQ(workspace({"runs", "delete", "small"}).code, 0);
  EXPECT_EQ(workspace({"runs", "list", "--json"}).json()["runs"].size(), 1u);
  EXPECT_EQ(workspace({"train", workspace.config(), "--resume"}).code, 3) << "it is in the trash";
  fs::rename(workspace / "trash", workspace / "elsewhere");
  const Answer gone = workspace({"runs", "restore", "small"});
  EXPECT_EQ(gone.code, 1);
  EXPECT_NE(gone.err.find("not in the trash"), std::string::npos) << gone.err;
  fs::rename(workspace / "elsewhere", workspace / "trash");
  EXPECT_EQ(workspace({"runs", "restore", "small"}).code, 0);
  EXPECT_EQ(workspace({"runs", "delete", "small", "--purge"}).code, 3) << "only with --yes";
  EXPECT_EQ(workspace({"runs", "delete", "small", "--purge", "--yes"}).code, 0);
  EXPECT_EQ(workspace({"runs", "show", "small"}).code, 2);
}

TEST(Steer, TheQueueIsWorkedOffOneByOne) {
  const Workspace workspace;
  for (const char* seed : {"1", "2", "3"})
    ASSERT_EQ(
        workspace({"queue", "add", workspace.config(), "--seed", seed, "--set", std::string("name=q") + seed}).code, 0);
  const Json queue = workspace({"queue", "list", "--json"}).json()["queue"];
  ASSERT_EQ(queue.size(), 3u);
  const std::string last = std::to_string(queue[2]["entry"].get<int>()),
                    second = std::to_string(queue[1]["entry"].get<int>());
  EXPECT_EQ(workspace({"queue", "move", last, "--to", "1", "--json"}).json()["queue"][0]["name"], "q3");
  EXPECT_EQ(workspace({"queue", "remove", second, "--json"}).json()["queue"].size(), 2u);
  EXPECT_EQ(workspace({"queue", "remove", second}).code, 2);
  EXPECT_EQ(workspace({"queue", "add", workspace.config(), "--set", "train.tokens=1"}).code, 2);
  const Json jobs = workspace({"queue", "run", "--json", "--quiet"}).json()["jobs"];
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0]["name"], "q3");
  EXPECT_EQ(jobs[1]["state"], "finished");
  EXPECT_TRUE(workspace({"queue", "list", "--json"}).json()["queue"].empty());
}

}  // namespace
}  // namespace stacklab::cli
