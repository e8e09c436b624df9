// The first run of a newcomer, whole: real text, trained by the program itself, ends well below what counting letters
// reaches.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/base/process.h"

namespace stacklab::test {
namespace {

namespace fs = std::filesystem;

class FirstRun : public testing::Test {
 protected:
  FirstRun() {
    std::string pattern = (fs::temp_directory_path() / "stacklab-first-run-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~FirstRun() override {
    std::error_code ec;
    fs::remove_all(folder_, ec);
  }

  ProcessResult stacklab(std::vector<std::string> arguments, const std::string& workspace) const {
    arguments.insert(arguments.begin(), STACKLAB_BIN_DIR "/stacklab");
    arguments.insert(arguments.end(), {"--workspace", (folder_ / workspace).string()});
    const auto result =
        run_process({.arguments = std::move(arguments), .folder = folder_, .environment = {}, .timeout_seconds = 800});
    EXPECT_TRUE(result) << result.error().message();
    return result ? *result : ProcessResult{.exit_code = -1, .output = {}, .errors = {}};
  }
  nlohmann::json train(std::vector<std::string> extra, const std::string& workspace) const {
    std::vector<std::string> arguments = {"train", config(), "--json", "--quiet"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    const ProcessResult r = stacklab(arguments, workspace);
    EXPECT_EQ(r.exit_code, 0) << r.errors;
    return nlohmann::json::parse(r.output, nullptr, false);
  }
  // metric,step,value lines of the losses
  std::vector<std::string> losses(const std::string& run, const std::string& workspace) const {
    std::istringstream csv(stacklab({"runs", "export", run}, workspace).output);
    std::vector<std::string> lines;
    for (std::string line; std::getline(csv, line);)
      if (line.starts_with("loss,")) lines.push_back(line);
    return lines;
  }
  static std::string config() { return STACKLAB_SOURCE_DIR "/experiments/first-run.json"; }

  fs::path folder_;
};

TEST_F(FirstRun, OnTheKingJamesBibleEndsFarBelowTheEntropyOfItsLetters) {
  const ProcessResult corpus = stacklab({"corpus", "get", "kjv"}, "w");
  if (corpus.exit_code != 0) GTEST_SKIP() << "The King James Bible cannot be fetched here: " << corpus.errors;
  const nlohmann::json result = train({}, "w");
  ASSERT_TRUE(result.is_object());
  const double entropy = result.at("unigram_entropy"), val_loss = result.at("val_loss");
  // English in single bytes has about 3 nats (the text's own figure is used); a quarter less is the promise, and the
  // run keeps a margin.
  EXPECT_GT(entropy, 2.5);
  EXPECT_LE(val_loss, 0.75 * entropy);
  EXPECT_LE(val_loss, 0.65 * entropy) << "the promise is kept, its margin is not";
  EXPECT_EQ(result.at("steps"), 1200);
  RecordProperty("val_loss", std::to_string(val_loss));
  std::printf("[ MEASURED ] loss %.4f, validation %.4f, letters %.4f nats per byte: %.1f %% below\n",
              result.at("loss").get<double>(), val_loss, entropy, 100 * (1 - val_loss / entropy));

  // The same again is not trained again.
  const nlohmann::json again = train({"--resume"}, "w");
  EXPECT_EQ(again.at("val_loss"), result.at("val_loss"));
  EXPECT_EQ(again.at("run"), result.at("run"));
}

TEST_F(FirstRun, SameSeedGivesTheSameLossesBitForBit) {
  const std::vector<std::string> short_run = {"--max-steps", "12", "--set", "data.corpus=tinyworld"};
  const auto with_threads = [&](const char* threads) {
    std::vector<std::string> arguments = short_run;
    arguments.insert(arguments.end(), {"--threads", threads});
    return arguments;
  };
  const std::string run = train(with_threads("1"), "a").at("run");
  ASSERT_EQ(train(with_threads("2"), "b").at("run"), run);
  const auto first = losses(run, "a");
  ASSERT_EQ(first.size(), 12u);
  EXPECT_EQ(first, losses(run, "b"));
  std::vector<std::string> other_seed = short_run;
  other_seed.insert(other_seed.end(), {"--seed", "7"});
  const std::string other = train(other_seed, "c").at("run");
  EXPECT_NE(other, run);
  EXPECT_NE(first, losses(other, "c"));
}

}  // namespace
}  // namespace stacklab::test
