#include <gtest/gtest.h>

#include <cmath>

#include "engine/config/config_io.h"

namespace stacklab {
namespace {

const std::filesystem::path folder = std::filesystem::path(STACKLAB_SOURCE_DIR) / "experiments";

RunConfig experiment(std::string_view name) { return load_config(folder / (std::string(name) + ".json")).value(); }

TEST(Experiments, EveryFileIsAConfig) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    ++files;
    const Result<RunConfig> config = load_config(entry.path());
    ASSERT_TRUE(config) << config.error().message();
    const Status whole = check_model(*config);
    EXPECT_TRUE(whole) << entry.path() << ": " << whole.error().message();
    EXPECT_EQ(config->name, entry.path().stem().string());
    EXPECT_GT(config->steps(), 0);
    EXPECT_EQ(parse_config(to_json(*config), "again").value(), *config);
  }
  EXPECT_GE(files, 6);
}

TEST(Experiments, FirstRunCanStart) {
  const RunConfig config = experiment("first-run");
  const Status valid = validate(config);
  EXPECT_TRUE(valid) << valid.error().message();
  EXPECT_EQ(config.data.corpus, "kjv");
}

TEST(Experiments, LadderFollowsTheRecipe) {
  const RunConfig flagship = experiment("stack-100m");
  for (const char* name : {"ladder-3.9m", "ladder-8.8m", "ladder-19m", "ladder-44m"}) {
    const RunConfig rung = experiment(name);
    const double factor = std::sqrt(512.0 / static_cast<double>(rung.model.d_model));
    EXPECT_NEAR(rung.optim.muon_lr, flagship.optim.muon_lr * factor, 1e-6) << name;
    EXPECT_NEAR(rung.optim.adam_lr, flagship.optim.adam_lr * factor, 1e-6) << name;
    RunConfig same = rung;
    same.model = flagship.model;
    same.optim.muon_lr = flagship.optim.muon_lr;
    same.optim.adam_lr = flagship.optim.adam_lr;
    same.train.tokens = flagship.train.tokens;
    same.optim.schedule.warmup_tokens = flagship.optim.schedule.warmup_tokens;
    EXPECT_EQ(canonical_json(same), canonical_json(flagship)) << name << ": the rest of the recipe is one";
    EXPECT_EQ(rung.optim.schedule.warmup_tokens, rung.train.tokens / 100);
  }
  EXPECT_EQ(flagship.steps(), 34'332);
}

}  // namespace
}  // namespace stacklab
