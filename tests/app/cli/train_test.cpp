#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/base/text.h"
#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

TEST(Train, FromStartToFinish) {
  const Workspace workspace;
  const Answer answer = workspace({"train", workspace.config()});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(std::count(answer.out.begin(), answer.out.end(), '\n'), 1) << "one line that says what was learnt";
  for (const char* part :
       {"small (", "loss 5.", " to ", "validation ", "counting tokens", "12 steps in ", "runs/small-"})
    EXPECT_NE(answer.out.find(part), std::string::npos) << answer.out;
  EXPECT_EQ(answer.err.find('\r'), std::string::npos) << "no bar where there is no terminal";

  // The same config again is known to be finished.
  const Answer again = workspace({"train", workspace.config(), "--resume", "--json"});
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.json()["already_finished"], true);
  EXPECT_EQ(again.json()["steps"], 12);
  EXPECT_NE(workspace({"train", workspace.config(), "--resume"}).out.find("already finished"), std::string::npos);
}

TEST(Train, JsonAndTheStoreAgree) {
  const Workspace workspace;
  const Answer answer = workspace({"train", workspace.config(), "--json", "--quiet", "--threads", "1"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.err, "") << "quiet";
  const Json json = answer.json();
  EXPECT_EQ(json["state"], "finished");
  EXPECT_EQ(json["steps"], 12);
  EXPECT_EQ(json["tokens"], 12 * 128);
  for (const char* key :
       {"loss", "first_loss", "val_loss", "unigram_entropy", "tokens_per_second", "peak_bytes", "seconds"})
    EXPECT_GT(json[key].get<double>(), 0) << key;
  EXPECT_LT(json["loss"].get<double>(), json["first_loss"].get<double>());
  EXPECT_TRUE(std::filesystem::exists(json["folder"].get<std::string>() + "/config.json"));

  const Json runs = workspace({"runs", "list", "--json"}).json()["runs"];
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0]["id"], json["run"]);
  EXPECT_EQ(runs[0]["state"], "finished");
  EXPECT_EQ(runs[0]["metrics"]["loss"], json["loss"]);
  EXPECT_NE(workspace({"runs", "list"}).out.find("finished"), std::string::npos);
  const auto found = [&](const std::string& filter) {
    return workspace({"runs", "list", "--json", "--filter", filter}).json()["runs"].size();
  };
  EXPECT_EQ(found("name:small and step = 12 and optim.adam_lr < 0.1 and not state:failed"), 1u);
  EXPECT_EQ(found("step > 12 or tag:ablation"), 0u);

  const std::string id = json["run"];
  const Json shown = workspace({"runs", "show", id.substr(0, 4), "--json"}).json();
  EXPECT_EQ(shown["id"], id);
  EXPECT_EQ(shown["config"]["run"]["threads"], 1);
  EXPECT_EQ(shown["facts"]["unigram_entropy"], json["unigram_entropy"]);
  EXPECT_FALSE(shown["events"].empty());

  // Every value of the CSV reads back as the JSON has it, and losses end with what train said.
  const Json exported = workspace({"runs", "export", "small", "--json"}).json();
  const Answer csv = workspace({"runs", "export", "small"});
  std::istringstream lines(csv.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "metric,step,value");
  std::map<std::string, std::size_t> seen;
  while (std::getline(lines, line)) {
    const std::vector<std::string> part = split(line, ',');
    ASSERT_EQ(part.size(), 3u) << line;
    const Json& point = exported["metrics"][part[0]][seen[part[0]]++];
    EXPECT_EQ(point[0], std::stoll(part[1]));
    EXPECT_EQ(point[1].get<double>(), parse_double(part[2]));
  }
  EXPECT_EQ(seen["loss"], 12u);
  EXPECT_EQ(exported["metrics"]["loss"][11][1], json["loss"]);
  EXPECT_EQ(exported["metrics"]["loss"][0][1], json["first_loss"]);

  const std::string file = (workspace / "out.csv").string();
  const Answer written = workspace({"runs", "export", "small", "--out", file});
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(file_text(file), csv.out);
  // A file that is there is replaced only by who says so.
  put_file(file, "mine");
  for (const auto& command :
       {std::vector<std::string>{"runs", "export"}, {"runs", "export", "--json"}, {"runs", "clone"}}) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {"small", "--out", file});
    EXPECT_EQ(workspace(words).code, 3) << command.back();
    EXPECT_EQ(file_text(file), "mine") << command.back();
  }
  EXPECT_EQ(workspace({"runs", "export", "small", "--out", file, "--yes"}).code, 0);
  EXPECT_EQ(file_text(file), csv.out);
  EXPECT_EQ(workspace({"runs", "export", "small", "--out", workspace.path().string()}).code, 1);
  const Answer misspelt = workspace({"runs", "export", "smal"});
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_NE(misspelt.err.find("small"), std::string::npos) << misspelt.err;
}

// Interrupted by --max-steps and continued, or not: the same bits.
TEST(Train, MaxStepsAndResumeChangeNothing) {
  const Workspace straight, pieces;
  const Json whole = straight({"train", straight.config(), "--json"}).json();
  const Answer first = pieces({"train", pieces.config(), "--max-steps", "7", "--json"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.json()["state"], "paused");
  EXPECT_EQ(first.json()["steps"], 7);
  EXPECT_TRUE(first.json()["val_loss"].is_number());
  const Answer refused = pieces({"train", pieces.config()});
  EXPECT_EQ(refused.code, 3) << "an unfinished run is not started over";
  EXPECT_NE(refused.err.find("--resume"), std::string::npos) << refused.err;
  const Json rest = pieces({"train", pieces.config(), "--resume", "--json"}).json();
  EXPECT_EQ(rest["run"], whole["run"]);
  EXPECT_EQ(rest["loss"], whole["loss"]);
  EXPECT_EQ(rest["first_loss"], whole["first_loss"]);
  EXPECT_EQ(rest["val_loss"], whole["val_loss"]);
  const auto losses = [](const Workspace& w) {
    return w({"runs", "export", "small", "--json"}).json()["metrics"]["loss"];
  };
  EXPECT_EQ(losses(pieces), losses(straight));
}

TEST(Train, SeedsAndSetKeysMakeOtherRuns) {
  const Workspace workspace;
  const Json one = workspace({"train", workspace.config(), "--json"}).json();
  const Json same = workspace({"train", workspace.config(), "--json", "--resume", "--seed", "1337", "--set",
                               "run.checkpoint_every=0"})
                        .json();
  EXPECT_EQ(same["run"], one["run"]);
  const Json other = workspace({"train", workspace.config(), "--json", "--seed", "2", "--set", "name=other"}).json();
  EXPECT_NE(other["run"], one["run"]);
  EXPECT_NE(other["loss"], one["loss"]);
  EXPECT_EQ(other["name"], "other");
}

TEST(Train, StopSignalsEndCleanly) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Workspace workspace;
    workspace.write_config(1'000'000);
    Child child(workspace.words({"train", workspace.config(), "--json"}), workspace.path());
    ASSERT_TRUE(child.says("training")) << child.err();
    child.send(signal);
    EXPECT_EQ(child.wait(), 130) << child.err();
    const Json json = Json::parse(child.out());
    EXPECT_EQ(json["state"], "paused");
    const std::int64_t steps = json["steps"];
    EXPECT_GT(steps, 0);
    EXPECT_TRUE(std::filesystem::is_directory(std::filesystem::path(json["folder"].get<std::string>()) /
                                              ("ckpt_step" + std::to_string(steps))));
    EXPECT_EQ(workspace({"runs", "show", "small", "--json"}).json()["state"], "paused");
    const Json on =
        workspace({"train", workspace.config(), "--json", "--resume", "--max-steps", std::to_string(steps + 2)}).json();
    EXPECT_EQ(on["steps"], steps + 2);
  }
}

TEST(Train, KilledRunsReadLostAndGoOn) {
  const Workspace workspace;
  workspace.write_config(1'000'000);
  Child child(workspace.words({"train", workspace.config()}), workspace.path());
  ASSERT_TRUE(child.says("training")) << child.err();
  const Answer busy = workspace({"train", workspace.config(), "--resume"});
  EXPECT_EQ(busy.code, 3) << "two processes never train one run";
  EXPECT_NE(busy.err.find("already running"), std::string::npos) << busy.err;
  child.send(SIGKILL);
  EXPECT_EQ(child.wait(), -SIGKILL);
  EXPECT_EQ(workspace({"runs", "list", "--json"}).json()["runs"][0]["state"], "lost");
  const Answer on = workspace({"train", workspace.config(), "--resume", "--max-steps", "3", "--json"});
  EXPECT_EQ(on.code, 0) << on.err;
}

TEST(Train, StopFromAnotherProcess) {
  const Workspace workspace;
  workspace.write_config(1'000'000);
  Child child(workspace.words({"train", workspace.config()}), workspace.path());
  ASSERT_TRUE(child.says("training")) << child.err();
  const Answer answer = workspace({"stop", "small", "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_EQ(answer.json()["state"], "stopping");
  EXPECT_EQ(child.wait(), 130) << child.err();
  EXPECT_EQ(workspace({"stop", "small", "--json"}).json()["state"], "paused");
  EXPECT_EQ(workspace({"stop", "nobody"}).code, 2);
}

// Paused and gone on with in other processes, twice: the end is to the bit that of a run that never paused.
TEST(Train, PausedAndResumedIsTheSameRun) {
  Workspace whole, cut;
  for (const Workspace* w : {&whole, &cut}) w->write_config(400);
  const Answer straight = whole({"train", whole.config(), "--json"});
  ASSERT_EQ(straight.code, 0) << straight.err;

  Child child(cut.words({"train", cut.config()}), cut.path());
  ASSERT_TRUE(child.says("training")) << child.err();
  const Json paused = cut({"pause", "small", "--wait", "--json"}).json();
  const int code = child.wait();
  if (code == 0) {
    EXPECT_EQ(paused["state"], "finished") << "it was faster than we";
  } else {
    EXPECT_EQ(code, 130) << child.err();
    EXPECT_EQ(paused["state"], "paused");
    EXPECT_LT(paused["step"].get<std::int64_t>(), 400);
    EXPECT_EQ(cut({"pause", "small", "--json"}).json()["state"], "paused");
  }
  const Answer some = cut({"resume", "small", "--max-steps", "390", "--threads", "1", "--json"});
  EXPECT_EQ(some.code, 0) << some.err;
  const Answer rest = cut({"resume", "small", "--json", "--set", "run.checkpoint_every=0"});
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(rest.json()["state"], "finished");
  for (const char* key : {"loss", "first_loss", "val_loss", "steps", "tokens"})
    EXPECT_EQ(rest.json()[key], straight.json()[key]) << key;
  const Json once = whole({"runs", "export", "small", "--json"}).json()["metrics"];
  const Json pieces = cut({"runs", "export", "small", "--json"}).json()["metrics"];
  for (const char* metric : {"loss", "grad_norm", "update_norm", "adam_lr"}) EXPECT_EQ(once[metric], pieces[metric]);

  EXPECT_EQ(cut({"resume", "small", "--json"}).json()["already_finished"], true);
  const Answer other = cut({"resume", "small", "--seed", "7"});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("another run with these settings"), std::string::npos) << other.err;
  EXPECT_EQ(cut({"resume", "nobody"}).code, 2);
}

TEST(Train, Refusals) {
  const Workspace workspace;
  const std::tuple<std::vector<std::string>, int, std::string_view> cases[] = {
      {{experiments + "stack-100m.json"}, 2, "there is no tokenizer \"bpe-32768\" in the workspace"},
      {{workspace.config(), "--set", "data.corpus=sampel"}, -1, "sample"},
      {{workspace.config(), "--set", "train.tokens=1"}, 2, "train.tokens"},
      {{workspace.config(), "--set", "name=../x"}, 2, "name"},
      {{workspace.config(), "--set", "data.validation_fraction=0.9", "--set", "data.corpus=../data/sample"},
       -1,
       "corpus"},
  };
  for (const auto& [words, code, message] : cases) {
    std::vector<std::string> all = words;
    all.insert(all.begin(), "train");
    const Answer answer = workspace(all);
    if (code >= 0)
      EXPECT_EQ(answer.code, code) << answer.err;
    else
      EXPECT_NE(answer.code, 0);
    EXPECT_NE(answer.err.find(message), std::string::npos) << answer.err;
    EXPECT_EQ(answer.out, "");
  }
}

TEST(Train, MetricsOfEveryKindAreInTheStore) {
  const Workspace workspace;
  const std::string trace = (workspace / "trace.json").string();
  const Answer answer = workspace({"train", workspace.config(), "--json", "--trace", trace, "--set",
                                   "optim.matrices=muon", "--set", "run.micro_batch=2"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const Json trained = answer.json();
  const Json metrics = workspace({"runs", "export", "small", "--json"}).json()["metrics"];
  const auto at = [&](const std::string& name, std::int64_t step) {
    for (const Json& point : metrics.at(name))
      if (point[0] == step) return point[1].get<double>();
    ADD_FAILURE() << name << " has no step " << step;
    return 0.0;
  };
  for (const char* name : {"loss", "ce", "z_loss", "adam_lr", "muon_lr", "grad_norm", "update_norm", "max_logit",
                           "tokens_per_second", "mfu_6nd", "mfu_attention", "mfu_documents", "hfu", "process_bytes"})
    EXPECT_EQ(metrics.at(name).size(), 12u) << name;
  EXPECT_EQ(at("loss", 7), at("ce", 7) + at("z_loss", 7));

  // Utilisation, each kind by its definition.
  const Json shown = workspace({"runs", "show", "small", "--json"}).json();
  const double rate = shown["facts"]["gemm_flops_per_second"].get<double>();
  const Json params = stacklab({"params", workspace.config(), "--json", "--length", "32"}).json();
  double step_flops = 0;
  for (const Json& o : trained["trace"]["operations"]) step_flops += o["flops"].get<double>() / 3;
  const auto per_second = [&](double speed, double flops_of_a_token) { return speed * flops_of_a_token / rate; };
  const auto expect_utilisation = [&](double speed, double mfu_6nd, double mfu_attention, double hfu) {
    // A handful of roundings.
    const double tolerance = 8 * std::numeric_limits<double>::epsilon();
    const double as_6nd = per_second(speed, 6 * params["total"].get<double>());
    const double with_attention = per_second(speed, params["flops_per_token"].get<double>());
    const double executed = per_second(speed, step_flops / 128);
    EXPECT_NEAR(mfu_6nd, as_6nd, as_6nd * tolerance);
    EXPECT_NEAR(mfu_attention, with_attention, with_attention * tolerance);
    EXPECT_NEAR(hfu, executed, executed * tolerance);
  };
  expect_utilisation(at("tokens_per_second", 5), at("mfu_6nd", 5), at("mfu_attention", 5), at("hfu", 5));
  expect_utilisation(trained["tokens_per_second"], trained["mfu_6nd"], trained["mfu_attention"], trained["hfu"]);
  EXPECT_EQ(shown["metrics"]["hfu"], at("hfu", 12));
  // Documents are no longer than a row, and there is attention in each.
  for (const auto& [documents, nominal] :
       {std::pair(at("mfu_documents", 5), at("mfu_attention", 5)),
        std::pair(trained["mfu_documents"].get<double>(), trained["mfu_attention"].get<double>())}) {
    EXPECT_LT(documents, nominal);
    EXPECT_GT(documents, nominal *
                             stacklab({"params", workspace.config(), "--json", "--length", "1"})
                                 .json()["flops_per_token"]
                                 .get<double>() /
                             params["flops_per_token"].get<double>());
  }
  EXPECT_NE(workspace({"runs", "show", "small"}).out.find("mfu_attention"), std::string::npos);

  // Of each layer and head with every evaluation; the largest of them is what every step reports.
  for (const std::int64_t step : {5, 10, 12}) {
    double largest = -1e300;
    for (const char* head : {"L0.H0", "L0.H1", "L1.H0", "L1.H1"})
      largest = std::max(largest, at(std::string("max_logit.") + head, step));
    EXPECT_EQ(largest, at("max_logit", step));
  }
  EXPECT_EQ(metrics.at("max_logit.L1.H1").size(), 3u);
}

TEST(Train, ATraceTellsWhereTheTimeGoes) {
  const Workspace workspace;
  const std::string file = (workspace / "trace.json").string();
  const Answer answer = workspace(
      {"train", workspace.config(), "--max-steps", "6", "--json", "--trace", file, "--set", "run.micro_batch=2"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const Json trace = answer.json()["trace"];
  EXPECT_EQ(trace["file"], file);
  EXPECT_EQ(trace["first_step"], 2);
  EXPECT_EQ(trace["last_step"], 4);
  std::map<std::string, std::int64_t> calls;
  std::map<std::string, double> flops;
  double seconds = 0, share = 0;
  for (const Json& o : trace["operations"]) {
    calls[o["op"]] = o["calls"].get<std::int64_t>();
    flops[o["op"]] = o["flops"].get<double>();
    seconds += o["seconds"].get<double>();
    share += o["share"].get<double>();
  }
  EXPECT_EQ(calls["loss_head"], 3 * 2) << "of every micro-batch of every step";
  EXPECT_EQ(calls["attention"], 3 * 2 * 2);
  EXPECT_LE(seconds, trace["seconds"].get<double>());
  EXPECT_LE(share, 1);
  EXPECT_NE(answer.err.find("Steps 2 to 4 took"), std::string::npos) << answer.err;
  EXPECT_NE(answer.err.find("outside of them"), std::string::npos) << answer.err;
  // The file holds the same operations.
  const Json written = Json::parse(file_text(file));
  for (const Json& e : written["traceEvents"])
    if (e["ph"] == "X" && e["tid"] == 3) {
      --calls[e["name"]];
      flops[e["name"]] -= e["args"]["flops"].get<double>();
      EXPECT_FALSE(e["args"]["scope"].get<std::string>().empty()) << e;
    }
  for (const auto& [op, left] : calls) EXPECT_EQ(left, 0) << op;
  for (const auto& [op, left] : flops) EXPECT_EQ(left, 0) << op << ": whole numbers add up exactly";

  // A step that is the only one is traced, and tracing changes nothing.
  const Answer last = workspace({"train", workspace.config(), "--resume", "--max-steps", "7", "--json", "--trace", file,
                                 "--trace-steps", "9", "--set", "run.micro_batch=2"});
  ASSERT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(last.json()["trace"]["first_step"], 7);
  EXPECT_EQ(last.json()["trace"]["last_step"], 7);
  const Workspace other;
  EXPECT_EQ(other({"train", other.config(), "--max-steps", "7", "--json", "--set", "run.micro_batch=2"}).json()["loss"],
            last.json()["loss"]);
  const Answer nowhere = other({"train", other.config(), "--trace", (workspace / "nowhere/trace.json").string()});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_NE(nowhere.err.find("--trace: there is no folder"), std::string::npos) << nowhere.err;
}

TEST(Train, WorkspacesThatCannotBeWritten) {
  const Workspace workspace;
  put_file(workspace / "file", "");
  for (const std::string& bad : {(workspace / "file").string(), std::string("/proc/stacklab")}) {
    const Answer answer = stacklab({"train", workspace.config(), "--workspace", bad, "--json"});
    EXPECT_EQ(answer.code, 1);
    EXPECT_NE(answer.err.find(bad), std::string::npos) << answer.err;
    EXPECT_TRUE(answer.json().contains("error"));
  }
}

// A disk without room is met by a limit on the size of files: never a signal, never a silent success.
TEST(Train, FilesMayNotGrow) {
  const Workspace workspace;
  const std::string train =
      "exec " + program + " train " + workspace.config() + " --workspace " + workspace.path().string();
  const Answer answer = shell("ulimit -f 8; " + train);
  EXPECT_EQ(answer.code, 1) << answer.err;
  EXPECT_TRUE(answer.err.find("error: ") != std::string::npos) << answer.err;
  EXPECT_EQ(workspace({"train", workspace.config(), "--resume"}).code, 0) << "with room it works";
}

// A real full disk, where the system lets one be made: training fails with a sentence, and with room again goes on from
// the checkpoint that was whole.
TEST(Train, FullDisk) {
  const Workspace workspace;
  const std::string w = (workspace / "disk").string();
  std::filesystem::create_directory(w);
  const std::string train =
      program + " train " + workspace.config() + " --set run.disk_guard=false --json --resume --workspace " + w;
  const Answer answer =
      shell("unshare -rm sh -c '" + ("mount -t tmpfs -o size=2m none " + w + " || exit 77; ") + "mkdir " + w +
            "/data; cp -r " + (workspace / "data/sample").string() + " " + w + "/data/; " + train +
            " --max-steps 4 >/dev/null || exit 1; " + "head -c 4000000 /dev/zero > " + w + "/filler; " + train +
            " >/dev/null; echo $?; rm " + w + "/filler; " + train + "' || exit 77");
  if (answer.code == 77 && answer.out.empty()) GTEST_SKIP() << "this system lets nobody mount a small disk";
  ASSERT_EQ(answer.code, 0) << answer.err;
  ASSERT_TRUE(answer.out.starts_with("1\n")) << answer.out << answer.err;
  EXPECT_NE(answer.err.find("error: "), std::string::npos) << answer.err;
  const Json json = Json::parse(answer.out.substr(2));
  EXPECT_EQ(json["state"], "finished");
  EXPECT_EQ(json["loss"], Workspace()({"train", workspace.config(), "--json"}).json()["loss"])
      << "the same as without a full disk";
}

TEST(Train, TheLocaleChangesNothing) {
  const Workspace workspace;
  ASSERT_EQ(workspace({"train", workspace.config()}).code, 0);
  const std::vector<std::string> words = {program, "runs", "export", "small", "--workspace", workspace.path().string()};
  EXPECT_EQ(run_words(words, {{"LC_ALL", "de_DE.UTF-8"}}).out, run_words(words, {{"LC_ALL", "C"}}).out);
}

// A trace takes the place of an older trace, and of nothing else: not of the store, nor of the config.
TEST(Train, ATraceOverwritesNothingButATrace) {
  Workspace workspace;
  const std::string file = (workspace / "trace.json").string(), store = (workspace / "stacklab.db").string();
  ASSERT_EQ(workspace({"train", workspace.config(), "--max-steps", "3", "--trace", file}).code, 0);
  EXPECT_EQ(workspace({"train", workspace.config(), "--resume", "--max-steps", "5", "--trace", file}).code, 0);
  for (const std::string& place : {store, workspace.config(), workspace.path().string(), std::string("/dev/null")}) {
    const Answer answer = workspace({"train", workspace.config(), "--resume", "--max-steps", "6", "--trace", place});
    EXPECT_EQ(answer.code, 3) << place << answer.err;
    EXPECT_NE(answer.err.find("--trace: " + place), std::string::npos) << answer.err;
  }
  EXPECT_EQ(workspace({"runs", "list"}).code, 0) << "the store is whole";
  const Answer none = workspace({"train", workspace.config(), "--resume", "--max-steps", "5", "--trace", file});
  EXPECT_NE(none.err.find("No step was left to trace"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace stacklab::cli
