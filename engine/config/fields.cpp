#include "engine/config/fields.h"

#include <type_traits>
#include <utility>

namespace stacklab {
namespace {

// Largest sizes. Together they keep every product that the engine forms (parameters, FLOPs of a token, bytes of a
// cache) inside 63 bits.
constexpr double most_vocabulary = 1 << 24;
constexpr double most_width = 1 << 17;
constexpr double most_layers = 1024;
constexpr double most_heads = 4096;
constexpr double most_head_dim = 4096;
constexpr double most_intermediate = 1 << 19;
constexpr double most_positions = 1 << 22;
constexpr double most_tokens = 1e15;
constexpr double largest_count = 9'007'199'254'740'992.0;  // 2^53: exact as a number in any JSON reader

FieldRules between(double min, double max) { return {min, max, false, {}}; }
FieldRules above(double min, double max) { return {min, max, true, {}}; }
FieldRules one_of(std::vector<std::string> choices) {
  FieldRules rules;
  rules.choices = std::move(choices);
  return rules;
}
FieldRules any_text() { return {}; }

class List {
 public:
  std::vector<Field> fields;

  template <class T>
  Field& add(std::string_view key, T& value, std::string_view unit, FieldRules rules, std::string_view help) {
    fields.push_back({prefix_ + std::string(key), &value, unit, help, std::move(rules), {}, identity_, false});
    return fields.back();
  }
  template <class Config>
  void section(std::string_view key, Config& config) {
    const std::string outer = prefix_;
    prefix_ += std::string(key) + ".";
    list(*this, config);
    prefix_ = outer;
  }
  void operational() { identity_ = false; }
  void identifying() { identity_ = true; }

 private:
  std::string prefix_;
  bool identity_ = true;
};

void list(List& l, ModelConfig& c) {
  l.add("vocab_size", c.vocab_size, "tokens", between(1, most_vocabulary), "Size of the vocabulary; 256 for bytes");
  l.add("d_model", c.d_model, "", between(1, most_width), "Width of the residual stream");
  l.add("n_layers", c.n_layers, "", between(1, most_layers), "Number of blocks");
  l.add("n_heads", c.n_heads, "", between(1, most_heads), "Query heads of a block");
  l.add("n_kv_heads", c.n_kv_heads, "", between(1, most_heads),
        "Key and value heads of a block; must divide the query heads");
  l.add("head_dim", c.head_dim, "", between(2, most_head_dim),
        "Width of a head; even, since rotary positions turn pairs");
  l.add("intermediate", c.intermediate, "", between(1, most_intermediate), "Hidden width of the feed-forward part");
  l.add("max_seq_len", c.max_seq_len, "tokens", between(1, most_positions), "Longest context");
  l.add("rope_theta", c.rope_theta, "", above(0, 1e15), "Base of the rotary frequencies");
  l.add("nope_every", c.nope_every, "layers", between(0, most_layers), "Every n-th layer has no rotary positions")
      .zero_word = "off";
  l.add("norm_eps", c.norm_eps, "", between(0, 1), "Added to the mean square in RMS norms");
  l.add("qk_norm", c.qk_norm, "", {}, "RMS norm of every query and key head");
  l.add("tie_embeddings", c.tie_embeddings, "", {}, "The output head shares the embedding's matrix");
  l.add("z_loss_coef", c.z_loss_coef, "", between(0, 1), "Weight of the squared log-sum-exp in the loss").zero_word =
      "off";
  l.add("logit_soft_cap", c.logit_soft_cap, "", between(0, 1e6), "Bounds the output logits smoothly").zero_word = "off";
  l.add("attn_soft_cap", c.attn_soft_cap, "", between(0, 1e6), "Bounds the attention logits smoothly").zero_word =
      "off";
  l.add("mixer", c.mixer, "", one_of({"gqa", "mla", "conv"}), "How tokens of a document are mixed");
  l.add("attn_every", c.attn_every, "layers", between(0, most_layers), "In a hybrid, every n-th layer is attention")
      .zero_word = "off";
  l.add("ffn", c.ffn, "", one_of({"swiglu", "moe"}), "The feed-forward part");
}

void list(List& l, ScheduleConfig& c) {
  l.add("kind", c.kind, "", one_of({"wsd", "constant"}), "Warm-up, stable, decay; or constant after the warm-up");
  l.add("warmup_tokens", c.warmup_tokens, "tokens", between(0, most_tokens), "The rate climbs to its peak over these");
  l.add("decay_tokens", c.decay_tokens, "tokens", between(0, most_tokens), "The rate falls over the last ones");
  l.add("shape", c.shape, "", one_of({"1-sqrt", "linear", "cosine"}), "Form of the decay");
  l.add("min_factor", c.min_factor, "", between(0, 1), "Part of the peak rate that the decay ends at").added_later =
      true;
}

void list(List& l, OptimConfig& c) {
  l.add("matrices", c.matrices, "", one_of({"muon", "adamw"}), "What trains the hidden matrices");
  l.add("muon_lr", c.muon_lr, "", above(0, 100), "Peak rate of Muon");
  l.add("adam_lr", c.adam_lr, "", above(0, 100), "Peak rate of AdamW");
  l.add("muon_momentum", c.muon_momentum, "", between(0, 0.999999), "Momentum of Muon");
  l.add("muon_scale", c.muon_scale, "", one_of({"match_rms", "original"}), "How Muon's update is scaled");
  l.add("ns_steps", c.ns_steps, "", between(1, 20), "Newton-Schulz steps of Muon");
  l.add("adam_beta1", c.adam_beta1, "", between(0, 0.999999), "Decay of the first moment");
  l.add("adam_beta2", c.adam_beta2, "", between(0, 0.99999999), "Decay of the second moment");
  l.add("adam_eps", c.adam_eps, "", between(0, 1), "Added to the root of the second moment");
  l.add("adam_state", c.adam_state, "", one_of({"fp32", "int8", "bf16"}),
        "Moments of AdamW; bf16 in mixed precision without fp32 masters. The two small ones are rounded by chance")
      .added_later = true;
  l.add("weight_decay", c.weight_decay, "", between(0, 10), "On hidden matrices; none on embeddings and gains");
  l.add("grad_clip", c.grad_clip, "", between(0, 1e9), "Largest global norm of the gradient").zero_word = "off";
  l.add("qk_clip", c.qk_clip, "", between(0, 1e9), "Attention logit above which queries and keys shrink").zero_word =
      "off";
  l.section("schedule", c.schedule);
}

void list(List& l, DataConfig& c) {
  l.add("corpus", c.corpus, "", any_text(),
        "A corpus of the catalogue or the workspace, or the path of text, a recipe or shards");
  l.add("tokenizer", c.tokenizer, "", any_text(),
        "bytes, a tokenizer of the workspace, or the path of a tokenizer.json");
  l.add("mixture", c.mixture, "", any_text(), "Weights of several corpora, kjv:3,tinyworld:1; empty: one corpus");
  l.add("validation_fraction", c.validation_fraction, "", between(0, 0.9),
        "Share of documents that is held out, chosen by hash");
  l.add("packing", c.packing, "", one_of({"fragment", "truncate", "drop"}),
        "What happens to documents longer than a window");
}

void list(List& l, TrainConfig& c) {
  l.add("seed", c.seed, "", between(0, largest_count), "Decides every random number of the run");
  l.add("tokens", c.tokens, "tokens", between(0, most_tokens), "Length of the run");
  l.add("batch_tokens", c.batch_tokens, "tokens", between(1, 1 << 30), "Size of one update, over all micro-batches");
  l.add("seq_len", c.seq_len, "tokens", between(2, most_positions), "Length of a packed row");
  l.add("precision", c.precision, "", one_of({"fp32", "bf16", "fp64"}),
        "Of parameters and products; fp64 on the reference only");
  l.add("parent", c.parent, "", any_text(), "Of a fork: the run and step that it goes on from, 0123456789ab@400")
      .added_later = true;
}

void list(List& l, BudgetConfig& c) {
  l.add("tokens", c.tokens, "tokens", between(0, most_tokens), "The run stops after these").zero_word = "off";
  l.add("hours", c.hours, "h", between(0, 1e6), "The run stops after so long").zero_word = "off";
  l.add("usd", c.usd, "USD", between(0, 1e9), "The run stops when it has cost so much").zero_word = "off";
  l.add("usd_per_hour", c.usd_per_hour, "USD", between(0, 1e6), "Price of an hour, for the budget in money");
}

void list(List& l, RunOptions& c) {
  l.add("device", c.device, "", one_of({"auto", "cpu", "cuda", "cuda-emulated", "reference"}), "Where it runs");
  l.add("threads", c.threads, "", between(0, 1024), "Threads for work on the CPU").zero_word = "auto";
  l.add("micro_batch", c.micro_batch, "rows", between(0, 1 << 20), "Rows computed at once").zero_word = "auto";
  l.add("loss_chunk", c.loss_chunk, "tokens", between(0, 1 << 30), "Tokens of the loss head computed at once")
      .zero_word = "auto";
  l.add("recompute", c.recompute, "", one_of({"none", "swiglu", "block"}),
        "What backward computes again instead of keeping: the product in every FFN, which costs next to nothing, or "
        "whole blocks");
  l.add("recompute_every", c.recompute_every, "blocks", between(1, most_layers),
        "With recompute block: blocks of a stretch that keeps its input alone");
  l.add("eval_every", c.eval_every, "steps", between(0, 1e9), "Between evaluations; 0: only at the end");
  l.add("eval_tokens", c.eval_tokens, "tokens", between(1, most_tokens), "Most tokens of one evaluation");
  l.add("checkpoint_every", c.checkpoint_every, "steps", between(0, 1e9),
        "Between checkpoints; 0: only at the end and on stop");
  l.add("keep_last", c.keep_last, "", between(0, 1e6),
        "Newest checkpoints kept; the last one and milestones always stay");
  l.add("keep_milestones", c.keep_milestones, "", any_text(),
        "Steps with a checkpoint that stays, for example 1000,2000; the ends of the stable phase and of the run are "
        "some");
  l.add("log_every", c.log_every, "steps", between(1, 1e9), "Between recorded steps");
  l.add("memory_guard", c.memory_guard, "", {}, "Refuse a run whose plan does not fit into free memory");
  l.add("disk_guard", c.disk_guard, "", {}, "Refuse a run whose checkpoints do not fit into the free disk");
  l.section("budget", c.budget);
}

}  // namespace

std::vector<Field> fields_of(RunConfig& config) {
  List l;
  l.operational();
  l.add("name", config.name, "", any_text(), "What people call the run: 1 to 80 letters, digits, '-', '_' or '.'");
  l.identifying();
  l.section("model", config.model);
  l.section("optim", config.optim);
  l.section("data", config.data);
  l.section("train", config.train);
  l.operational();
  l.section("run", config.run);
  return std::move(l.fields);
}

FieldValue value_of(const Field& field) {
  return std::visit([](const auto* value) -> FieldValue { return *value; }, field.value);
}

std::vector<FieldInfo> field_infos() {
  RunConfig defaults;
  static constexpr std::string_view types[] = {"integer", "number", "boolean", "text"};
  std::vector<FieldInfo> infos;
  for (Field& field : fields_of(defaults))
    infos.push_back({std::move(field.key), types[field.value.index()], field.unit, field.help, std::move(field.rules),
                     field.zero_word, field.identity, value_of(field)});
  return infos;
}

}  // namespace stacklab
