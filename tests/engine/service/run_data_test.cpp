// Runs and their data: tokenizers, mixtures, one's own files, shards that are made once.
#include "engine/service/run_data.h"

#include <algorithm>
#include <cmath>

#include "engine/base/thread_team.h"
#include "engine/service/data_builds.h"
#include "engine/tokenizer/tokenizer_json.h"
#include "engine/tokenizer/trainer.h"
#include "tests/engine/service/service_testing.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

class RunData : public testing::Test {
 protected:
  RunData() {
    for (const char* name : {"sample", "other"}) static_cast<void>(must(make_sample(name, workspace())));
  }
  fs::path workspace() const { return folder_.path() / "workspace"; }

  std::unique_ptr<JobService> open() {
    return must(open_job_service(workspace(), {[](std::string_view name, const fs::path& where, const CorpusProgress&,
                                                  std::stop_token) -> Result<Corpus> {
                                                 if (!fs::exists(where / "data" / name))
                                                   return usage_error("no corpus " + std::string(name));
                                                 return Corpus::open(where / "data" / name);
                                               },
                                               train}));
  }
  JobOutcome run(const RunConfig& config, const SubmitOptions& options = {}) {
    auto service = open();
    return service->wait(service->submit(config, options), 250).value();
  }
  std::vector<SeriesPoint> series(const RunId& run, const char* metric) {
    auto service = open();
    return must(must(service->reader())->series(run, metric, 0, 1000));
  }

  void learn_tokenizer(const fs::path& folder, std::int64_t vocabulary) {
    const Corpus text = must(make_sample("sample", workspace()));
    TokenizerTraining training;
    training.vocabulary_size = vocabulary;
    std::size_t i = 0;
    ThreadTeam team(1);
    const auto next = [&](std::string_view& document) -> Result<bool> {
      if (i == text.size()) return false;
      const auto bytes = text.document(i++);
      document = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
      return true;
    };
    const auto learnt = must(train_tokenizer(training, next, team, [](auto, auto, auto) {}, {}));
    ASSERT_TRUE(write_tokenizer(folder, learnt.model, {}));
  }

  TemporaryFolder folder_;
};

TEST_F(RunData, ALearntTokenizerInARun) {
  learn_tokenizer(workspace() / "tokenizers/small", 290);
  RunConfig config = tiny_config();
  config.data.tokenizer = "small";
  // The message says the real size.
  const JobOutcome refused = run(config);
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->kind, Error::Kind::usage);
  EXPECT_EQ(refused.error->message(),
            "model.vocab_size: 256 does not cover the 290 tokens of the tokenizer small (set it to 290)");
  config.model.vocab_size = 290;
  const JobOutcome outcome = run(config);
  ASSERT_FALSE(outcome.error) << outcome.error->message();
  EXPECT_EQ(outcome.state, RunState::finished);
  EXPECT_LT(outcome.loss, outcome.first_loss);
  const auto bpb = series(outcome.run, "val_bpb"), loss = series(outcome.run, "val_loss");
  ASSERT_EQ(bpb.size(), loss.size());
  EXPECT_EQ(outcome.val_bpb, bpb.back().value);
  // Several bytes a token: fewer bits per byte than the bits per token.
  EXPECT_GT(outcome.val_bpb, 0);
  EXPECT_LT(outcome.val_bpb, outcome.val_loss / std::log(2.0));

  RunConfig missing = config;
  missing.data.tokenizer = "smal";
  EXPECT_NE(run(missing).error->remedy.find("\"small\""), std::string::npos) << run(missing).error->message();
}

TEST_F(RunData, OfBytesTheBitsPerByteAreTheLossItself) {
  const JobOutcome outcome = run(tiny_config());
  ASSERT_FALSE(outcome.error) << outcome.error->message();
  EXPECT_DOUBLE_EQ(outcome.val_bpb, outcome.val_loss / std::log(2.0));
}

TEST_F(RunData, ShardsAreMadeOnceAndReadEverAfter) {
  ASSERT_FALSE(run(tiny_config("one")).error);
  ASSERT_EQ(std::distance(fs::directory_iterator(workspace() / "shards"), fs::directory_iterator()), 1);
  const fs::path folder = fs::directory_iterator(workspace() / "shards")->path();
  const auto made = fs::last_write_time(folder / "manifest.json");
  // The text is not even needed.
  fs::remove(workspace() / "data/sample/documents.bin");
  const JobOutcome second = run(tiny_config("two", 2));
  ASSERT_FALSE(second.error) << second.error->message();
  EXPECT_EQ(fs::last_write_time(folder / "manifest.json"), made);
  // A damaged shard is named, and can be had again.
  put_file(folder / "train-00000.bin", "damaged");
  const JobOutcome damaged = run(tiny_config("three", 3));
  ASSERT_TRUE(damaged.error);
  EXPECT_NE(damaged.error->what.find((folder / "train-00000.bin").string()), std::string::npos) << damaged.error->what;
}

TEST_F(RunData, AMixtureInterruptedOrNot) {
  RunConfig config = tiny_config();
  config.data.mixture = "sample:3,other";
  const JobOutcome whole = run(config);
  ASSERT_FALSE(whole.error) << whole.error->message();
  const auto expected = series(whole.run, "loss");
  const fs::path straight = workspace();
  fs::rename(straight / "stacklab.db", folder_ / "gone.db");
  fs::remove_all(straight / "runs");
  for (const char* side : {"stacklab.db-wal", "stacklab.db-shm"}) fs::remove(straight / side);
  JobOutcome part;
  for (const std::int64_t until : {3, 11, 0})
    part = run(config, {.resume = true, .max_steps = until, .fallback_corpus = {}});
  ASSERT_FALSE(part.error) << part.error->message();
  const auto found = series(part.run, "loss");
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].value, expected[i].value) << i;

  config.data.mixture = "sample,another";
  EXPECT_EQ(run(config).error->what, "no corpus another");
}

// Text and tokenizer by their paths: taken into the workspace, which then can be moved.
TEST_F(RunData, OnesOwnFilesAndNothingLeadsOutOfTheWorkspace) {
  learn_tokenizer(folder_ / "elsewhere/mine", 270);
  std::string text;
  for (int i = 0; i < 60; ++i) text += "{\"text\": \"line " + std::to_string(i) + " of my own letters, all alike\"}\n";
  put_file(folder_ / "elsewhere/my letters.jsonl", text);
  RunConfig config = tiny_config();
  config.model.vocab_size = 270;
  config.data.corpus = (folder_ / "elsewhere/my letters.jsonl").string();
  config.data.tokenizer = (folder_ / "elsewhere/mine").string();
  const JobOutcome outcome = run(config);
  ASSERT_FALSE(outcome.error) << outcome.error->message();
  const std::string stored = must(must(open()->reader())->run(outcome.run)).config_json;
  EXPECT_NE(stored.find("\"my-letters-"), std::string::npos) << stored;
  EXPECT_NE(stored.find("\"mine-"), std::string::npos);
  for (const auto& entry : fs::recursive_directory_iterator(workspace())) {
    if (entry.is_regular_file()) {
      EXPECT_EQ(file_text(entry.path()).find(folder_.path().string()), std::string::npos) << entry.path();
    }
  }
  // The same files again are the same run.
  const JobOutcome again = run(config, {.resume = true, .max_steps = 0, .fallback_corpus = {}});
  EXPECT_EQ(again.run, outcome.run);
  EXPECT_TRUE(again.already_finished);
  fs::rename(workspace(), folder_ / "moved");
  config.data.corpus = fs::directory_iterator(folder_ / "moved/shards")->path().filename();  // any name: it is not read
  config.data.corpus.resize(config.data.corpus.rfind('-'));
  config.data.tokenizer = fs::directory_iterator(folder_ / "moved/tokenizers")->path().filename();
  auto service = must(open_job_service(
      folder_ / "moved",
      {[](auto, const auto&, const auto&, auto) -> Result<Corpus> { return failed("nothing is fetched"); }, train}));
  config.train.seed = 5;
  const JobOutcome moved = service->wait(service->submit(config, {}), 250).value();
  EXPECT_FALSE(moved.error) << moved.error->message();

  config.data.corpus = "./nowhere.txt";
  const JobOutcome missing = service->wait(service->submit(config, {}), 250).value();
  ASSERT_TRUE(missing.error);
  EXPECT_NE(missing.error->what.find("data.corpus: there is no file ./nowhere.txt"), std::string::npos)
      << missing.error->what;
}

TEST_F(RunData, RecipesAreBuiltAndLookedAt) {
  put_file(folder_ / "exam.txt", "what is held out");
  put_file(folder_ / "posts.jsonl",
           "{\"body\": {\"en\": \"hello there\"}}\n{\"body\": {\"en\": \"\"}}\n{\"body\": {\"en\": \"more\"}}\n");
  put_file(
      folder_ / "recipe.json",
      R"({"sources": ["sample", {"path": "posts.jsonl", "field": "body.en", "weight": 2}], "held_out": ["exam.txt"],
               "validation_fraction": 0.1, "shard_tokens": 500})");
  const DataRecipe recipe = must(recipe_of((folder_ / "recipe.json").string(), workspace()));
  const auto built = must(build_data(workspace(), recipe, folder_ / "out", 2, {}, {}));
  EXPECT_EQ(built.manifest.sources.size(), 3u);
  EXPECT_EQ(built.manifest.documents(ShardRole::train) + built.manifest.documents(ShardRole::held_out), 40 + 2 + 1);
  const auto seen = must(inspect_data(folder_ / "out", 2, 2, {}, {}));
  EXPECT_FALSE(seen.fault) << seen.fault->message();
  EXPECT_TRUE(std::ranges::any_of(seen.samples, [](const ShardSample& s) { return s.text == "what is held out"; }));
  EXPECT_EQ(seen.manifest.corpus_hash(), built.manifest.corpus_hash());
  EXPECT_EQ(must(build_data(workspace(), recipe, folder_ / "again", 1, {}, {})).manifest.corpus_hash(),
            built.manifest.corpus_hash());
  EXPECT_FALSE(build_data(workspace(), recipe, folder_ / "out", 2, {}, {})) << "it exists";
  fs::resize_file(folder_ / "out/train-00001.bin", 100);
  EXPECT_NE(must(inspect_data(folder_ / "out", 2, 2, {}, {})).fault->what.find("train-00001.bin"), std::string::npos);
}

// A recipe, and the folder that was built from it, are what a run can read.
TEST_F(RunData, ARunReadsARecipeOrItsShards) {
  put_file(folder_ / "exam.txt", "what is held out, and long enough for a row or two of the model");
  put_file(folder_ / "mix.json", R"({"sources": ["sample", {"corpus": "other", "weight": 2}], "held_out": ["exam.txt"],
                                     "validation_fraction": 0})");
  RunConfig config = tiny_config();
  config.data.corpus = (folder_ / "mix.json").string();
  const JobOutcome first = run(config);
  ASSERT_FALSE(first.error) << first.error->message();
  EXPECT_GT(first.val_loss, 0) << "of the exam";
  const DataRecipe recipe = must(recipe_of(config.data.corpus, workspace()));
  static_cast<void>(must(build_data(workspace(), recipe, folder_ / "built", 1, {}, {})));
  config.data.corpus = (folder_ / "built").string();
  config.name = "again";
  const JobOutcome second = run(config);
  ASSERT_FALSE(second.error) << second.error->message();
  EXPECT_EQ(second.loss, first.loss);
  EXPECT_EQ(second.val_loss, first.val_loss);
  config.data.tokenizer = "other";
  EXPECT_NE(run(config).error->message().find("are of bytes (set it to bytes)"), std::string::npos)
      << run(config).error->message();
}

// What is damaged is named where it lies and never copied; a copy that was damaged is made again from its source.
TEST_F(RunData, OfDamagedFilesNoCopyIsKept) {
  learn_tokenizer(folder_ / "elsewhere/mine", 270);
  std::string text;
  for (int i = 0; i < 60; ++i) text += "line " + std::to_string(i) + " of my own letters, all alike\n";
  put_file(folder_ / "letters.txt", text);
  const auto take_in = [&](RunConfig config) -> Result<RunConfig> {
    if (Status taken = take_in_corpus(config, workspace(), {}, {}); !taken) return tl::unexpected(taken.error());
    if (Status taken = take_in_tokenizer(config, workspace()); !taken) return tl::unexpected(taken.error());
    return config;
  };
  DataRecipe recipe = must(recipe_of("sample", workspace()));
  recipe.tokenizer = (folder_ / "elsewhere/mine").string();
  static_cast<void>(must(build_data(workspace(), recipe, folder_ / "built", 1, {}, {})));

  RunConfig config = tiny_config();
  config.data.corpus = (folder_ / "built").string();
  config.data.tokenizer = (folder_ / "elsewhere/mine").string();
  for (const char* name : {"train-00000.bin", "tokenizer.json"}) {
    const fs::path shard = folder_ / "built" / name;
    const std::string whole = file_text(shard);
    std::string changed = whole;
    changed[changed.size() / 2] ^= 1;
    for (const std::string& damage : {changed, whole.substr(0, 100)}) {
      put_file(shard, damage);
      const auto refused = take_in(config);
      ASSERT_FALSE(refused) << name;
      EXPECT_NE(refused.error().what.find(shard.string()), std::string::npos) << refused.error().what;
      EXPECT_FALSE(fs::exists(workspace() / "shards"));
    }
    put_file(shard, whole);
  }
  const RunConfig taken = must(take_in(config));
  const RunConfig letters = [&] {
    RunConfig own = config;
    own.data.corpus = (folder_ / "letters.txt").string();
    return must(take_in(own));
  }();
  const std::pair<fs::path, std::string> copies[] = {
      {workspace() / "shards" / taken.data.corpus / "train-00000.bin", (folder_ / "built").string()},
      {workspace() / "tokenizers" / taken.data.tokenizer / "tokenizer.json", (folder_ / "built").string()},
      {workspace() / "data" / letters.data.corpus / "documents.bin", (folder_ / "letters.txt").string()}};
  for (const auto& [copy, source] : copies) {
    const std::string whole = file_text(copy);
    for (const std::string& damage : {whole.substr(0, whole.size() / 2), std::string()}) {
      put_file(copy, damage);
      RunConfig again = config;
      again.data.corpus = source;
      must(take_in(again));
      EXPECT_EQ(file_text(copy), whole) << copy;
    }
  }
}

TEST_F(RunData, MistakesInRecipesAreNamed) {
  const auto error = [&](const std::string& json) {
    const auto recipe = parse_recipe(json, "r.json", folder_.path());
    EXPECT_FALSE(recipe) << json;
    return recipe ? std::string() : recipe.error().message();
  };
  EXPECT_NE(error("{").find("r.json: is not JSON"), std::string::npos);
  EXPECT_NE(error("[]").find("is not a JSON object"), std::string::npos);
  EXPECT_NE(error("{}").find("\"sources\" names nothing"), std::string::npos);
  EXPECT_NE(error(R"({"source": ["kjv"]})").find("unknown key \"source\" (did you mean \"sources\"?)"),
            std::string::npos);
  EXPECT_NE(error(R"({"sources": "kjv"})").find("it must be a list"), std::string::npos);
  EXPECT_NE(error(R"({"sources": [{"corpus": "kjv", "wieght": 2}]})").find("did you mean \"weight\"?"),
            std::string::npos);
  EXPECT_NE(error(R"({"sources": [{"corpus": "kjv", "weight": 0}]})").find("\"sources.weight\" is 0"),
            std::string::npos);
  EXPECT_NE(error(R"({"sources": [{"corpus": "kjv", "path": "a"}]})").find("neither or both"), std::string::npos);
  EXPECT_NE(error(R"({"sources": ["kjv"], "sources": ["kjv"]})").find("\"sources\" twice"), std::string::npos);
  EXPECT_NE(error(R"({"sources": ["kjv"], "validation_fraction": 2})").find("from 0 to 0.9"), std::string::npos);
  EXPECT_NE(error(R"({"sources": ["kjv"], "shard_tokens": 1.5})").find("a whole number"), std::string::npos);
  EXPECT_NE(error(std::string(100000, '[')).find("r.json"), std::string::npos);
  // A message that shows the value would walk down all of it.
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  EXPECT_NE(error(R"({"sources": ["kjv"], "tokenizer": )" + deep + "}").find("nested deeper than"), std::string::npos);
}

}  // namespace
}  // namespace stacklab
