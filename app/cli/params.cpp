#include <fmt/format.h>

#include <memory>

#include "app/cli/common.h"
#include "app/cli/console.h"
#include "engine/base/text.h"
#include "engine/config/config_io.h"
#include "engine/service/model_facts.h"

namespace stacklab::cli {
namespace {

struct Options {
  std::string config;
  std::optional<std::int64_t> length;
};

Status params(Context& context, const Options& options) {
  const Result<RunConfig> config = config_of(options.config, context.common);
  if (!config) return tl::unexpected(config.error());
  if (Status whole = check_model(*config); !whole) return whole;
  const ModelConfig& m = config->model;
  if (Status layers = check_layers(m); !layers) return layers;
  const std::int64_t length = options.length.value_or(m.max_seq_len);
  if (length < 1 || length > m.max_seq_len)
    return usage_error(fmt::format("--length: {} is not between 1 and model.max_seq_len, {}", length, m.max_seq_len));

  const ModelCounts c = count_parameters(m);
  const TokenFlops flops = flops_per_token(m, length);
  const std::int64_t muon = config->optim.matrices == "muon" ? c.hidden_matrices : 0;
  const std::int64_t cache = kv_bytes_per_token(m);

  std::vector<std::vector<std::string>> rows = {{"", "parameters"}};
  const auto row = [&rows](std::string name, std::int64_t n) { rows.push_back({std::move(name), format_integer(n)}); };
  row("total", c.total);
  row("  body", c.body);
  row("    attention of a layer", c.attention_per_layer);
  row("    feed-forward of a layer", c.ffn_per_layer);
  row("    norms of a layer", c.norms_per_layer);
  row("  embedding", c.embedding);
  row(m.tie_embeddings ? "  head (is the embedding)" : "  head", c.head);
  row("trained by Muon", muon);
  row("trained by AdamW", c.total - muon);
  context.console.print(table(rows, {false, true}));
  const std::int64_t checkpoint = checkpoint_bytes(*config);
  context.console.print(
      fmt::format("Checkpoint   {} bytes: parameters and the state of the optimiser\n", format_integer(checkpoint)));
  context.console.print(fmt::format("KV cache     {} bytes per token in 16 bits\n", format_integer(cache)));
  context.console.print(fmt::format("FLOPs        {} per token at length {}: body {}, attention {}, head {}\n",
                                    format_integer(flops.total()), format_integer(length), format_integer(flops.body),
                                    format_integer(flops.attention), format_integer(flops.head)));

  JsonWriter w(2);
  w.begin_object();
  w.member("name", config->name);
  w.member("total", c.total);
  w.member("body", c.body);
  w.member("embedding", c.embedding);
  w.member("head", c.head);
  w.member("layer", c.layer);
  w.member("attention_per_layer", c.attention_per_layer);
  w.member("ffn_per_layer", c.ffn_per_layer);
  w.member("norms_per_layer", c.norms_per_layer);
  w.member("muon", muon);
  w.member("adamw", c.total - muon);
  w.member("checkpoint_bytes", checkpoint);
  w.member("kv_bytes_per_token", cache);
  w.member("flops_per_token", flops.total());
  w.key("flops");
  w.begin_object();
  w.member("length", length);
  w.member("body", flops.body);
  w.member("attention", flops.attention);
  w.member("head", flops.head);
  w.end_object();
  w.key("nope_layers");
  w.begin_array();
  for (const std::int64_t layer : nope_layers(m)) w.value(layer);
  w.end_array();
  w.end_object();
  context.console.print_json(w.text());
  return {};
}

}  // namespace

Verb params_verb() {
  const auto options = std::make_shared<Options>();
  return {"params",
          "Exact parameter counts of a config's model, and what a token costs",
          "stacklab params experiments/stack-100m.json",
          {{"CONFIG", "", "A config file", &options->config, true},
           {"--length", "N", "Tokens of context for the FLOPs (default: max_seq_len)", &options->length}},
          {},
          [options](Context& context) { return params(context, *options); },
          {}};
}

}  // namespace stacklab::cli
