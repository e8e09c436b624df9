// What is left of a run that is interrupted: politely at a step, and by force at any instant.
#include <nlohmann/json.hpp>
#include <random>

#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t steps = 48;

// What time has no part in: all rows but rates, and every tensor of the last checkpoint.
struct Remains {
  Json curves;
  std::string model, optimiser;

  explicit Remains(const Workspace& workspace) {
    curves = workspace({"runs", "export", "small", "--json"}).json()["metrics"];
    for (const char* rate : {"tokens_per_second", "mfu_6nd", "mfu_attention", "mfu_documents", "hfu", "process_bytes"})
      curves.erase(rate);
    const Json run = workspace({"runs", "show", "small", "--json"}).json();
    const fs::path last = workspace.path() / run["folder"].get<std::string>() / ("ckpt_step" + std::to_string(steps));
    model = file_text(last / "model.safetensors");
    optimiser = file_text(last / "optimiser.safetensors");
  }
};

void expect_same(const Remains& a, const Remains& b) {
  EXPECT_FALSE(a.model.empty());
  EXPECT_EQ(a.model == b.model, true) << "the weights differ";
  EXPECT_EQ(a.optimiser == b.optimiser, true) << "the optimiser's state differs";
  ASSERT_EQ(a.curves.size(), b.curves.size());
  for (const auto& [metric, points] : a.curves.items()) EXPECT_EQ(points, b.curves[metric]) << metric;
}

TEST(Kill, InterruptedAtStep20AndResumedIsBitIdentical) {
  const Workspace straight, parts;
  for (const Workspace* w : {&straight, &parts}) w->write_config(steps);
  ASSERT_EQ(straight({"train", straight.config()}).code, 0);
  ASSERT_EQ(parts({"train", parts.config(), "--max-steps", "20"}).code, 0);
  ASSERT_EQ(parts({"resume", "small"}).code, 0);
  const Remains whole(straight);
  expect_same(whole, Remains(parts));
  ASSERT_EQ(whole.curves["loss"].size(), static_cast<std::size_t>(steps));
}

TEST(Kill, FiftyTimesAtAnyInstantAndThenOneCurve) {
  const Workspace straight, killed;
  for (const Workspace* w : {&straight, &killed}) w->write_config(steps);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(straight({"train", straight.config(), "--quiet"}).code, 0);
  const double whole_run = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const Remains whole(straight);

  // Deterministic seeds, printed; instants in shares of an undisturbed run's time, however fast the computer.
  int kills = 0;
  std::int64_t furthest = 0;
  for (unsigned seed = 1; kills < 50; ++seed) {
    std::mt19937 random(seed);
    const double share = std::uniform_real_distribution<double>(0.02, 0.9)(random);
    std::printf("seed %u: killed after %.2f of a run's time\n", seed, share);
    {
      Child child(killed.words({"train", killed.config(), "--resume", "--quiet"}), killed.path());
      std::this_thread::sleep_for(std::chrono::duration<double>(share * whole_run));
      child.send(SIGKILL);
      if (child.wait() == 0) {
        // It was done before: begin anew, so that there is something to kill.
        expect_same(whole, Remains(killed));
        ASSERT_EQ(killed({"runs", "delete", "small", "--purge", "--yes"}).code, 0);
        continue;
      }
    }
    ++kills;
    // The store opens, and nothing seems to run.
    const Answer list = killed({"runs", "list", "--json"});
    if (list.code != 0) {  // killed before there was a store
      EXPECT_FALSE(fs::exists(killed / "stacklab.db") && fs::file_size(killed / "stacklab.db") > 0) << list.err;
      continue;
    }
    const Json runs = list.json()["runs"];
    if (runs.empty()) continue;
    ASSERT_EQ(runs.size(), 1u);
    const std::string state = runs[0]["state"];
    // Paused it was before, and is when it was killed before it began to go on.
    EXPECT_TRUE(state == "lost" || state == "finished" || state == "paused") << state;
    furthest = std::max(furthest, runs[0]["step"].get<std::int64_t>());
    // The latest checkpoint is whole: going on from it says nothing of one passed over.
    const Answer next = killed({"train", killed.config(), "--resume", "--json", "--max-steps",
                                std::to_string(std::min(steps, runs[0]["step"].get<std::int64_t>() / 4 * 4 + 1))});
    ASSERT_EQ(next.code, 0) << next.err;
    EXPECT_EQ(next.err.find("passed over"), std::string::npos) << next.err;
    // No gap, no double.
    const Json loss = killed({"runs", "export", "small", "--json"}).json()["metrics"]["loss"];
    for (std::size_t i = 0; i < loss.size(); ++i) {
      ASSERT_EQ(loss[i][0], i + 1) << "seed " << seed;
      ASSERT_EQ(loss[i][1], whole.curves["loss"][i][1]) << "seed " << seed << ", step " << i + 1;
    }
  }
  EXPECT_GT(furthest, 4) << "no kill came while it trained";
  ASSERT_EQ(killed({"train", killed.config(), "--resume"}).code, 0);
  expect_same(whole, Remains(killed));
}

}  // namespace
}  // namespace stacklab::cli
