#include "engine/service/forks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/base/atomic_file.h"
#include "engine/base/environment.h"
#include "engine/config/config_io.h"
#include "engine/config/fields.h"
#include "engine/service/model_facts.h"
#include "engine/train/checkpoint.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;

// Keys that decide the tensors of a checkpoint, or what its numbers mean.
constexpr std::array fixed_keys = {"model.vocab_size",     "model.d_model",  "model.n_layers",     "model.n_heads",
                                   "model.n_kv_heads",     "model.head_dim", "model.intermediate", "model.qk_norm",
                                   "model.tie_embeddings", "model.mixer",    "model.attn_every",   "model.ffn",
                                   "optim.matrices",       "data.tokenizer", "train.batch_tokens"};

// Files of one folder under the same names in another: the same bytes on disk where that can be.
Status link_files(const fs::path& from, const fs::path& to) {
  std::error_code ec;
  for (fs::directory_iterator i(from, ec), end; !ec && i != end; i.increment(ec)) {
    const fs::path target = to / i->path().filename();
    fs::create_hard_link(i->path(), target, ec);
    if (!ec) continue;
    fs::copy_file(i->path(), target, ec);
    if (ec) return tl::unexpected<Error>(file_error("cannot copy", i->path(), ec.value()));
  }
  if (ec) return tl::unexpected<Error>(file_error("cannot read", from, ec.value()));
  return {};
}

}  // namespace

std::string parent_text(const RunId& run, std::int64_t step) { return fmt::format("{}@{}", run, step); }

Status check_fork(const RunConfig& parent, const RunConfig& config, std::int64_t step) {
  RunConfig a = parent, b = config;
  const std::vector<Field> before = fields_of(a), after = fields_of(b);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (value_of(before[i]) == value_of(after[i])) continue;
    if (std::find(fixed_keys.begin(), fixed_keys.end(), before[i].key) != fixed_keys.end())
      return usage_error(
          fmt::format("{} cannot change in a fork: the checkpoint was made with another value", before[i].key),
          "leave it, or train a new run with it");
  }
  if ((parent.train.precision == "fp64") != (config.train.precision == "fp64"))
    return usage_error("train.precision cannot change from or to fp64 in a fork: the checkpoint holds other numbers",
                       "leave it, or train a new run with it");
  if (config.steps() <= step)
    return usage_error(
        fmt::format("train.tokens: the fork would end at step {}, and begins after step {}", config.steps(), step),
        fmt::format("give more, for example --set train.tokens={}", 2 * step * config.train.batch_tokens));
  return check_launch(config);
}

Result<RunId> make_fork(const fs::path& workspace, Store& store, const RunSummary& parent, std::int64_t step,
                        RunConfig config) {
  const auto stored = parse_config(parent.config_json, fmt::format("the stored config of run {}", parent.id));
  if (!stored) return tl::unexpected(stored.error());
  if (config.name == stored->name || config.name == parent.name)
    config.name = fmt::format("{}-at{}", parent.name, step);

  std::optional<CheckpointFolder> checkpoint;
  std::string there;
  for (const CheckpointFolder& folder : list_checkpoints(workspace / "runs" / parent.folder)) {
    there += fmt::format("{}{}", there.empty() ? "" : ", ", folder.step);
    if (folder.step == step) checkpoint = folder;
  }
  if (!checkpoint)
    return usage_error(fmt::format("{} ({}) has no checkpoint of step {}", parent.name, parent.id, step),
                       there.empty() ? "it has none at all" : "there are those of steps " + there);
  const auto trainer = verify_checkpoint(*checkpoint);
  if (!trainer) return tl::unexpected(trainer.error());
  // Whose checkpoint it is: of a fork that has not gone on yet, its own parent's.
  config.train.parent = parent_text(trainer->config_hash, step);
  if (Status ok = check_fork(*stored, config, step); !ok) return tl::unexpected(ok.error());

  ForkedRun fork;
  fork.id = config_hash(config);
  // Before anything is put into its folder.
  if (const auto reader = open_store_reader(workspace)) {
    if (const auto existing = (*reader)->run(fork.id); existing && existing->id == fork.id)
      return refused(fmt::format("that fork exists: {} ({})", existing->name, fork.id),
                     fmt::format("go on with it: stacklab resume {}", fork.id));
  }
  fork.parent = parent.id;
  fork.name = config.name;
  fork.folder = config.name + "-" + fork.id;
  fork.config_json = to_json(config);
  fork.corpus_sha256 = config.data == stored->data ? parent.corpus_sha256 : std::string();
  fork.tokenizer = config.data.tokenizer;
  fork.commit = build_info().commit;
  fork.cause = fmt::format("forked from {} after step {}", parent.name, step);
  fork.total_steps = config.steps();
  fork.step = step;
  fork.tokens = trainer->state.tokens;
  fork.seconds = trainer->state.seconds;
  fork.parameters = parent.parameters;

  const fs::path folder = workspace / "runs" / fork.folder;
  std::error_code ec;
  const bool fresh = !fs::exists(folder, ec);
  const auto make = [&]() -> Status {
    auto target = AtomicDirectory::create(folder / checkpoint->path.filename());
    if (!target) return tl::unexpected(target.error());
    if (Status linked = link_files(checkpoint->path, target->path()); !linked) return linked;
    if (Status done = target->commit(true); !done) return done;
    if (Status written = write_file_atomically(folder / "config.json", fork.config_json); !written) return written;
    return store.add_fork(fork);
  };
  if (Status made = make(); !made) {
    if (fresh) fs::remove_all(folder, ec);
    return tl::unexpected(made.error());
  }
  return fork.id;
}

}  // namespace stacklab
