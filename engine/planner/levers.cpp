#include "engine/planner/levers.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "engine/base/text.h"
#include "engine/config/config_io.h"
#include "engine/model/counts.h"
#include "engine/program/memory_plan.h"
#include "engine/train/train_step.h"

namespace stacklab {
namespace {

constexpr std::int64_t least_chunk = 64;  // tokens: below it products of the head have too few rows

struct Planned {
  std::int64_t bytes = 0;
  double flops = 0;
};

Planned planned(const RunConfig& config, const Backend& backend) {
  const LoaderShape shape = loader_shape(config).value();
  const TrainPrograms programs(config, shape, backend);
  return {plan_memory(programs.set).total(), programs.step_flops(shape.accumulation)};
}

// One step of a lever, milder ones first.
struct Choice {
  std::vector<std::string> settings;
  std::string what, price;
};

std::vector<Choice> smaller_chunks(const RunConfig& c, const LoaderShape& shape) {
  std::vector<Choice> choices;
  const std::int64_t now = head_chunk(c, shape);
  for (std::int64_t chunk = 1 << 20; chunk >= least_chunk; chunk /= 2)
    if (chunk < now)
      choices.push_back({{fmt::format("run.loss_chunk={}", chunk)},
                         fmt::format("{} tokens of the loss head at once instead of {}", chunk, now),
                         fmt::format("the head's matrix is read {} times in a micro-batch instead of {}",
                                     (shape.tokens() + chunk - 1) / chunk, (shape.tokens() + now - 1) / now)});
  return choices;
}

std::vector<Choice> smaller_micro_batches(const RunConfig&, const LoaderShape& shape) {
  std::vector<Choice> choices;
  const std::int64_t rows = shape.micro_batch * shape.accumulation;
  for (std::int64_t micro = shape.micro_batch - 1; micro > 0; --micro)
    if (rows % micro == 0)
      choices.push_back({{fmt::format("run.micro_batch={}", micro)},
                         fmt::format("{} of {} tokens at once instead of {}", micro, shape.seq_len, shape.micro_batch),
                         fmt::format("gradients are added up over {} micro-batches instead of {}", rows / micro,
                                     shape.accumulation)});
  return choices;
}

std::vector<Choice> more_recompute(const RunConfig& c, const LoaderShape&) {
  std::vector<Choice> choices;
  if (c.run.recompute == "none")
    choices.push_back({{"run.recompute=swiglu"}, "the product in each FFN is computed again in backward", ""});
  for (const std::int64_t every : {1, 2, 3, 4})
    if ((c.run.recompute != "block" || every != c.run.recompute_every) && every < c.model.n_layers)
      choices.push_back({{"run.recompute=block", fmt::format("run.recompute_every={}", every)},
                         every == 1 ? std::string("each block is computed again in backward")
                                    : fmt::format("blocks are computed again in backward, {} at a time", every),
                         ""});
  return choices;
}

std::vector<Choice> smaller_state(const RunConfig& c, const char* state, const char* what) {
  if (c.optim.adam_state == state) return {};
  return {{{fmt::format("optim.adam_state={}", state)}, what, "it is another run, and its curve a little different"}};
}
std::vector<Choice> int8_state(const RunConfig& c, const LoaderShape&) {
  return smaller_state(c, "int8", "AdamW keeps its moments in 8 bits");
}
std::vector<Choice> bf16_state(const RunConfig& c, const LoaderShape&) {
  return smaller_state(c, "bf16", "AdamW keeps its moments in bf16, and in mixed precision no fp32 masters");
}

struct Kind {
  std::string_view name;
  std::vector<Choice> (*choices)(const RunConfig& config, const LoaderShape& shape);
  std::string_view exhausted;  // said where there are no choices
};
constexpr Kind kinds[] = {
    {"loss_chunk", smaller_chunks, "the loss head is in small chunks already"},
    {"micro_batch", smaller_micro_batches, "a micro-batch is one sequence already"},
    {"recompute", more_recompute, "blocks are computed again already"},
    {"adam_int8", int8_state, "AdamW keeps its moments in 8 bits already"},
    {"adam_bf16", bf16_state, "AdamW keeps its moments in bf16 already"},
};

RunConfig with(const RunConfig& config, const std::vector<std::string>& settings) {
  RunConfig changed = config;
  for (const std::string& setting : settings)
    if (Status set = set_field(changed, setting); !set) throw std::logic_error(set.error().message());
  return changed;
}

}  // namespace

std::vector<std::string> Levers::enough() const {
  std::vector<std::string> settings;
  if (peak_bytes <= budget_bytes) return settings;
  for (const Lever& lever : levers) {
    // A later lever on the same key takes the place of an earlier one.
    for (const std::string& setting : lever.settings) {
      const std::string key = setting.substr(0, setting.find('=') + 1);
      std::erase_if(settings, [&](const std::string& s) { return s.starts_with(key); });
      settings.push_back(setting);
    }
    if (lever.fits && !lever.settings.empty()) return settings;
  }
  return {};
}

Result<Levers> memory_levers(const RunConfig& config, std::int64_t budget) {
  if (Status layers = check_layers(config.model); !layers) return tl::unexpected(layers.error());
  const auto backend = training_backend(config);
  if (!backend) return tl::unexpected(backend.error());
  if (const auto shape = loader_shape(config); !shape) return tl::unexpected(shape.error());
  const Planned as_it_is = planned(config, **backend);
  Levers all;
  all.peak_bytes = as_it_is.bytes, all.budget_bytes = budget, all.flops = as_it_is.flops;
  RunConfig together = config;
  std::int64_t reached = as_it_is.bytes;
  for (const Kind& kind : kinds) {
    Lever lever;
    lever.name = kind.name;
    std::optional<Choice> best;
    std::int64_t least = reached;
    const std::vector<Choice> choices = kind.choices(together, loader_shape(together).value());
    std::string refusal;
    for (const Choice& choice : choices) {
      const RunConfig changed = with(together, choice.settings);
      if (Status ok = check_step(changed); !ok) {
        refusal = ok.error().what;
        continue;
      }
      const std::int64_t bytes = planned(changed, **backend).bytes;
      if (bytes >= least) continue;
      least = bytes, best = choice;
      if (bytes <= budget) break;
    }
    lever.why_not = choices.empty()   ? std::string(kind.exhausted)
                    : best            ? ""
                    : refusal.empty() ? "it saves nothing here"
                                      : refusal;
    if (best) {
      together = with(together, best->settings);
      reached = least;
      const Planned alone = planned(with(config, best->settings), **backend);
      lever.what = best->what, lever.price = best->price, lever.settings = best->settings;
      lever.saved_bytes = as_it_is.bytes - alone.bytes;
      lever.more_flops = alone.flops / as_it_is.flops - 1;
    }
    lever.peak_bytes = reached;
    lever.fits = reached <= budget;
    all.levers.push_back(std::move(lever));
  }
  all.levers.push_back({.name = "sharding",
                        .what = {},
                        .settings = {},
                        .why_not = "this build trains on one device, and there is nothing to share with",
                        .price = {},
                        .peak_bytes = reached,
                        .fits = reached <= budget});
  return all;
}

std::string to_text(const Levers& levers) {
  std::string text;
  for (const Lever& lever : levers.levers) {
    if (lever.settings.empty()) continue;
    text += fmt::format("{}{} saves {}", text.empty() ? "" : "; ", fmt::join(lever.settings, " "),
                        format_bytes(static_cast<double>(lever.saved_bytes)));
    text += lever.more_flops > 0 ? fmt::format(" for {:.1f} % more work", 100 * lever.more_flops) : " for no more work";
  }
  const std::vector<std::string> enough = levers.enough();
  if (enough.empty()) return text + (text.empty() ? "" : "; ") + "all together are not enough";
  std::string words;
  for (const std::string& setting : enough) words += " --set " + setting;
  return text + "; it fits with" + words;
}

}  // namespace stacklab
