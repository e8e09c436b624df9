#include <nlohmann/json.hpp>

#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

TEST(Commands, Version) {
  const Answer answer = stacklab({"--version"});
  EXPECT_EQ(answer.code, 0);
  EXPECT_TRUE(answer.out.starts_with("stacklab 0.")) << answer.out;
  EXPECT_EQ(answer.err, "");
}

// --json is one document, whatever is asked.
TEST(Commands, VersionHelpAndCompletionAreJsonToo) {
  EXPECT_TRUE(stacklab({"--version", "--json"}).json()["version"].get<std::string>().starts_with("0."));
  const Json help = stacklab({"corpus", "add", "--help", "--json"}).json();
  EXPECT_EQ(help["command"], (std::vector<std::string>{"stacklab", "corpus", "add"}));
  EXPECT_EQ(help["arguments"][0]["name"], "INPUT");
  EXPECT_EQ(help["arguments"][0]["required"], true);
  EXPECT_GT(stacklab({"--json", "--help"}).json()["commands"].size(), 10u);
  for (const char* shell : {"bash", "zsh", "fish"})
    EXPECT_EQ(stacklab({"completion", shell, "--json"}).json()["script"], stacklab({"completion", shell}).out) << shell;
}

TEST(Commands, HelpOfEveryLevelHasAnExample) {
  for (const std::vector<std::string>& level : std::vector<std::vector<std::string>>{{},
                                                                                     {"train"},
                                                                                     {"params"},
                                                                                     {"doctor"},
                                                                                     {"stop"},
                                                                                     {"pause"},
                                                                                     {"resume"},
                                                                                     {"runs"},
                                                                                     {"runs", "list"},
                                                                                     {"runs", "show"},
                                                                                     {"runs", "export"},
                                                                                     {"bench"},
                                                                                     {"bench", "gemm"},
                                                                                     {"plan"},
                                                                                     {"plan", "memory"},
                                                                                     {"corpus"},
                                                                                     {"corpus", "list"},
                                                                                     {"corpus", "get"},
                                                                                     {"corpus", "make"},
                                                                                     {"corpus", "licence"},
                                                                                     {"corpus", "remove"},
                                                                                     {"tokenizer"},
                                                                                     {"tokenizer", "train"},
                                                                                     {"tokenizer", "encode"},
                                                                                     {"tokenizer", "decode"},
                                                                                     {"tokenizer", "inspect"},
                                                                                     {"tokenizer", "import"}}) {
    std::vector<std::string> words = level;
    words.push_back(level.size() == 1 ? "-h" : "--help");
    const Answer answer = stacklab(words);
    std::string command = "stacklab";
    for (const std::string& word : level) command += " " + word;
    EXPECT_EQ(answer.code, 0) << command;
    EXPECT_NE(answer.out.find("usage: " + command), std::string::npos) << answer.out;
    EXPECT_NE(answer.out.find("\nexample:\n  stacklab "), std::string::npos) << answer.out;
    EXPECT_NE(answer.out.find("--workspace DIR"), std::string::npos);
    EXPECT_EQ(answer.err, "");
  }
}

TEST(Commands, WrongUsage) {
  const std::pair<std::vector<std::string>, std::string_view> cases[] = {
      {{}, "needs a command"},
      {{"trian"}, "unknown command \"trian\" (did you mean \"train\"?)"},
      {{"xyzzy"}, "unknown command \"xyzzy\" (see: stacklab --help)"},
      {{"runs"}, "needs a command: list, show, export"},
      {{"runs", "lst"}, "(did you mean \"list\"?)"},
      {{"runs", "show"}, "needs ID"},
      {{"train"}, "stacklab train needs CONFIG"},
      {{"train", "a", "b"}, "\"b\" is one argument too many"},
      {{"train", "--max-step", "3", "x"}, "unknown option --max-step (did you mean \"--max-steps\"?)"},
      {{"train", "--max-steps"}, "--max-steps needs a value"},
      {{"train", "--max-steps", "many", "x"}, "--max-steps: \"many\" is not a whole number"},
      {{"train", "--max-steps", "1.5", "x"}, "--max-steps: \"1.5\""},
      {{"train", "--max-steps", "99999999999999999999", "x"}, "--max-steps"},
      {{"train", experiments + "first-run.json", "--max-steps", "0"}, "less than one step"},
      {{"--verson"}, "(did you mean \"--version\"?)"},
      {{"doctor", "now"}, "\"now\" is one argument too many"},
      {{"doctor", "--wrkspace=x"}, "unknown option --wrkspace (did you mean \"--workspace\"?)"},
      {{"doctor", "-x"}, "unknown option -x"},
      {{"", "doctor"}, "unknown command \"\""},
  };
  for (const auto& [words, message] : cases) {
    const Answer answer = stacklab(words);
    EXPECT_EQ(answer.code, 2) << message;
    EXPECT_EQ(answer.out, "");
    EXPECT_TRUE(answer.err.starts_with("error: ")) << answer.err;
    EXPECT_NE(answer.err.find(message), std::string::npos) << answer.err;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
  }
}

TEST(Commands, WrongUsageAsJson) {
  const Answer answer = stacklab({"trian", "--json"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_EQ(answer.json()["error"], "unknown command \"trian\"");
  EXPECT_EQ(answer.json()["remedy"], "did you mean \"train\"?");
}

TEST(Commands, OptionsBeforeAndAfterTheCommand) {
  const Answer before = stacklab({"--json", "doctor"}), after = stacklab({"doctor", "--json"});
  EXPECT_EQ(before.json()["fingerprint"], after.json()["fingerprint"]);
}

TEST(Doctor, TellsWhatIsHere) {
  const Answer answer = stacklab({"doctor", "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const Json json = answer.json();
  EXPECT_FALSE(json["cpu"].get<std::string>().empty());
  EXPECT_TRUE(json["gpus"].is_array());
  EXPECT_FALSE(json["gpu_note"].get<std::string>().empty());
  EXPECT_TRUE(json["libraries"].contains("SQLite"));
  EXPECT_EQ(json["fingerprint"].get<std::string>().size(), 16u);
  EXPECT_GT(json["memory_total"].get<std::int64_t>(), json["memory_free"].get<std::int64_t>());
  EXPECT_GT(json["disk_free"].get<std::int64_t>(), 0);
  EXPECT_GE(json["threads"].get<int>(), 1);
  EXPECT_FALSE(json["devices"].empty());
  EXPECT_FALSE(json["os"].get<std::string>().empty());
  EXPECT_EQ(json["environment"]["cpu"], json["cpu"]);
  for (const char* field : {"isa", "device", "threads", "compiler", "version", "library.SQLite"})
    EXPECT_FALSE(json["environment"][field].get<std::string>().empty()) << field;
  const Answer text = stacklab({"doctor"});
  EXPECT_NE(text.out.find(json["fingerprint"]), std::string::npos);
}

TEST(Corpora, ListAndGet) {
  const Workspace workspace;
  const Json list = workspace({"corpus", "list", "--json"}).json();
  bool kjv = false;
  for (const Json& one : list["corpora"]) kjv |= one["name"] == "kjv" && one["licence"] == "public domain";
  EXPECT_TRUE(kjv) << list;
  EXPECT_EQ(list["corpora"].back()["name"], "sample");
  EXPECT_EQ(list["corpora"].back()["source"], "workspace");

  const Answer got = workspace({"corpus", "get", "sample", "--json"});
  ASSERT_EQ(got.code, 0) << got.err;
  const Json json = got.json();
  EXPECT_EQ(json["name"], "sample");
  EXPECT_EQ(json["documents"], 40);
  EXPECT_EQ(json["sha256"].get<std::string>().size(), 64u);
  EXPECT_GT(json["bytes"].get<std::int64_t>(), 1000);
  EXPECT_NE(std::find(json["files"].begin(), json["files"].end(), "manifest.json"), json["files"].end());

  EXPECT_TRUE(json["sources"].is_array());
  EXPECT_EQ(workspace({"corpus", "licence", "sample"}).out, "public domain\n");

  const Answer asked = workspace({"corpus", "remove", "sample"});
  EXPECT_EQ(asked.code, 3);
  EXPECT_NE(asked.err.find("--yes"), std::string::npos) << asked.err;
  EXPECT_TRUE(std::filesystem::exists(workspace / "data/sample"));
  for (const auto& words :
       {std::vector<std::string>{"corpus", "remove", "sampel"}, {"corpus", "remove", "sampel", "--yes"}}) {
    const Answer misspelt = workspace(words);
    EXPECT_EQ(misspelt.code, 2) << misspelt.err;
    EXPECT_NE(misspelt.err.find("\"sample\""), std::string::npos) << misspelt.err;
  }
  EXPECT_EQ(workspace({"corpus", "remove", "sample", "--yes", "--json"}).json()["removed"], "sample");
  EXPECT_FALSE(std::filesystem::exists(workspace / "data/sample"));

  const Answer unknown = workspace({"corpus", "get", "kjw"});
  EXPECT_NE(unknown.code, 0);
  EXPECT_NE(unknown.err.find("kjv"), std::string::npos) << unknown.err;
}

TEST(Corpora, MakeTinyWorld) {
  const Workspace workspace;
  const std::vector<std::string> words = {"corpus",
                                          "make",
                                          "tinyworld",
                                          "--people",
                                          "300",
                                          "--documents",
                                          "200",
                                          "--seed",
                                          "7",
                                          "--streams",
                                          "documents:3,drills:1",
                                          "--name",
                                          "small",
                                          "--json"};
  const Answer made = workspace(words);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.json()["documents"], 200);
  EXPECT_EQ(made.json()["name"], "small");
  EXPECT_EQ(made.json()["sources"][0]["version"], "seed 7, people 300, items 200, streams documents:3,drills:1");
  EXPECT_EQ(workspace(words).json()["sha256"], made.json()["sha256"]);
  std::vector<std::string> other = words;
  other[8] = "8";
  EXPECT_EQ(workspace(other).code, 3);
  other.push_back("--yes");
  EXPECT_NE(workspace(other).json()["sha256"], made.json()["sha256"]);
  const Answer library = workspace(
      {"corpus", "make", "tinyworld", "--size", "300", "--streams", "library", "--name", "library", "--json"});
  EXPECT_GT(library.json()["documents"], 30) << library.err;
  EXPECT_NE(workspace({"corpus", "make", "tinyworld", "--streams", "dokuments"}).err.find("documents"),
            std::string::npos);
  EXPECT_EQ(workspace({"corpus", "make", "bigworld"}).code, 2);
  EXPECT_EQ(workspace({"corpus", "make", "tinyworld", "--people", "5"}).code, 2);
}

TEST(Output, ReadersThatGoAwayAreNoFault) {
  const Answer answer = shell(program + " --help | head -n 1; " + program + " doctor --json | true");
  EXPECT_EQ(answer.err, "");
  EXPECT_EQ(std::count(answer.out.begin(), answer.out.end(), '\n'), 1);
}

TEST(Output, AFullDiskIsAFault) {
  const Answer answer = shell(program + " doctor > /dev/full");
  EXPECT_EQ(answer.code, 1);
  EXPECT_NE(answer.err.find("cannot write to standard output"), std::string::npos) << answer.err;
}

TEST(Output, ClosedStreamsHarmNothing) {
  const Workspace workspace;
  // Were the numbers of the closed streams given to the store's files, messages would be written into it.
  const Answer answer = shell("exec " + program + " train " + workspace.config() + " --workspace " +
                              workspace.path().string() + " 0<&- 1>&- 2>&-");
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(workspace({"runs", "show", "small", "--json"}).json()["state"], "finished");
}

TEST(Runs, EmptyAndMissingWorkspaces) {
  const TemporaryFolder folder;
  for (const std::string& workspace : {folder.path().string(), (folder / "missing").string()}) {
    const Answer answer = stacklab({"runs", "list", "--workspace", workspace});
    EXPECT_EQ(answer.code, 1);
    EXPECT_NE(answer.err.find(workspace), std::string::npos) << answer.err;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "missing")) << "looking makes nothing";
}

TEST(Runs, AWrongFilterIsWrongUsageAndSaysWhere) {
  const Answer answer = stacklab({"runs", "list", "--filter", "lr > 1e-4 and los < 3"});
  EXPECT_EQ(answer.code, 2);
  EXPECT_NE(answer.err.find("nothing is called \"los\" (at \"los\", character 15) (did you mean \"loss\"?)"),
            std::string::npos)
      << answer.err;
}

TEST(Runs, PlacesInTheListAreNotBelowZero) {
  for (const char* option : {"--limit", "--offset"}) {
    const Answer answer = stacklab({"runs", "list", option, "-1"});
    EXPECT_EQ(answer.code, 2);
    EXPECT_NE(answer.err.find(std::string(option) + ": -1 is below 0"), std::string::npos) << answer.err;
  }
}

TEST(Common, WorkspaceFromTheEnvironment) {
  const TemporaryFolder folder;
  const Answer answer = run_words({program, "runs", "list"}, {{"STACKLAB_WORKSPACE", (folder / "here").string()}});
  EXPECT_NE(answer.err.find("/here"), std::string::npos) << answer.err;
  const Answer given = run_words({program, "runs", "list", "--workspace", (folder / "there").string()},
                                 {{"STACKLAB_WORKSPACE", (folder / "here").string()}});
  EXPECT_NE(given.err.find("/there"), std::string::npos) << given.err;
}

}  // namespace
}  // namespace stacklab::cli
