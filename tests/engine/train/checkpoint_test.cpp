// Checkpoints: whole, strict, and the same bytes again.
#include "engine/train/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/safetensors.h"
#include "engine/train/milestones.h"
#include "tests/engine/train/train_harness.h"

namespace stacklab::test {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<TrainStep> make_step(const RunConfig& c) {
  auto step = TrainStep::create(c, *loader_shape(c), *find_backend("reference"), nullptr);
  initialise((*step)->programs().model.parameters(), 5, (*step)->executor());
  return std::move(*step);
}

TrainerState some_state() {
  TrainerState s;
  s.step = 12, s.tokens = 1536, s.seconds = 3.25, s.first_loss = 5.5, s.loss = 0.1 + 0.2, s.val_loss = std::nan("");
  s.skipped = 1;
  return s;
}

Status save(const fs::path& run_dir, const RunConfig& c, TrainStep& step) {
  return save_checkpoint(run_dir, c, some_provenance(c), step, some_state());
}

TEST(Checkpoint, SaveLoadSaveGivesTheSameBytes) {
  const TemporaryFolder folder;
  const RunConfig c = small_config();
  const auto step = make_step(c);
  ASSERT_TRUE(save(folder / "a", c, *step));
  const auto other = make_step(c);
  for (float& v : other->executor().host<float>(other->programs().model.parameters().parameters[0].view)) v = 9;
  const auto loaded = load_checkpoint(newest(folder / "a"), c, *other);
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_EQ(loaded->state.loss, 0.1 + 0.2);
  EXPECT_TRUE(std::isnan(loaded->state.val_loss));
  EXPECT_EQ(loaded->state.tokens, 1536);
  ASSERT_TRUE(loaded->provenance);
  EXPECT_EQ(*loaded->provenance, some_provenance(c));
  ASSERT_TRUE(save_checkpoint(folder / "b", c, *loaded->provenance, *other, loaded->state));
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder / "a/ckpt_step12")) {
    const auto name = entry.path().filename();
    EXPECT_EQ(file_text(entry.path()), file_text(folder / "b/ckpt_step12" / name)) << name;
    EXPECT_FALSE(file_text(entry.path()).empty()) << name;
    ++files;
  }
  EXPECT_EQ(files, 5u);
}

TEST(Checkpoint, SaysWhatItWasMadeByAndFrom) {
  const TemporaryFolder folder;
  const RunConfig c = small_config();
  ASSERT_TRUE(save(folder.path(), c, *make_step(c)));
  const fs::path made = folder / "ckpt_step12";
  const auto json = nlohmann::json::parse(file_text(made / "provenance.json"));
  EXPECT_EQ(json["config_hash"], config_hash(c));
  EXPECT_EQ(json["corpus_sha256"], std::string(64, '5'));
  EXPECT_TRUE(json["dirty"].is_boolean());
  for (const char* field : {"cpu", "isa", "device", "threads", "compiler", "os", "library.glibc"})
    EXPECT_FALSE(json["environment"][field].get<std::string>().empty()) << field;
  EXPECT_EQ(load_config(made / "config.json").value(), c);
  const auto trainer = nlohmann::json::parse(file_text(made / "trainer.json"));
  EXPECT_EQ(trainer["data"]["batches"], 12);
  EXPECT_EQ(trainer["random"]["seed"], c.train.seed);
  const Safetensors model = Safetensors::open(made / "model.safetensors").value();
  EXPECT_EQ(model.metadata().at("step"), "12");
  EXPECT_EQ(model.metadata().at("config_hash"), config_hash(c));
}

TEST(Checkpoint, DamageIsFoundBeforeAnythingIsUsed) {
  const RunConfig c = small_config();
  const auto step = make_step(c);
  for (const char* file :
       {"model.safetensors", "optimiser.safetensors", "config.json", "provenance.json", "trainer.json"}) {
    const TemporaryFolder folder;
    ASSERT_TRUE(save(folder.path(), c, *step));
    const CheckpointFolder saved = newest(folder.path());
    EXPECT_TRUE(verify_checkpoint(saved));
    const std::string whole = file_text(saved.path / file);
    std::vector<std::string> damages = {whole.substr(0, whole.size() - 1), whole.substr(0, whole.size() / 2), ""};
    if (file != std::string("trainer.json")) {
      damages.push_back(whole + " ");
      damages.push_back(whole);
      damages.back()[whole.size() - 3] ^= 1;
    }
    for (const std::string& damage : damages) {
      put_file(saved.path / file, damage);
      const auto verified = verify_checkpoint(saved);
      // JSON may end in one newline less.
      if (file == std::string("trainer.json") && damage.size() + 1 == whole.size()) continue;
      ASSERT_FALSE(verified) << file << " of " << damage.size();
      EXPECT_NE(verified.error().what.find(file), std::string::npos) << verified.error().message();
      // Also what is read only where the hash of the config differs.
      const auto loaded = load_checkpoint(saved, c, *step);
      ASSERT_FALSE(loaded) << file;
      EXPECT_NE(loaded.error().what.find(file), std::string::npos) << loaded.error().message();
    }
    fs::remove(saved.path / file);
    EXPECT_FALSE(verify_checkpoint(saved)) << file;
    const auto loaded = load_checkpoint(saved, c, *step);
    ASSERT_FALSE(loaded) << file;
    EXPECT_NE(loaded.error().what.find(file), std::string::npos) << loaded.error().message();
  }
}

// Earlier builds recorded neither trainer.json's own hash nor the texts'.
TEST(Checkpoint, ThoseOfEarlierBuildsAreRead) {
  const RunConfig c = small_config();
  const auto step = make_step(c);
  const TemporaryFolder folder;
  ASSERT_TRUE(save(folder.path(), c, *step));
  const CheckpointFolder saved = newest(folder.path());
  auto trainer = nlohmann::json::parse(file_text(saved.path / "trainer.json"));
  for (const char* key : {"content_sha256", "data", "random"}) EXPECT_EQ(trainer.erase(key), 1u) << key;
  for (const char* file : {"config.json", "provenance.json"}) {
    EXPECT_EQ(trainer["sha256"].erase(file), 1u) << file;
    fs::remove(saved.path / file);
  }
  put_file(saved.path / "trainer.json", trainer.dump());
  EXPECT_TRUE(verify_checkpoint(saved));
  const auto loaded = load_checkpoint(saved, c, *step);
  EXPECT_TRUE(loaded) << loaded.error().message();
}

TEST(Checkpoint, TheLatestIsTheNewestWholeOne) {
  const TemporaryFolder folder;
  const RunConfig c = small_config();
  const auto step = make_step(c);
  EXPECT_FALSE(latest_checkpoint(folder.path()));
  for (const std::int64_t n : {7, 20, 100}) {
    TrainerState state = some_state();
    state.step = n;
    ASSERT_TRUE(save_checkpoint(folder.path(), c, some_provenance(c), *step, state));
  }
  EXPECT_EQ(latest_checkpoint(folder.path())->step, 100);
  fs::resize_file(folder / "ckpt_step100/optimiser.safetensors", 100);
  EXPECT_EQ(latest_checkpoint(folder.path())->step, 20);
  fs::remove(folder / "ckpt_step20/trainer.json");
  EXPECT_EQ(latest_checkpoint(folder.path())->step, 7);
  fs::rename(folder / "ckpt_step7", folder / "ckpt_step8");
  EXPECT_FALSE(latest_checkpoint(folder.path())) << "it says another step than its folder";
}

// The config's difference is named, not the tensors that follow from it; also where no shape shows it.
TEST(Checkpoint, AnotherConfigIsNamedFirst) {
  const TemporaryFolder folder;
  const RunConfig c = small_config();
  ASSERT_TRUE(save(folder.path(), c, *make_step(c)));
  const std::vector<std::pair<std::string, std::function<void(RunConfig&)>>> changes = {
      {"model.n_layers is 2 there and 3 here", [](RunConfig& r) { r.model.n_layers = 3; }},
      {"model.n_heads is 2 there and 4 here", [](RunConfig& r) { r.model.n_heads = 4, r.model.head_dim = 4; }},
      {"model.vocab_size is 256 there and 300 here", [](RunConfig& r) { r.model.vocab_size = 300; }},
      {"model.max_seq_len is 32 there and 64 here", [](RunConfig& r) { r.model.max_seq_len = 64; }},
      {"model.rope_theta is 10000 there and 500001 here", [](RunConfig& r) { r.model.rope_theta = 500001; }},
      {"optim.adam_lr is 0.01 there and 0.02 here", [](RunConfig& r) { r.optim.adam_lr = 0.02; }},
      {"data.corpus is \"small\" there and \"kjv\" here", [](RunConfig& r) { r.data.corpus = "kjv"; }}};
  for (const auto& [words, change] : changes) {
    RunConfig other = c;
    change(other);
    const auto loaded = load_checkpoint(newest(folder.path()), other, *make_step(other));
    ASSERT_FALSE(loaded) << words;
    EXPECT_NE(loaded.error().what.find("belongs to run " + config_hash(c)), std::string::npos);
    EXPECT_NE(loaded.error().what.find(words), std::string::npos) << loaded.error().message();
    EXPECT_EQ(loaded.error().what.find("blocks."), std::string::npos) << loaded.error().message();
  }
  RunConfig operational = c;
  operational.run.keep_last = 9, operational.name = "other";
  EXPECT_TRUE(load_checkpoint(newest(folder.path()), operational, *make_step(c)));
}

TEST(Checkpoint, AForkAcceptsItsParents) {
  const TemporaryFolder folder;
  const RunConfig parent = small_config();
  ASSERT_TRUE(save(folder.path(), parent, *make_step(parent)));
  RunConfig fork = parent;
  fork.optim.adam_lr = 3e-3;
  const auto step = make_step(fork);
  EXPECT_FALSE(load_checkpoint(newest(folder.path()), fork, *step));
  const std::vector<std::string> accepted = {config_hash(parent)};
  EXPECT_TRUE(load_checkpoint(newest(folder.path()), fork, *step, accepted));
  // Its tensors must fit all the same.
  fork.model.n_layers = 3;
  const auto deeper = load_checkpoint(newest(folder.path()), fork, *make_step(fork), accepted);
  ASSERT_FALSE(deeper);
  EXPECT_NE(deeper.error().what.find("missing: blocks.2.attn_norm.weight"), std::string::npos)
      << deeper.error().message();
}

TEST(Checkpoint, TiedHeadIsStoredOnce) {
  const TemporaryFolder folder;
  const RunConfig c = small_config();
  ASSERT_TRUE(save(folder.path(), c, *make_step(c)));
  const Safetensors model = Safetensors::open(folder / "ckpt_step12/model.safetensors").value();
  EXPECT_TRUE(model.find("tok_emb.weight"));
  EXPECT_FALSE(model.find("lm_head.weight"));
  EXPECT_EQ(model.metadata().at("tied"), "lm_head.weight=tok_emb.weight");
  const Safetensors state = Safetensors::open(folder / "ckpt_step12/optimiser.safetensors").value();
  EXPECT_TRUE(state.find("adam_m.tok_emb.weight"));
  EXPECT_FALSE(state.find("adam_m.lm_head.weight"));
}

TEST(Checkpoint, SizesArePlannedExactly) {
  for (const bool tied : {true, false})
    for (const char* precision : {"fp32", "bf16", "fp64"})
      for (const char* matrices : {"adamw", "muon"}) {
        const TemporaryFolder folder;
        RunConfig c = small_config();
        c.model.tie_embeddings = tied, c.train.precision = precision, c.optim.matrices = matrices;
        TrainerState state = some_state();
        state.step = c.steps();
        ASSERT_TRUE(save_checkpoint(folder.path(), c, some_provenance(c), *make_step(c), state));
        const fs::path saved = newest(folder.path()).path;
        const CheckpointSize size = checkpoint_size(c);
        EXPECT_EQ(size.model, static_cast<std::int64_t>(fs::file_size(saved / "model.safetensors"))) << precision;
        EXPECT_EQ(size.optimiser, static_cast<std::int64_t>(fs::file_size(saved / "optimiser.safetensors")));
        std::int64_t text = 0;
        for (const char* file : {"config.json", "provenance.json", "trainer.json"})
          text += static_cast<std::int64_t>(fs::file_size(saved / file));
        EXPECT_LT(text, size.text);
      }
}

// Masters and moments, and no copy of lower precision: 8 bytes for a parameter under Muon, 12 under AdamW.
TEST(Checkpoint, SizeOfTheLargeModel) {
  RunConfig c;
  c.train.precision = "bf16", c.train.tokens = 18'000'000'000, c.train.batch_tokens = 524'288, c.train.seq_len = 2048;
  const CheckpointSize size = checkpoint_size(c);
  const std::int64_t data = 878'078'976, headers = size.model + size.optimiser - data;
  EXPECT_GT(headers, 0);
  EXPECT_LT(headers, 200'000);
  c.optim.matrices = "adamw";
  // AdamW has a second moment of every matrix: all else is as above, but for names.
  EXPECT_NEAR(static_cast<double>(checkpoint_size(c).total()), 1'216'244'736.0, 200'000.0);
}

TEST(Checkpoint, OnlyItsOwnFoldersAreListedAndPruned) {
  const TemporaryFolder folder;
  for (const char* name : {"ckpt_step10", "ckpt_step9", "ckpt_step100", "ckpt_step", "ckpt_step12x", "ckpt_step-3",
                           "ckpt_step7.tmp", "ckpt_step007", "ckpt_step+8", "ckpt_step99999999999999999999", "notes"})
    put_file(folder / name / "model.safetensors", "x");
  put_file(folder / "ckpt_step5", "a file");
  put_file(folder / "elsewhere/model.safetensors", "x");
  fs::create_directory_symlink(folder / "elsewhere", folder / "ckpt_step1");
  std::vector<std::int64_t> steps;
  for (const CheckpointFolder& f : list_checkpoints(folder.path())) steps.push_back(f.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 9, 10, 100}));
  EXPECT_EQ(prune_checkpoints(folder.path(), 2), std::vector<std::int64_t>{9});
  EXPECT_EQ(prune_checkpoints(folder.path(), 0), std::vector<std::int64_t>{10}) << "the newest always stays";
  for (const char* name :
       {"ckpt_step100", "ckpt_step", "ckpt_step12x", "ckpt_step-3", "ckpt_step7.tmp", "ckpt_step007", "ckpt_step+8",
        "ckpt_step99999999999999999999", "notes", "ckpt_step5", "ckpt_step1", "elsewhere/model.safetensors"})
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 12) << "no temporary is left";
  EXPECT_TRUE(list_checkpoints(folder / "nowhere").empty());
}

TEST(Checkpoint, MilestonesStay) {
  const TemporaryFolder folder;
  for (int step = 10; step <= 100; step += 10) fs::create_directories(folder / ("ckpt_step" + std::to_string(step)));
  const std::vector<std::int64_t> milestones = {20, 50, 55};
  EXPECT_EQ(prune_checkpoints(folder.path(), 2, milestones), (std::vector<std::int64_t>{10, 30, 40, 60, 70, 80}));
  EXPECT_EQ(prune_checkpoints(folder.path(), 0, milestones), std::vector<std::int64_t>{90});
  EXPECT_EQ(prune_checkpoints(folder.path(), 2, milestones), std::vector<std::int64_t>{});
}

TEST(Milestones, ListedOnesAndTheEndsOfPhases) {
  RunConfig c = small_config();  // 40 steps of 128 tokens
  c.optim.schedule.warmup_tokens = 0;
  const auto with = [&](const char* kind, std::int64_t decay, const char* listed) {
    c.optim.schedule.kind = kind, c.optim.schedule.decay_tokens = decay, c.run.keep_milestones = listed;
    return milestone_steps(c);
  };
  using Steps = std::vector<std::int64_t>;
  EXPECT_EQ(with("wsd", 0, ""), (Steps{40}));
  EXPECT_EQ(with("wsd", 512, ""), (Steps{36, 40}));
  EXPECT_EQ(with("wsd", 513, ""), (Steps{35, 40})) << "the rate of step 36 is lower already";
  EXPECT_EQ(with("wsd", 511, ""), (Steps{36, 40}));
  EXPECT_EQ(with("wsd", 40 * 128, ""), (Steps{40})) << "all decay";
  EXPECT_EQ(with("constant", 0, "7,3,36"), (Steps{3, 7, 36, 40}));
  EXPECT_EQ(with("wsd", 512, "36,40,41,1000"), (Steps{36, 40}));
}

// Held against what a run does: every write before its prune.
TEST(Milestones, CheckpointsAtOnce) {
  for (const std::int64_t every : {0, 1, 3, 7, 40, 100})
    for (const std::int64_t keep : {0, 1, 2, 5, 100})
      for (const char* listed : {"", "3,20", "1,2,39", "40"}) {
        RunConfig c = small_config();
        c.run.checkpoint_every = every, c.run.keep_last = keep, c.run.keep_milestones = listed;
        const std::vector<std::int64_t> milestones = milestone_steps(c);
        std::vector<std::int64_t> held;
        std::size_t most = 0;
        for (std::int64_t step = 1; step <= c.steps(); ++step) {
          const bool milestone = std::find(milestones.begin(), milestones.end(), step) != milestones.end();
          if (!milestone && (every == 0 || step % every != 0)) continue;
          held.push_back(step);
          most = std::max(most, held.size());
          std::vector<std::int64_t> stay;
          for (std::size_t i = 0; i < held.size(); ++i)
            if (held.size() - i <= static_cast<std::size_t>(std::max<std::int64_t>(keep, 1)) ||
                std::find(milestones.begin(), milestones.end(), held[i]) != milestones.end())
              stay.push_back(held[i]);
          held = stay;
        }
        const std::int64_t planned = checkpoints_at_once(c);
        EXPECT_GE(planned, static_cast<std::int64_t>(most)) << every << " " << keep << " " << listed;
        // Newest ones that are milestones too are counted twice, and no more than that.
        EXPECT_LE(planned, static_cast<std::int64_t>(most) + std::ssize(milestones)) << every << " " << keep;
      }
}

}  // namespace
}  // namespace stacklab::test
