#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/base/text.h"
#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

std::vector<std::string> candidates(std::vector<std::string> words) {
  words.insert(words.begin(), {"completion", "candidates"});
  const Answer answer = stacklab(words);
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.err, "");
  std::vector<std::string> found;
  for (const std::string& line : split(answer.out, '\n'))
    if (!line.empty()) found.push_back(line.substr(0, line.find('\t')));
  return found;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

TEST(Completion, CommandsOptionsAndValues) {
  EXPECT_TRUE(has(candidates({""}), "train"));
  EXPECT_EQ(candidates({"tr"}), std::vector<std::string>{"train"});
  EXPECT_TRUE(has(candidates({"corpus", ""}), "list"));
  EXPECT_FALSE(has(candidates({"corpus", ""}), "train"));
  EXPECT_TRUE(has(candidates({"train", "x.json", "--"}), "--resume"));
  EXPECT_TRUE(has(candidates({"train", "x.json", "--"}), "--workspace"));
  EXPECT_TRUE(has(candidates({"train", ""}), ":files"));
  EXPECT_EQ(candidates({"train", "--device", "cu"}), (std::vector<std::string>{"cuda", "cuda-emulated"}));
  EXPECT_EQ(candidates({"train", "--device=cp"}), (std::vector<std::string>{"--device=cpu"}));
  EXPECT_TRUE(candidates({"train", "--max-steps", ""}).empty()) << "a number: nothing to offer";
  EXPECT_TRUE(candidates({"nonsense", "more", ""}).size() > 5) << "still the commands";
}

TEST(Completion, KeysAndTheirValues) {
  const auto keys = candidates({"train", "c.json", "--set", "optim.mu"});
  EXPECT_TRUE(has(keys, "optim.muon_lr="));
  EXPECT_TRUE(has(keys, ":nospace"));
  EXPECT_EQ(candidates({"train", "--set", "model.qk_norm="}),
            (std::vector<std::string>{"model.qk_norm=true", "model.qk_norm=false"}));
  EXPECT_EQ(candidates({"train", "--set", "train.precision=f"}),
            (std::vector<std::string>{"train.precision=fp32", "train.precision=fp64"}));
}

TEST(Completion, WhatTheWorkspaceHolds) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"train", workspace.config(), "--quiet", "--max-steps", "1"}).code, 0);
  const std::string folder = workspace.path().string();
  const auto runs = candidates({"resume", "--workspace", folder, ""});
  EXPECT_TRUE(has(runs, "small"));
  EXPECT_EQ(runs.size(), 2u) << "its name and its id";
  EXPECT_TRUE(has(candidates({"runs", "show", "--workspace=" + folder, "sm"}), "small"));
  EXPECT_TRUE(has(candidates({"train", "--workspace", folder, "--set", "data.corpus=sam"}), "data.corpus=sample"));
  EXPECT_TRUE(has(candidates({"corpus", "get", "--workspace", folder, ""}), "kjv"));
  // Nothing is made where there is no workspace.
  EXPECT_TRUE(candidates({"resume", "--workspace", folder + "/none", ""}).empty());
  EXPECT_FALSE(std::filesystem::exists(folder + "/none"));
}

// The scripts are what a shell takes; bash is there, the others where they are installed.
TEST(Completion, BashCompletes) {
  const Workspace workspace;
  put_file(workspace / "one file.json", "{}");
  const auto bash = [&](const std::string& line) {
    const Answer answer = run_words({"/bin/bash", "--norc", "-c",
                                     "cd '" + workspace.path().string() + "'; PATH=" + std::string(STACKLAB_BIN_DIR) +
                                         ":$PATH; source <(stacklab completion bash); COMP_LINE='" + line +
                                         "'; COMP_POINT=${#COMP_LINE}; COMP_WORDBREAKS=$' \\t\\n=:'; _stacklab; printf "
                                         "'%s\\n' \"${COMPREPLY[@]}\""});
    EXPECT_EQ(answer.err, "") << line;
    return answer.out;
  };
  EXPECT_EQ(bash("stacklab do"), "doctor\n");
  EXPECT_EQ(bash("stacklab train --set train.precision=b"), "bf16\n") << "only what follows the sign";
  EXPECT_NE(bash("stacklab train --set optim.adam_e").find("optim.adam_eps="), std::string::npos);
  EXPECT_NE(bash("stacklab train one").find("one file.json"), std::string::npos);
  EXPECT_NE(bash("stacklab ").find("train"), std::string::npos);
}

TEST(Completion, EachShellHasAScript) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Answer script = stacklab({"completion", shell});
    EXPECT_EQ(script.code, 0);
    EXPECT_NE(script.out.find("completion candidates"), std::string::npos) << shell;
    if (std::filesystem::exists(std::string("/usr/bin/") + shell)) {
      const TemporaryFolder folder;
      put_file(folder / "script", script.out);
      EXPECT_EQ(run_words({shell, "-n", (folder / "script").string()}).code, 0) << shell;
    }
  }
  EXPECT_EQ(stacklab({"completion", "tcsh"}).code, 2);
}

}  // namespace
}  // namespace stacklab::cli
