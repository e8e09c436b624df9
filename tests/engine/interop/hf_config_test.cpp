#include "engine/interop/hf_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/environment.h"
#include "tests/sanitized.h"
#include "tests/temporary_folder.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
const fs::path malformed = fs::path(STACKLAB_SOURCE_DIR) / "tests/golden/malformed/config";

TEST(HfConfig, EveryMalformedFileHasItsExpectedOutcome) {
  const nlohmann::json expected = nlohmann::json::parse(file_text(malformed / "expected.json"));
  std::size_t files = 0;
  for (const auto& one : expected["cases"]) {
    const std::string name = one["file"], why = one["why"];
    const std::int64_t before = peak_resident_bytes();
    const Result<HfConfig> read = read_hf_config(malformed / name);
    EXPECT_EQ(read.has_value(), one["outcome"] == "accepted")
        << name << ": " << why << (read ? "" : ": " + read.error().message());
    EXPECT_TRUE(read || read.error().what.find(name) != std::string::npos) << read.error().message();
    EXPECT_TRUE(sanitized || peak_resident_bytes() - before < 64 << 20) << name;
    ++files;
  }
  EXPECT_EQ(files, 39u);
}

ModelConfig model_of(const char* name) { return read_hf_config(malformed / name).value().model; }

TEST(HfConfig, BothSpellingsSayTheSame) {
  const ModelConfig m = model_of("00_valid_v4.json");
  EXPECT_EQ(m, model_of("01_valid_v5.json"));
  EXPECT_EQ(m.vocab_size, 389);
  EXPECT_EQ(m.d_model, 32);
  EXPECT_EQ(m.n_layers, 4);
  EXPECT_EQ(m.n_heads, 4);
  EXPECT_EQ(m.n_kv_heads, 2);
  EXPECT_EQ(m.head_dim, 16);
  EXPECT_EQ(m.intermediate, 64);
  EXPECT_EQ(m.max_seq_len, 128);
  EXPECT_EQ(m.rope_theta, 1e6);
  EXPECT_EQ(m.norm_eps, 1e-6);
  EXPECT_EQ(m.nope_every, 0);
  EXPECT_TRUE(m.qk_norm);
  EXPECT_TRUE(m.tie_embeddings);
}

TEST(HfConfig, Defaults) {
  EXPECT_EQ(model_of("03_no_head_dim_llama.json").head_dim, 8);
  EXPECT_FALSE(model_of("03_no_head_dim_llama.json").qk_norm);
  EXPECT_EQ(model_of("04_no_head_dim_qwen3.json").head_dim, 128);
  EXPECT_EQ(model_of("05_no_kv_heads_llama.json").n_kv_heads, 4);
  for (const char* file : {"06_no_theta.json", "27_theta_null.json"}) {
    const HfConfig config = read_hf_config(malformed / file).value();
    EXPECT_EQ(config.model.rope_theta, 10000);
    ASSERT_EQ(config.notes.size(), 1u) << file;
    EXPECT_NE(config.notes[0].find("rope_theta"), std::string::npos);
  }
  EXPECT_EQ(model_of("25_eps_zero.json").norm_eps, 0);
}

TEST(HfConfig, LayersWithoutRotaryPositions) {
  const auto with = [](const std::string& more) {
    return parse_hf_config(
        R"({"model_type":"smollm3","vocab_size":379,"hidden_size":32,"num_hidden_layers":5,"num_attention_heads":4,)"
        R"("num_key_value_heads":2,"intermediate_size":64,"max_position_embeddings":128,"rope_theta":5e4)" +
            more + "}",
        "config.json");
  };
  EXPECT_EQ(with("").value().model.nope_every, 4);
  EXPECT_TRUE(with("").value().model.tie_embeddings);
  EXPECT_EQ(with(R"(,"no_rope_layer_interval":2,"no_rope_layers":[1,0,1,0,1])").value().model.nope_every, 2);
  for (const char* other :
       {"[1,1,1,1,0]", "[1,1,1,0]", "[1,1,1,0,1,1]", "[]", "3", "[1,1,1,false,1]", "[1,1,1,\"0\",1]"})
    EXPECT_FALSE(with(R"(,"no_rope_layers":)" + std::string(other))) << other;
}

TEST(HfConfig, EveryPrefixIsRefused) {
  const std::string good = file_text(malformed / "01_valid_v5.json");
  const std::size_t end = good.find_last_of('}');
  for (std::size_t n = 0; n <= end; ++n) EXPECT_FALSE(parse_hf_config(std::string_view(good).substr(0, n), "c")) << n;
}

}  // namespace
}  // namespace stacklab
