// What commands that make files leave behind when they are ended by force at any instant: the whole, or nothing.
#include <nlohmann/json.hpp>
#include <random>

#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

namespace fs = std::filesystem;

struct Making {
  std::vector<std::string> command;
  fs::path made;
  std::vector<std::string> look;  // succeeds when what was made is whole
};

double seconds_of(const std::function<void()>& what) {
  const auto begin = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

TEST(KillFiles, WhatIsMadeIsWholeOrAbsent) {
  const Workspace workspace;
  std::string text;
  std::mt19937 letters(3);
  for (int i = 0; i < 400000; ++i) text += "word" + std::to_string(letters() % 5000) + (i % 40 == 0 ? "\n\n" : " ");
  put_file(workspace / "letters.txt", text);
  const std::string own = (workspace / "letters.txt").string();
  const std::vector<Making> all = {
      {{"corpus", "add", own, "--name", "own", "--separator", "blank-line"},
       workspace / "data/own",
       {"tokenizer", "train", "--input", (workspace / "data/own").string(), "--vocab", "300", "--yes", "--out",
        (workspace / "scratch").string()}},
      {{"corpus", "make", "tinyworld", "--documents", "2000", "--name", "world"},
       workspace / "data/world",
       {"tokenizer", "train", "--input", (workspace / "data/world").string(), "--vocab", "300", "--yes", "--out",
        (workspace / "scratch").string()}},
      {{"tokenizer", "train", "--input", own, "--vocab", "2000", "--out", (workspace / "tokenizers/t").string()},
       workspace / "tokenizers/t",
       {"tokenizer", "inspect", (workspace / "tokenizers/t").string()}},
      {{"data", "build", own, "--out", (workspace / "built/shards").string()},
       workspace / "built/shards",
       {"data", "inspect", (workspace / "built/shards").string()}}};
  for (const Making& making : all) {
    SCOPED_TRACE(making.command[0] + " " + making.command[1]);
    const auto again = [&] {
      const Answer answer = workspace(making.command);
      ASSERT_EQ(answer.code, 0) << answer.err;
      ASSERT_EQ(workspace(making.look).code, 0);
    };
    double whole = 0;
    whole = seconds_of([&] { ASSERT_EQ(workspace(making.command).code, 0); });
    const std::vector<std::string> names = names_in(making.made.parent_path());
    for (unsigned seed = 1; seed <= 8; ++seed) {
      fs::remove_all(making.made);
      std::mt19937 random(seed);
      const double share = std::uniform_real_distribution<double>(0.05, 1)(random);
      {
        Child child(workspace.words(making.command), workspace.path());
        std::this_thread::sleep_for(std::chrono::duration<double>(share * whole));
        child.send(SIGKILL);
        child.wait();
      }
      if (!fs::exists(making.made)) continue;
      const Answer look = workspace(making.look);
      EXPECT_EQ(look.code, 0) << "seed " << seed << ", share " << share << ": " << look.err;
    }
    fs::remove_all(making.made);
    again();
    EXPECT_EQ(names_in(making.made.parent_path()), names) << "nothing of the dead is left";
  }
}

// Whatever was in hand reads lost and goes on by a person's word; what waited still waits.
TEST(KillFiles, AQueueGoesOnWhereItWasKilled) {
  const Workspace workspace;
  workspace.write_config(48);
  for (unsigned seed = 1; seed <= 6; ++seed) {
    const std::string first = std::to_string(2 * seed), second = std::to_string(2 * seed + 1);
    for (const std::string& s : {first, second})
      ASSERT_EQ(workspace({"queue", "add", workspace.config(), "--seed", s}).code, 0);
    {
      Child child(workspace.words({"queue", "run", "--quiet"}), workspace.path());
      std::mt19937 random(seed);
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::uniform_real_distribution<double>(0, 0.6)(random)));
      child.send(SIGKILL);
      child.wait();
    }
    const Json listed = workspace({"runs", "list", "--json"}).json();
    for (const Json& run : listed["runs"]) {
      EXPECT_TRUE(run["state"] == "lost" || run["state"] == "finished") << run["state"];
      if (run["state"] == "lost") {
        const Answer answer = workspace({"resume", run["id"]});
        EXPECT_EQ(answer.code, 0) << answer.err;
      }
    }
    const Answer rest = workspace({"queue", "run", "--quiet"});
    EXPECT_EQ(rest.code, 0) << rest.err;
    const Json after = workspace({"runs", "list", "--json"}).json();
    EXPECT_EQ(after["runs"].size(), 2u * seed);
    for (const Json& run : after["runs"]) EXPECT_EQ(run["state"], "finished") << run["id"];
  }
}

}  // namespace
}  // namespace stacklab::cli
