#include "engine/train/checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/base/atomic_file.h"
#include "engine/base/safetensors.h"
#include "engine/base/sha256.h"

namespace stacklab {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view folder_prefix = "ckpt_step";
constexpr int format_version = 1;
constexpr std::array<const char*, 2> tensor_files = {"model.safetensors", "optimiser.safetensors"};

// JSON has no NaN: null stands for a loss that is not there or not finite.
nlohmann::json number_or_null(double v) { return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(nullptr); }
double number_or_nan(const nlohmann::json& j) {
  return j.is_number() ? j.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

struct NamedView {
  std::string name;
  TensorView view;  // bound
};

std::vector<NamedView> model_tensors(TrainStep& step) {
  std::vector<NamedView> tensors;
  for (const Parameter& p : step.programs().model.parameters().parameters)
    tensors.push_back({p.name, step.executor().bind(p.view)});
  return tensors;
}

std::vector<NamedView> optimiser_tensors(TrainStep& step) {
  std::vector<NamedView> tensors;
  for (const Optimiser::StateTensor& s : step.programs().optimiser.state())
    tensors.push_back({s.name, step.executor().bind(s.view)});
  return tensors;
}

SafetensorsType file_type(DType t) { return t == DType::f64 ? SafetensorsType::f64 : SafetensorsType::f32; }

std::vector<std::int64_t> file_shape(const Shape& s) { return {s.dim.begin(), s.dim.begin() + s.rank}; }

Status save_tensors(const fs::path& file, const std::vector<NamedView>& tensors,
                    const std::map<std::string, std::string>& metadata) {
  std::vector<SafetensorsEntry> entries;
  for (const NamedView& t : tensors)
    entries.push_back({t.name,
                       file_type(t.view.dtype),
                       file_shape(t.view.shape),
                       {t.view.data, static_cast<std::size_t>(t.view.bytes())}});
  return write_safetensors(file, entries, metadata);
}

Status load_tensors(const fs::path& file, const std::vector<NamedView>& tensors) {
  auto container = Safetensors::open(file);
  if (!container) return tl::unexpected(container.error());
  for (const SafetensorsEntry& e : container->entries())
    if (std::none_of(tensors.begin(), tensors.end(), [&](const NamedView& t) { return t.name == e.name; }))
      return failed(fmt::format("{}: tensor {} does not belong to this model", file.string(), e.name));
  for (const NamedView& t : tensors) {
    const SafetensorsEntry* e = container->find(t.name);
    if (!e) return failed(fmt::format("{}: tensor {} is missing", file.string(), t.name));
    if (e->type != file_type(t.view.dtype) || e->shape != file_shape(t.view.shape))
      return failed(
          fmt::format("{}: tensor {} has another type or shape than the config's model", file.string(), t.name));
    std::memcpy(t.view.data, e->bytes.data(), e->bytes.size());
  }
  return {};
}

}  // namespace

std::vector<CheckpointFolder> list_checkpoints(const fs::path& run_dir) {
  std::vector<CheckpointFolder> found;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(run_dir, ec)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(folder_prefix) || !entry.is_directory(ec)) continue;
    std::int64_t step = 0;
    const char *begin = name.data() + folder_prefix.size(), *end = name.data() + name.size();
    const auto parsed = std::from_chars(begin, end, step);
    if (parsed.ec != std::errc() || parsed.ptr != end || begin == end || *begin == '-') continue;
    found.push_back({step, entry.path()});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return found;
}

Status save_checkpoint(const fs::path& run_dir, const std::string& config_hash, TrainStep& step,
                       const TrainerState& state) {
  auto folder = AtomicDirectory::create(run_dir / fmt::format("{}{}", folder_prefix, state.step));
  if (!folder) return tl::unexpected(folder.error());
  const bool tied = step.programs().model.config().tie_embeddings;
  const std::map<std::string, std::string> metadata = {{"format", "stacklab"},
                                                       {"format_version", std::to_string(format_version)},
                                                       {"step", std::to_string(state.step)},
                                                       {"config_hash", config_hash},
                                                       {"tied", tied ? "lm_head.weight=tok_emb.weight" : ""}};
  if (auto s = save_tensors(folder->path() / tensor_files[0], model_tensors(step), metadata); !s) return s;
  if (auto s = save_tensors(folder->path() / tensor_files[1], optimiser_tensors(step), metadata); !s) return s;
  nlohmann::json sums = nlohmann::json::object();
  for (const char* file : tensor_files) {
    auto sum = sha256_file(folder->path() / file);
    if (!sum) return tl::unexpected(sum.error());
    sums[file] = *sum;
  }
  const nlohmann::json trainer = {{"format_version", format_version},
                                  {"config_hash", config_hash},
                                  {"step", state.step},
                                  {"tokens", state.tokens},
                                  {"seconds", state.seconds},
                                  {"first_loss", number_or_null(state.first_loss)},
                                  {"loss", number_or_null(state.loss)},
                                  {"val_loss", number_or_null(state.val_loss)},
                                  {"skipped", state.skipped},
                                  {"sha256", sums}};
  if (auto s = write_file_atomically(folder->path() / "trainer.json", trainer.dump(2) + "\n"); !s) return s;
  return folder->commit(true);
}

namespace {

// The state that trainer.json holds. Throws nlohmann's exceptions on values of a wrong type.
Result<TrainerState> parse_trainer(const nlohmann::json& json, const CheckpointFolder& folder,
                                   const std::string& config_hash) {
  const std::string file = (folder.path / "trainer.json").string();
  if (json.value("format_version", 0) != format_version)
    return failed(fmt::format("{}: written by another version of Stacklab", file));
  if (json.at("config_hash").get<std::string>() != config_hash)
    return failed(
        fmt::format("{}: belongs to run {}, not to {}", file, json["config_hash"].get<std::string>(), config_hash));
  TrainerState state;
  state.step = json.at("step").get<std::int64_t>();
  state.tokens = json.at("tokens").get<std::int64_t>();
  state.seconds = json.at("seconds").get<double>();
  state.first_loss = number_or_nan(json.at("first_loss"));
  state.loss = number_or_nan(json.at("loss"));
  state.val_loss = number_or_nan(json.at("val_loss"));
  state.skipped = json.at("skipped").get<std::int64_t>();
  if (state.step != folder.step || state.step < 0)
    return failed(fmt::format("{}: says step {}, the folder says {}", file, state.step, folder.step));
  for (const char* name : tensor_files) {
    auto sum = sha256_file(folder.path / name);
    if (!sum) return tl::unexpected(sum.error());
    if (json.at("sha256").at(name).get<std::string>() != *sum)
      return failed(fmt::format("{}: not what was saved (SHA-256 differs)", (folder.path / name).string()));
  }
  return state;
}

}  // namespace

Result<TrainerState> load_checkpoint(const CheckpointFolder& folder, const std::string& config_hash, TrainStep& step) {
  const fs::path file = folder.path / "trainer.json";
  auto text = read_file(file, 1 << 20);
  if (!text) return tl::unexpected(text.error());
  try {
    auto state = parse_trainer(nlohmann::json::parse(*text), folder, config_hash);
    if (!state) return state;
    if (auto s = load_tensors(folder.path / tensor_files[0], model_tensors(step)); !s) return tl::unexpected(s.error());
    if (auto s = load_tensors(folder.path / tensor_files[1], optimiser_tensors(step)); !s)
      return tl::unexpected(s.error());
    step.parameters_changed();
    return state;
  } catch (const nlohmann::json::exception& e) {
    return failed(fmt::format("{}: not the state of a trainer: {}", file.string(), e.what()));
  }
}

std::vector<std::int64_t> prune_checkpoints(const fs::path& run_dir, std::int64_t keep) {
  std::vector<std::int64_t> removed;
  const std::vector<CheckpointFolder> all = list_checkpoints(run_dir);
  const auto kept = static_cast<std::size_t>(std::max<std::int64_t>(keep, 1));
  for (std::size_t i = 0; i + kept < all.size(); ++i) {
    std::error_code ec;
    std::filesystem::remove_all(all[i].path, ec);
    if (!ec) removed.push_back(all[i].step);
  }
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

}  // namespace stacklab
