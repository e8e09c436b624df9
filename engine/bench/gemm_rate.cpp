#include "engine/bench/gemm_rate.h"

#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/atomic_file.h"
#include "engine/base/environment.h"
#include "engine/base/log.h"
#include "engine/bench/gemm.h"
#include "engine/bench/instruction_set.h"

namespace stacklab {
namespace {

constexpr std::int64_t tokens = 256;  // of the products that are measured
constexpr double seconds = 0.02;      // for each of them
constexpr std::int64_t file_limit = 1 << 20;
constexpr std::size_t entries_kept = 64;  // a workspace that travels, and builds that change

nlohmann::json read_rates(const std::filesystem::path& file) {
  const auto text = read_file(file, file_limit);
  if (!text) return nlohmann::json::array();
  nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  return json.is_array() ? json : nlohmann::json::array();
}

bool same(const nlohmann::json& a, const nlohmann::json& key) {
  if (!a.is_object()) return false;
  for (const auto& [name, value] : key.items())
    if (!a.contains(name) || a[name] != value) return false;
  return true;
}

}  // namespace

Result<double> gemm_rate(const std::filesystem::path& workspace, int threads, DType stored) {
  const std::vector<std::string> sets = bench::instruction_sets();
  if (sets.empty()) return failed("this processor has none of the instruction sets that the CPU backend needs");
  const std::filesystem::path file = workspace / "gemm_rates.json";
  const nlohmann::json key = {{"cpu", cpu_model()},
                              {"fingerprint", environment_fingerprint(base_library_versions())},
                              {"isa", sets.front()},
                              {"type", std::string(name_of(stored))},
                              {"threads", threads}};
  nlohmann::json rates = read_rates(file);
  for (const nlohmann::json& entry : rates)
    if (same(entry, key) && entry.contains("flops_per_second") && entry["flops_per_second"].is_number() &&
        entry["flops_per_second"].get<double>() > 0)
      return entry["flops_per_second"].get<double>();

  const ModelConfig stack_100m;
  const auto bench = bench_gemm(training_products(stack_100m, tokens, 0),
                                {.threads = threads, .isa = {}, .stored = stored, .seconds = seconds, .report = {}});
  if (!bench) return tl::unexpected(bench.error());
  const double rate = gemm_flops_per_second(*bench);
  nlohmann::json entry = key;
  entry["flops_per_second"] = rate;
  rates.push_back(entry);
  while (rates.size() > entries_kept) rates.erase(rates.begin());
  if (Status s = write_file_atomically(file, rates.dump(2) + "\n"); !s)
    log_warning("the rate of matrix products is not kept: {}", s.error().message());
  return rate;
}

}  // namespace stacklab
