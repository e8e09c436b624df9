#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

TEST(BenchGemm, EveryMergedProduct) {
  const Answer answer = stacklab({"bench", "gemm", "--threads", "1", "--seconds", "0", "--json", "--quiet"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const Json json = answer.json();
  ASSERT_EQ(json["rows"].size(), 15u);
  EXPECT_EQ(json["threads"], 1);
  for (const Json& row : json["rows"]) {
    EXPECT_GT(row["gflop_per_second"].get<double>(), 0);
    EXPECT_EQ(row["ratio"].is_null(), json["onednn"].is_null());
  }
  EXPECT_EQ(json["rows"][6]["layer"], "gate_up");
  EXPECT_EQ(json["rows"][6]["n"], 2816);
}

TEST(BenchGemm, Refusals) {
  for (const auto& [words, part] :
       std::vector<std::pair<std::vector<std::string>, std::string_view>>{{{"--isa", "abacus"}, "use one of: "},
                                                                          {{"--seconds", "-1"}, "--seconds"},
                                                                          {{"--threads", "0"}, "--threads"}}) {
    std::vector<std::string> all = {"bench", "gemm"};
    all.insert(all.end(), words.begin(), words.end());
    const Answer answer = stacklab(all);
    EXPECT_EQ(answer.code, 2) << answer.err;
    EXPECT_NE(answer.err.find(part), std::string::npos) << answer.err;
  }
}

TEST(BenchAttention, EveryCaseBesideAProduct) {
  for (const char* precision : {"fp32", "bf16"}) {
    const Answer answer = stacklab(
        {"bench", "attention", "--threads", "2", "--seconds", "0", "--precision", precision, "--json", "--quiet"});
    ASSERT_EQ(answer.code, 0) << answer.err;
    const Json json = answer.json();
    ASSERT_GE(json["rows"].size(), 6u);
    for (const Json& row : json["rows"]) {
      const double length = row["length"], pairs = row["documents"].get<double>() * length * (length + 1) / 2;
      const double flops = 4 * pairs * row["n_heads"].get<double>() * row["head_dim"].get<double>();
      const double forward = row["forward_gflop_per_second"], backward = row["backward_gflop_per_second"];
      EXPECT_NEAR(forward * row["forward_seconds"].get<double>() * 1e9, flops, 1e-9 * flops);
      EXPECT_NEAR(backward * row["backward_seconds"].get<double>() * 1e9, 2.5 * flops, 1e-9 * flops);
      EXPECT_GT(row["gemm_gflop_per_second"].get<double>(), 0);
    }
  }
  EXPECT_EQ(stacklab({"bench", "attention", "--precision", "int4"}).code, 2);
  EXPECT_EQ(stacklab({"bench", "attention", "--isa", "abacus"}).code, 2);
}

TEST(BenchTrain, MeasuresWholeStepsInThePlannedMemory) {
  for (const char* optimiser : {"adamw", "muon"}) {
    const Answer answer = stacklab({"bench", "train", "--preset", "tiny", "--opt", optimiser, "--T", "32", "--batch",
                                    "2", "--steps", "1", "--json", "--quiet"});
    ASSERT_EQ(answer.code, 0) << answer.err;
    const Json json = answer.json();
    ASSERT_EQ(json["rows"].size(), 1u);
    const Json& row = json["rows"][0];
    EXPECT_EQ(row["opt"], optimiser);
    EXPECT_EQ(row["steps"], 1);
    EXPECT_GT(row["tokens_per_second"].get<double>(), 0);
    EXPECT_GT(row["peak_bytes"].get<double>(), row["plan_bytes"].get<double>());
    EXPECT_LT(row["loss"].get<double>(), row["first_loss"].get<double>()) << "the same batch, learnt";
    double seconds = 0, flops = 0;
    for (const Json& o : row["operations"]) {
      seconds += o["seconds"].get<double>(), flops += o["flops"].get<double>();
      const double products = o["gflop_per_second"].get<double>() * 1e9 / row["gemm_flops_per_second"].get<double>();
      const double memory = o["gbyte_per_second"].get<double>() * 1e9 / row["memory_bytes_per_second"].get<double>();
      EXPECT_NEAR(o["of_limit"].get<double>(), std::max(products, memory), 1e-9 * std::max(products, memory));
    }
    EXPECT_LE(seconds, 1.001 * row["step_seconds"].get<double>());
    EXPECT_NEAR(flops, row["executed_flops"].get<double>(), 1e-9 * flops);
  }
}

TEST(BenchTrain, Refusals) {
  for (const auto& [words, part] : std::vector<std::pair<std::vector<std::string>, std::string_view>>{
           {{"--preset", "huge"}, "none of stack100m, rungA, tiny"},
           {{"--opt", "sgd"}, "optim.matrices"},
           {{"--precision", "int4"}, "train.precision"},
           {{"--T", "0"}, "--T"},
           {{"--steps", "0"}, "--steps"}}) {
    std::vector<std::string> all = {"bench", "train"};
    all.insert(all.end(), words.begin(), words.end());
    const Answer answer = stacklab(all);
    EXPECT_EQ(answer.code, 2) << answer.err;
    EXPECT_NE(answer.err.find(part), std::string::npos) << answer.err;
  }
}

TEST(BenchTokenizer, RowsOfEachTask) {
  const Answer answer =
      stacklab({"bench", "tokenizer", "--megabytes", "1", "--vocab", "600", "--threads", "2", "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const Json json = answer.json();
  EXPECT_EQ(json["vocabulary"], 600);
  std::vector<std::string> tasks;
  for (const Json& row : json["rows"]) {
    tasks.push_back(row["task"]);
    EXPECT_GE(row["bytes"], 1'000'000);
    EXPECT_GT(row["tokens_per_second"].get<double>(), 0);
    EXPECT_GT(row["peak_bytes"].get<double>(), 0);
    EXPECT_GT(row["bytes_per_token"].get<double>(), 1.5) << "words are worth more than a byte";
    EXPECT_LT(row["bytes_per_token"].get<double>(), 6);
  }
  EXPECT_EQ(tasks, (std::vector<std::string>{"train", "encode", "encode", "decode"}));
  EXPECT_EQ(stacklab({"bench", "tokenizer", "--megabytes", "0"}).code, 2);

  const TemporaryFolder folder;
  put_file(folder / "text", "one two one two\n" + std::string(1, '\0') + "one two three");
  const Json own =
      stacklab({"bench", "tokenizer", "--input", (folder / "text").string(), "--vocab", "262", "--json"}).json();
  EXPECT_EQ(own["documents"], 2);
  EXPECT_EQ(own["rows"][0]["bytes"], 29);
  put_file(folder / "blank", " \n");
  EXPECT_EQ(stacklab({"bench", "tokenizer", "--input", (folder / "blank").string()}).code, 1);
}

TEST(BenchStore, RowsOfEachTaskAndNothingLeft) {
  const TemporaryFolder folder;
  const Answer answer = stacklab({"bench", "store", "--steps", "500", "--workspace", folder.path().string(), "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  std::map<std::string, std::int64_t> values;
  const Json json = answer.json();
  for (const Json& row : json["rows"]) {
    values[row["task"]] = row["values"];
    EXPECT_GE(row["seconds"].get<double>(), 0);
  }
  EXPECT_EQ(values["report"], 4000);
  EXPECT_EQ(values["commit"], 4000);
  EXPECT_EQ(values["curve"], 500);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(stacklab({"bench", "store", "--steps", "0"}).code, 2);
}

}  // namespace
}  // namespace stacklab::cli
