// One typed config determines a run. Every struct has one field list (config/fields.h), from which JSON, validation,
// --set, the window's form and the hash follow. Names are the keys of the recipe.
#pragma once

#include <cstdint>
#include <string>

namespace stacklab {

struct ModelConfig {
  std::int64_t vocab_size = 32768;
  std::int64_t d_model = 512;
  std::int64_t n_layers = 30;
  std::int64_t n_heads = 8;
  std::int64_t n_kv_heads = 2;
  std::int64_t head_dim = 64;
  std::int64_t intermediate = 1408;
  std::int64_t max_seq_len = 2048;
  double rope_theta = 10000.0;
  std::int64_t nope_every = 4;  // layers n-1, 2n-1, ... have no rotary positions; 0: all have
  double norm_eps = 1e-5;
  bool qk_norm = true;
  bool tie_embeddings = true;
  double z_loss_coef = 1e-4;
  double logit_soft_cap = 0.0;  // 0: off
  double attn_soft_cap = 0.0;   // 0: off
  std::string mixer = "gqa";
  std::int64_t attn_every = 0;
  std::string ffn = "swiglu";

  bool operator==(const ModelConfig&) const = default;
};

struct ScheduleConfig {
  std::string kind = "wsd";  // wsd (warm-up, stable, decay) or constant (after warm-up)
  std::int64_t warmup_tokens = 0;
  std::int64_t decay_tokens = 0;
  std::string shape = "1-sqrt";  // of the decay: 1-sqrt, linear, cosine
  double min_factor = 0.0;       // of the peak rate, where the decay ends

  bool operator==(const ScheduleConfig&) const = default;
};

struct OptimConfig {
  std::string matrices = "muon";  // what trains the hidden matrices: muon or adamw
  double muon_lr = 1.5e-3;
  double adam_lr = 1.0e-3;
  double muon_momentum = 0.95;
  std::string muon_scale = "match_rms";
  std::int64_t ns_steps = 5;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.95;
  double adam_eps = 1e-8;
  // What AdamW keeps its moments in: fp32; int8, in blocks; bf16, and in mixed precision its parameters too.
  std::string adam_state = "fp32";
  double weight_decay = 0.1;  // on hidden matrices; none on embeddings and gains
  double grad_clip = 1.0;     // global L2 norm; 0: off
  double qk_clip = 100.0;     // logit threshold; 0: off
  ScheduleConfig schedule;

  bool operator==(const OptimConfig&) const = default;
};

struct DataConfig {
  std::string corpus = "kjv";
  std::string tokenizer = "bytes";
  std::string mixture;
  double validation_fraction = 0.02;  // of documents, chosen by hash
  std::string packing = "fragment";   // long documents are cut at the window's end, never dropped

  bool operator==(const DataConfig&) const = default;
};

struct TrainConfig {
  std::int64_t seed = 1337;
  std::int64_t tokens = 0;           // length of the run; must be given
  std::int64_t batch_tokens = 4096;  // of one update, over all micro-batches
  std::int64_t seq_len = 256;
  std::string precision = "fp32";  // fp32, bf16, fp64 (reference only)
  std::string parent;              // of a fork: "<run>@<step>" that it goes on from

  bool operator==(const TrainConfig&) const = default;
};

// What a run may use at most. 0: no limit.
struct BudgetConfig {
  std::int64_t tokens = 0;
  double hours = 0;
  double usd = 0;
  double usd_per_hour = 0;  // the price that usd is counted at

  bool operator==(const BudgetConfig&) const = default;
};

// Operational: recorded, but not part of the run's identity.
struct RunOptions {
  std::string device = "auto";
  std::int64_t threads = 0;             // 0: all
  std::int64_t micro_batch = 0;         // sequences per micro-batch; 0: auto
  std::int64_t loss_chunk = 0;          // tokens per chunk of the loss head; 0: auto
  std::string recompute = "swiglu";     // what backward computes again instead of keeping: none, swiglu, block
  std::int64_t recompute_every = 1;     // blocks of a stretch that is computed again from its input
  std::int64_t eval_every = 50;         // steps; 0: only at the end
  std::int64_t eval_tokens = 32768;     // at most, per evaluation
  std::int64_t checkpoint_every = 100;  // steps; 0: only at the end and on stop
  std::int64_t keep_last = 2;           // newest ones; the last one and milestones always stay
  std::string keep_milestones;          // steps with a checkpoint that stays, for example "1000,2000"
  std::int64_t log_every = 1;
  bool memory_guard = true;  // refuse a run whose plan does not fit into free memory
  bool disk_guard = true;    // refuse a run whose checkpoints do not fit into the free disk
  BudgetConfig budget;

  bool operator==(const RunOptions&) const = default;
};

struct RunConfig {
  std::string name = "run";
  ModelConfig model;
  OptimConfig optim;
  DataConfig data;
  TrainConfig train;
  RunOptions run;

  std::int64_t steps() const { return train.batch_tokens > 0 ? train.tokens / train.batch_tokens : 0; }
  bool operator==(const RunConfig&) const = default;
};

}  // namespace stacklab
