#include "engine/train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "engine/base/atomic_file.h"
#include "engine/base/safetensors.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/config/config_io.h"
#include "engine/model/weights.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view folder_prefix = "ckpt_step";
constexpr const char *model_file = "model.safetensors", *optimiser_file = "optimiser.safetensors",
                     *config_file = "config.json", *provenance_file = "provenance.json", *trainer_file = "trainer.json";
constexpr std::int64_t largest_text = 1 << 16;
// config.json, provenance.json and trainer.json take about 6 KB.
constexpr std::int64_t planned_text = 16 << 10;

std::vector<NamedTensor> model_tensors(TrainStep& step) {
  std::vector<NamedTensor> tensors;
  for (const Parameter& p : step.programs().model.parameters().parameters)
    tensors.push_back({p.name, step.executor().bind(p.view)});
  return tensors;
}

std::vector<NamedTensor> optimiser_tensors(TrainStep& step) {
  std::vector<NamedTensor> tensors;
  for (const Optimiser::StateTensor& s : step.programs().optimiser.state())
    tensors.push_back({s.name, step.executor().bind(s.view)});
  return tensors;
}

std::vector<SafetensorsEntry> entries_of(const std::vector<NamedTensor>& tensors) {
  std::vector<SafetensorsEntry> entries;
  for (const NamedTensor& t : tensors)
    entries.push_back({t.name,
                       file_type(t.view.dtype),
                       file_shape(t.view.shape),
                       {t.view.data, static_cast<std::size_t>(t.view.bytes())}});
  return entries;
}

std::map<std::string, std::string> metadata_of(const RunConfig& config, std::int64_t step) {
  return {{"format", "stacklab"},
          {"step", std::to_string(step)},
          {"config_hash", config_hash(config)},
          {"tied", config.model.tie_embeddings ? fmt::format("{}={}", head_name, embedding_name) : ""}};
}

}  // namespace

std::vector<CheckpointFolder> list_checkpoints(const fs::path& run_dir) {
  std::vector<CheckpointFolder> found;
  std::error_code ec;
  for (fs::directory_iterator i(run_dir, ec), end; !ec && i != end; i.increment(ec)) {
    std::error_code unreadable;
    const std::string name = i->path().filename().string();
    if (!name.starts_with(folder_prefix) || !i->is_directory(unreadable)) continue;
    std::int64_t step = 0;
    const char *digits = name.data() + folder_prefix.size(), *last = name.data() + name.size();
    const auto parsed = std::from_chars(digits, last, step);
    // As it is written: no sign, and no zeros in front.
    if (parsed.ec != std::errc() || parsed.ptr != last || std::to_string(step) != digits || step < 0) continue;
    found.push_back({step, i->path()});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return found;
}

Status save_checkpoint(const fs::path& run_dir, const RunConfig& config, const Provenance& provenance, TrainStep& step,
                       const TrainerState& state) {
  auto folder = AtomicDirectory::create(run_dir / fmt::format("{}{}", folder_prefix, state.step));
  if (!folder) return tl::unexpected(folder.error());
  const std::map<std::string, std::string> metadata = metadata_of(config, state.step);
  const auto write = [&]() -> Status {
    if (auto s = write_safetensors(folder->path() / model_file, entries_of(model_tensors(step)), metadata); !s)
      return s;
    if (auto s = write_safetensors(folder->path() / optimiser_file, entries_of(optimiser_tensors(step)), metadata); !s)
      return s;
    if (auto s = write_file_atomically(folder->path() / config_file, to_json(config)); !s) return s;
    if (auto s = write_file_atomically(folder->path() / provenance_file, to_json(provenance)); !s) return s;
    TrainerFile trainer{config_hash(config), config.train.seed, state, {}};
    for (const char* file : {model_file, optimiser_file, config_file, provenance_file}) {
      auto sum = sha256_file(folder->path() / file);
      if (!sum) return tl::unexpected(sum.error());
      trainer.sha256[file] = *sum;
    }
    if (auto s = write_file_atomically(folder->path() / trainer_file, to_json(trainer)); !s) return s;
    return folder->commit(true);
  };
  Status written = write();
  // The files have other names while they are written; whoever reads the message looks for this one.
  if (!written)
    written.error().what =
        fmt::format("the checkpoint {}{} could not be written: {}", folder_prefix, state.step, written.error().what);
  return written;
}

namespace {

tl::unexpected<Error> damaged(const fs::path& file) {
  return failed(fmt::format("{}: not what was saved (SHA-256 differs)", file.string()),
                "the disk or another program changed it: go on from an older checkpoint");
}

// A text of the checkpoint, if it is what was saved.
Result<std::string> text_of(const CheckpointFolder& folder, const TrainerFile& trainer, const char* name) {
  auto text = read_file(folder.path / name, largest_text);
  if (text && sha256_hex(*text) != trainer.sha256.at(name)) return damaged(folder.path / name);
  return text;
}

// Every file that is recorded beside the tensors, whether anybody reads it or not.
Status check_texts(const CheckpointFolder& folder, const TrainerFile& trainer) {
  for (const auto& [name, sum] : trainer.sha256) {
    if (name == model_file || name == optimiser_file) continue;
    if (name.find('/') != std::string::npos)
      return failed(fmt::format("{}: \"{}\" is not a file of a checkpoint", folder.path.string(), printable(name)));
    if (const auto text = text_of(folder, trainer, name.c_str()); !text) return tl::unexpected(text.error());
  }
  return {};
}

Result<Safetensors> tensors_of(const CheckpointFolder& folder, const TrainerFile& trainer, const char* name) {
  auto file = Safetensors::open(folder.path / name);
  // Hashed and read from the same pages.
  if (file && sha256_hex(file->file_bytes()) != trainer.sha256.at(name)) return damaged(folder.path / name);
  return file;
}

Result<TrainerFile> trainer_of(const CheckpointFolder& folder) {
  const fs::path file = folder.path / trainer_file;
  auto text = read_file(file, largest_text);
  if (!text) return tl::unexpected(text.error());
  auto trainer = parse_trainer_file(*text, file.string());
  if (!trainer) return trainer;
  if (trainer->state.step != folder.step)
    return failed(fmt::format("{}: says step {}, the folder says {}", file.string(), trainer->state.step, folder.step));
  for (const char* name : {model_file, optimiser_file})
    if (!trainer->sha256.contains(name)) return failed(fmt::format("{}: no SHA-256 of {}", file.string(), name));
  return trainer;
}

// The config must be this one; what differs comes before any tensor is looked at.
Status check_config(const CheckpointFolder& folder, const TrainerFile& trainer, const RunConfig& config,
                    std::span<const std::string> also_accepted) {
  const std::string hash = config_hash(config);
  if (trainer.config_hash == hash ||
      std::find(also_accepted.begin(), also_accepted.end(), trainer.config_hash) != also_accepted.end())
    return {};
  std::string differ;
  if (trainer.sha256.contains(config_file)) {
    const auto text = text_of(folder, trainer, config_file);
    if (!text) return tl::unexpected(text.error());
    const auto stored = parse_config(*text, (folder.path / config_file).string());
    if (!stored) return tl::unexpected(stored.error());
    differ = fmt::format(": {}", fmt::join(identity_differences(*stored, config), "; "));
  }
  return failed(
      fmt::format("{}: belongs to run {}, not to {}{}", folder.path.string(), trainer.config_hash, hash, differ),
      "use the config that it was trained with");
}

}  // namespace

Result<TrainerFile> verify_checkpoint(const CheckpointFolder& folder) {
  auto trainer = trainer_of(folder);
  if (!trainer) return trainer;
  for (const char* name : {model_file, optimiser_file})
    if (const auto file = tensors_of(folder, *trainer, name); !file) return tl::unexpected(file.error());
  if (const Status texts = check_texts(folder, *trainer); !texts) return tl::unexpected(texts.error());
  return trainer;
}

std::optional<Provenance> checkpoint_provenance(const CheckpointFolder& folder) {
  const auto trainer = trainer_of(folder);
  if (!trainer || !trainer->sha256.contains(provenance_file)) return std::nullopt;
  const auto text = text_of(folder, *trainer, provenance_file);
  if (!text) return std::nullopt;
  auto provenance = parse_provenance(*text, provenance_file);
  return provenance ? std::optional(std::move(*provenance)) : std::nullopt;
}

std::optional<CheckpointFolder> latest_checkpoint(const fs::path& run_dir) {
  const std::vector<CheckpointFolder> all = list_checkpoints(run_dir);
  const auto whole = std::find_if(all.rbegin(), all.rend(), [](const auto& f) { return verify_checkpoint(f); });
  return whole == all.rend() ? std::nullopt : std::optional(*whole);
}

Result<LoadedCheckpoint> load_checkpoint(const CheckpointFolder& folder, const RunConfig& config, TrainStep& step,
                                         std::span<const std::string> also_accepted) {
  const auto trainer = trainer_of(folder);
  if (!trainer) return tl::unexpected(trainer.error());
  if (auto s = check_config(folder, *trainer, config, also_accepted); !s) return tl::unexpected(s.error());
  if (auto s = check_texts(folder, *trainer); !s) return tl::unexpected(s.error());
  LoadedCheckpoint loaded{trainer->state, std::nullopt};
  if (trainer->sha256.contains(provenance_file)) {
    const auto text = text_of(folder, *trainer, provenance_file);
    if (!text) return tl::unexpected(text.error());
    auto provenance = parse_provenance(*text, (folder.path / provenance_file).string());
    if (!provenance) return tl::unexpected(provenance.error());
    loaded.provenance = std::move(*provenance);
  }
  const auto load = [&](const char* name, const std::vector<NamedTensor>& tensors, bool tied_head) -> Status {
    const auto file = tensors_of(folder, *trainer, name);
    if (!file) return tl::unexpected(file.error());
    return load_tensors(*file, (folder.path / name).string(), tensors, tied_head);
  };
  if (auto s = load(model_file, model_tensors(step), config.model.tie_embeddings); !s) return tl::unexpected(s.error());
  if (auto s = load(optimiser_file, optimiser_tensors(step), false); !s) return tl::unexpected(s.error());
  step.parameters_changed();
  return loaded;
}

std::vector<CheckpointFolder> checkpoints_to_prune(const fs::path& run_dir, std::int64_t keep,
                                                   std::span<const std::int64_t> milestones) {
  std::vector<CheckpointFolder> own = list_checkpoints(run_dir);
  std::erase_if(own, [](const CheckpointFolder& f) {
    std::error_code ec;
    return fs::is_symlink(f.path, ec);
  });
  const auto kept = static_cast<std::size_t>(std::max<std::int64_t>(keep, 1));
  own.resize(own.size() - std::min(kept, own.size()));
  std::erase_if(own, [&](const CheckpointFolder& f) {
    return std::find(milestones.begin(), milestones.end(), f.step) != milestones.end();
  });
  return own;
}

std::vector<std::int64_t> prune_checkpoints(const fs::path& run_dir, std::int64_t keep,
                                            std::span<const std::int64_t> milestones) {
  std::vector<std::int64_t> removed;
  for (const CheckpointFolder& folder : checkpoints_to_prune(run_dir, keep, milestones))
    if (remove_folder(folder.path)) removed.push_back(folder.step);
  return removed;
}

std::vector<std::int64_t> set_aside_checkpoints_after(const fs::path& run_dir, std::int64_t step) {
  std::vector<std::int64_t> moved;
  for (const CheckpointFolder& folder : list_checkpoints(run_dir)) {
    if (folder.step <= step) continue;
    for (int n = 1; n < 1000; ++n) {
      const fs::path aside = run_dir / fmt::format("set-aside-{}-{}", n, folder.path.filename().string());
      std::error_code ec;
      if (fs::exists(aside, ec)) continue;
      fs::rename(folder.path, aside, ec);
      if (!ec) moved.push_back(folder.step);
      break;
    }
  }
  return moved;
}

CheckpointSize checkpoint_size(const RunConfig& config) {
  // Declared as training declares them, and never allocated.
  ProgramSet set;
  const StackModel model(config.model, storage_type(config), config.train.seq_len, set, {}, masters_of(config));
  const Optimiser optimiser(config.optim, model.parameters(), set);
  const std::map<std::string, std::string> metadata = metadata_of(config, config.steps());
  const auto entry = [](const std::string& name, const Value& v) {
    return SafetensorsEntry{name, file_type(v.dtype), file_shape(v.shape), {}};
  };
  std::vector<SafetensorsEntry> weights, state;
  for (const Parameter& p : model.parameters().parameters) weights.push_back(entry(p.name, p.view));
  for (const Optimiser::StateTensor& s : optimiser.state()) state.push_back(entry(s.name, s.view));
  return {safetensors_file_size(weights, metadata).value(), safetensors_file_size(state, metadata).value(),
          planned_text};
}

}  // namespace stacklab
