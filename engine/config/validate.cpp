#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/config/config_io.h"
#include "engine/config/fields.h"
#include "engine/config/mixture.h"
#include "engine/config/values.h"
#include "kernels/backend.h"

namespace stacklab {
namespace {

// The name becomes part of a folder's name on any file system.
Status check_name(const std::string& name) {
  const auto fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  const bool ok = !name.empty() && name.size() <= 80 && name[0] != '.' && name[0] != '-' &&
                  std::all_of(name.begin(), name.end(), fine);
  if (ok) return {};
  return usage_error(fmt::format("name: \"{}\" cannot name a folder", printable(name)),
                     "1 to 80 letters, digits, '-', '_' or '.', and the first neither '.' nor '-'");
}

Status check_ranges(const RunConfig& config) {
  RunConfig copy = config;
  for (const Field& field : fields_of(copy))
    if (Status ok = check_value(field); !ok) return ok;
  return {};
}

// How a step is cut into rows and micro-batches.
Status check_cut(const RunConfig& config) {
  const TrainConfig& t = config.train;
  if (t.seq_len > config.model.max_seq_len)
    return usage_error(
        fmt::format("train.seq_len: {} is longer than model.max_seq_len, {}", t.seq_len, config.model.max_seq_len));
  if (t.batch_tokens % t.seq_len != 0)
    return usage_error(
        fmt::format("train.batch_tokens: {} is not a multiple of train.seq_len, {}", t.batch_tokens, t.seq_len));
  const std::int64_t rows = t.batch_tokens / t.seq_len, micro = config.run.micro_batch;
  if (micro > 0 && rows % micro != 0)
    return usage_error(fmt::format("run.micro_batch: {} does not divide the {} rows of a batch", micro, rows));
  return {};
}

Status check_run(const RunConfig& config) {
  const TrainConfig& t = config.train;
  const ScheduleConfig& s = config.optim.schedule;
  if (t.tokens <= 0)
    return usage_error("train.tokens: the length of the run is missing",
                       "give the tokens to train on, for example 1600000");
  if (t.tokens < t.batch_tokens)
    return usage_error(fmt::format("train.tokens: {} is less than one batch of {}", t.tokens, t.batch_tokens));
  if (s.warmup_tokens > t.tokens)
    return usage_error(
        fmt::format("optim.schedule.warmup_tokens: {} is longer than the run, {} tokens", s.warmup_tokens, t.tokens));
  if (s.kind == "wsd" && s.warmup_tokens + s.decay_tokens > t.tokens)
    return usage_error(
        fmt::format("optim.schedule: a warm-up of {} and a decay of {} tokens do not fit into a run of {}",
                    s.warmup_tokens, s.decay_tokens, t.tokens));
  if (s.kind == "constant" && s.decay_tokens > 0)
    return usage_error("optim.schedule.decay_tokens: a constant schedule has no decay", "set it to 0, or kind to wsd");
  if (config.data.corpus.empty() && config.data.mixture.empty())
    return usage_error("data.corpus: no corpus is named", "see: stacklab corpus list");
  return {};
}

Status check_budget(const RunConfig& config) {
  const BudgetConfig& b = config.run.budget;
  if (b.usd > 0 && b.usd_per_hour <= 0)
    return usage_error("run.budget.usd: the price of an hour is missing",
                       "give it, for example run.budget.usd_per_hour=2.5");
  if (b.tokens > 0 && b.tokens < config.train.batch_tokens)
    return usage_error(
        fmt::format("run.budget.tokens: {} is less than one batch of {}", b.tokens, config.train.batch_tokens));
  return {};
}

// "0123456789ab@400"
Status check_parent(const std::string& parent) {
  if (parent.empty()) return {};
  const std::size_t at = parent.find('@');
  const auto step = at == std::string::npos ? std::nullopt : parse_int(std::string_view(parent).substr(at + 1));
  const bool hash = at == 12 && parent.find_first_not_of("0123456789abcdef") == at;
  if (hash && step && *step > 0) return {};
  return usage_error(fmt::format("train.parent: \"{}\" names no step of a run", printable(parent)),
                     "leave it to: stacklab fork RUN --at STEP");
}

// Before anything is fetched or written, not after.
Status check_device(const RunConfig& config) {
  const std::string& device = config.run.device;
  if (find_backend(device, config.train.precision == "fp64" ? DType::f64 : DType::f32)) return {};
  if (find_backend(device))
    return usage_error(fmt::format("run.device: {} does not compute in {}", device, config.train.precision),
                       "set run.device to auto, or train.precision to fp32");
  std::string known;
  for (const std::string_view name : backend_names()) known += (known.empty() ? "" : ", ") + std::string(name);
  return usage_error(fmt::format("run.device: {} is not in this build", device), "use auto, or one of: " + known);
}

Status check_data(const RunConfig& config) {
  const DataConfig& data = config.data;
  if (!data.mixture.empty())
    if (const auto parts = parse_mixture(data.mixture); !parts) return tl::unexpected(parts.error());
  if (data.tokenizer.empty())
    return usage_error("data.tokenizer: no tokenizer is named", "use bytes, or the name of one in the workspace");
  if (data.tokenizer == "bytes" && config.model.vocab_size < 256)
    return usage_error(fmt::format("model.vocab_size: {} does not cover the 256 bytes", config.model.vocab_size),
                       "set it to 256");
  return {};
}

}  // namespace

Status check_model(const RunConfig& config) {
  if (Status ok = check_ranges(config); !ok) return ok;
  if (Status ok = check_name(config.name); !ok) return ok;
  const ModelConfig& m = config.model;
  if (m.n_kv_heads > m.n_heads)
    return usage_error(fmt::format("model.n_kv_heads: {} is more than model.n_heads, {}", m.n_kv_heads, m.n_heads));
  if (m.n_heads % m.n_kv_heads != 0)
    return usage_error(fmt::format("model.n_kv_heads: {} does not divide model.n_heads, {}", m.n_kv_heads, m.n_heads));
  if (m.head_dim % 2 != 0)
    return usage_error(fmt::format("model.head_dim: {} is odd, and rotary positions turn pairs", m.head_dim),
                       "make it even");
  return {};
}

Status check_step(const RunConfig& config) {
  if (Status ok = check_model(config); !ok) return ok;
  if (Status ok = check_cut(config); !ok) return ok;
  const OptimConfig& o = config.optim;
  if (o.adam_state == "bf16" && o.matrices == "adamw" && config.train.precision == "bf16" && !config.model.qk_norm &&
      o.qk_clip > 0)
    return usage_error("optim.qk_clip: it rescales projections in fp32, and optim.adam_state bf16 keeps none",
                       "set optim.qk_clip to 0, model.qk_norm to true, or optim.adam_state to int8");
  return check_device(config);
}

Status validate(const RunConfig& config) {
  if (Status ok = check_step(config); !ok) return ok;
  if (Status ok = check_run(config); !ok) return ok;
  if (auto steps = milestones_of(config.run); !steps) return tl::unexpected(steps.error());
  if (Status ok = check_budget(config); !ok) return ok;
  if (Status ok = check_parent(config.train.parent); !ok) return ok;
  return check_data(config);
}

}  // namespace stacklab
