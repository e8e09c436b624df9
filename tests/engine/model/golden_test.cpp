// Whole models against values of an independent implementation in double (tests/golden/model): logits, losses, max
// logits and every gradient, on the reference in double and in float.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/base/safetensors.h"
#include "tests/engine/model/model_harness.h"

namespace stacklab::test {
namespace {

namespace fs = std::filesystem;
constexpr double eps32 = 1.2e-7;

fs::path golden_folder() { return fs::path(STACKLAB_SOURCE_DIR) / "tests/golden/model"; }

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(golden_folder()))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

template <class T>
std::vector<T> values(const SafetensorsEntry& e) {
  const auto as = [&]<class From>(From) {
    std::vector<T> out(static_cast<std::size_t>(e.elements()));
    for (std::size_t i = 0; i < out.size(); ++i) {
      From v;
      std::memcpy(&v, e.bytes.data() + i * sizeof(From), sizeof(From));
      out[i] = static_cast<T>(v);
    }
    return out;
  };
  switch (e.type) {
    case SafetensorsType::f64:
      return as(double{});
    case SafetensorsType::f32:
      return as(float{});
    case SafetensorsType::i32:
      return as(std::int32_t{});
    default:
      throw std::runtime_error("unexpected type of " + e.name);
  }
}

double largest(const std::vector<double>& v) {
  double m = 0;
  for (const double x : v) m = std::max(m, std::abs(x));
  return m;
}

void expect_close(const std::string& what, const std::vector<double>& got, const std::vector<double>& oracle,
                  double allowed) {
  ASSERT_EQ(got.size(), oracle.size()) << what;
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - oracle[i]) <= worst)) worst = std::abs(got[i] - oracle[i]), at = i;
  EXPECT_LE(worst, allowed) << what << " worst at " << at << ": " << got[at] << " instead of " << oracle[at];
}

ModelConfig model_config(const nlohmann::json& j) {
  ModelConfig c;
  c.vocab_size = j.at("vocab_size"), c.d_model = j.at("d_model"), c.n_layers = j.at("n_layers"),
  c.n_heads = j.at("n_heads");
  c.n_kv_heads = j.at("n_kv_heads"), c.head_dim = j.at("head_dim"), c.intermediate = j.at("intermediate");
  c.max_seq_len = j.at("max_seq_len"), c.rope_theta = j.at("rope_theta"), c.nope_every = j.at("nope_every");
  c.norm_eps = j.at("norm_eps"), c.qk_norm = j.at("qk_norm"), c.tie_embeddings = j.at("tie_embeddings");
  c.z_loss_coef = j.at("z_loss_coef"), c.logit_soft_cap = j.at("logit_soft_cap"),
  c.attn_soft_cap = j.at("attn_soft_cap");
  return c;
}

struct Golden {
  nlohmann::json json;
  Safetensors file;
  PackedTokens batch;

  explicit Golden(const std::string& name) {
    std::ifstream(golden_folder() / (name + ".json")) >> json;
    auto opened = Safetensors::open(golden_folder() / (name + ".safetensors"));
    if (!opened) throw std::runtime_error(opened.error().message());
    file = std::move(*opened);
    const auto& ids = *file.find("in.ids");
    batch.ids = values<std::int32_t>(ids);
    batch.targets = values<std::int32_t>(*file.find("in.targets"));
    const auto width = static_cast<std::int32_t>(ids.shape[1]), total = static_cast<std::int32_t>(batch.ids.size());
    if (const auto* p = file.find("in.position_ids")) {
      batch.positions = values<std::int32_t>(*p);
    } else {
      for (std::int32_t t = 0; t < total; ++t) batch.positions.push_back(t % width);
    }
    if (const auto* cu = file.find("in.cu_seqlens")) {
      batch.cu_seqlens = values<std::int32_t>(*cu);
    } else {
      for (std::int32_t t = 0; t <= total; t += width) batch.cu_seqlens.push_back(t);
    }
  }
};

class GoldenModel : public testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(GoldenModel, AgreesWithTheOracle) {
  const auto& [name, in_double] = GetParam();
  const Golden golden(name);
  const ModelConfig config = model_config(golden.json.at("config"));
  const auto& measured = golden.json.at("measured_fp32_vs_fp64");
  ModelOnBatch m(config, in_double ? DType::f64 : DType::f32, static_cast<std::int64_t>(golden.batch.ids.size()),
                 static_cast<std::int64_t>(golden.batch.cu_seqlens.size()) - 1, 7);
  std::size_t parameters_in_file = 0;
  for (const auto& e : golden.file.entries()) parameters_in_file += e.name.starts_with("w.");
  const auto& table = m.model().parameters().parameters;
  EXPECT_EQ(table.size(), parameters_in_file);
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto* e = golden.file.find("w." + table[i].name);
    ASSERT_NE(e, nullptr) << table[i].name;
    m.set_parameter(i, values<double>(*e));
  }
  m.set_batch(golden.batch);
  m.run();

  const auto allowed = [&](const std::vector<double>& oracle, double measured_abs) {
    return in_double ? 1e-9 * largest(oracle) : std::max(8 * measured_abs, 4 * eps32 * largest(oracle));
  };
  const auto logits = values<double>(*golden.file.find("out.logits"));
  expect_close("logits", m.logits(), logits, allowed(logits, measured.at("logits")[0]));
  const auto& scalars = golden.json.at("scalars");
  const std::vector<double> losses = {scalars.at("loss"), scalars.at("ce")};
  expect_close("loss, ce", {m.loss(), m.ce()}, losses, allowed(losses, measured.at("loss")[0]));
  if (const auto* e = golden.file.find("out.max_logit")) {
    const auto oracle = values<double>(*e);
    // Max logits come out of the same sums as the logits: their measured relative error is taken.
    expect_close("max logit", m.max_logits(), oracle,
                 allowed(oracle, measured.at("logits")[1].get<double>() * largest(oracle)));
  }
  double square_sum = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto oracle = values<double>(*golden.file.find("g." + table[i].name));
    const auto g = m.gradient(i);
    // The oracle's gradients were rounded to float.
    const double relative =
        in_double ? eps32 : std::max(8 * measured.at("grads_worst_rel_to_own_max").get<double>(), 4 * eps32);
    expect_close("gradient of " + table[i].name, g, oracle, relative * largest(oracle));
    for (const double x : g) square_sum += x * x;
  }
  const double norm = golden.json.at("grad_norm");
  EXPECT_NEAR(std::sqrt(square_sum), norm,
              (in_double ? 1e-9 : std::max(8 * measured.at("grads_norm_rel").get<double>(), 4 * eps32)) * norm);
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenModel, testing::Combine(testing::ValuesIn(cases()), testing::Bool()),
                         [](const auto& i) {
                           return std::get<0>(i.param) + (std::get<1>(i.param) ? "_fp64" : "_fp32");
                         });

}  // namespace
}  // namespace stacklab::test
