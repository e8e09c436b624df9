#include <nlohmann/json.hpp>

#include "tests/app/cli/cli_testing.h"

namespace stacklab::cli {
namespace {

TEST(Params, Flagship) {
  const Answer answer = stacklab({"params", experiments + "stack-100m.json", "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const Json json = answer.json();
  EXPECT_EQ(json["total"], 101'353'728);
  EXPECT_EQ(json["body"], 84'576'512);
  EXPECT_EQ(json["embedding"], 16'777'216);
  EXPECT_EQ(json["muon"], 84'541'440);
  EXPECT_EQ(json["adamw"], 16'812'288);
  EXPECT_EQ(json["kv_bytes_per_token"], 15'360);
  // 8 bytes for a parameter of Muon, 12 for one of AdamW, and headers.
  EXPECT_GT(json["checkpoint_bytes"], 878'078'976);
  EXPECT_LT(json["checkpoint_bytes"], 878'078'976 + 200'000);
  EXPECT_EQ(json["flops_per_token"], 796'866'048);
  EXPECT_EQ(json["nope_layers"], (std::vector<int>{3, 7, 11, 15, 19, 23, 27}));
  EXPECT_NE(stacklab({"params", experiments + "stack-100m.json"}).out.find("101,353,728"), std::string::npos);
}

TEST(Params, OtherLengthsAndChangedKeys) {
  const std::string config = experiments + "stack-100m.json";
  EXPECT_EQ(stacklab({"params", config, "--json", "--set", "model.max_seq_len=8192"}).json()["flops_per_token"],
            1'363'097'088);
  EXPECT_EQ(stacklab({"params", config, "--json", "--set", "model.max_seq_len=8192", "--length=2048"})
                .json()["flops_per_token"],
            796'866'048);
  const Json mha =
      stacklab({"params", config, "--json", "--set", "model.n_kv_heads=8", "--set", "model.tie_embeddings=false"})
          .json();
  EXPECT_EQ(mha["kv_bytes_per_token"], 61'440);
  EXPECT_EQ(mha["total"], 118'130'944 + 11'796'480);
  EXPECT_EQ(stacklab({"params", config, "--json", "--set", "optim.matrices=adamw"}).json()["muon"], 0);
}

TEST(Params, EveryExperiment) {
  for (const auto& entry : std::filesystem::directory_iterator(experiments)) {
    const Answer answer = stacklab({"params", entry.path().string(), "--json"});
    EXPECT_EQ(answer.code, 0) << answer.err;
    EXPECT_GT(answer.json()["total"].get<std::int64_t>(), 0);
  }
}

TEST(Params, Refusals) {
  const TemporaryFolder folder;
  put_file(folder / "typo.json", R"({"model":{"n_layer":3}})");
  const std::string config = experiments + "stack-100m.json";
  const std::tuple<std::vector<std::string>, int, std::string_view> cases[] = {
      {{"nowhere.json"}, 1, "nowhere.json"},
      {{folder.path().string()}, 1, folder.path().c_str()},
      {{(folder / "typo.json").string()}, 2, "did you mean \"model.n_layers\"?"},
      {{config, "--set", "model.n_kv_heads=3"}, 2, "model.n_kv_heads"},
      {{config, "--set", "model.n_layers=1e12"}, 2, "model.n_layers"},
      {{config, "--set", "nonsense"}, 2, "section.key=value"},
      {{config, "--set", "model.mixer=mla"}, 2, "model.mixer: mla is not in this build"},
      {{config, "--length", "2049"}, 2, "--length"},
      {{config, "--seed", "-1"}, 2, "train.seed"},
      {{config, "--threads", "x"}, 2, "--threads"},
      {{config, "--device", "gpu"}, 2, "run.device"},
  };
  for (const auto& [words, code, message] : cases) {
    std::vector<std::string> all = words;
    all.insert(all.begin(), "params");
    const Answer answer = stacklab(all);
    EXPECT_EQ(answer.code, code) << answer.err;
    EXPECT_NE(answer.err.find(message), std::string::npos) << answer.err;
    EXPECT_EQ(answer.out, "");
  }
}

}  // namespace
}  // namespace stacklab::cli
