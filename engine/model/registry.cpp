#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "engine/base/text.h"
#include "engine/model/counts.h"
#include "engine/model/sublayer.h"

namespace stacklab {
namespace {

constexpr std::array mixer_kinds = {&gqa_mixer};
constexpr std::array ffn_kinds = {&swiglu_ffn};

const SublayerKind* find(std::span<const SublayerKind* const> kinds, std::string_view name) {
  const auto at = std::find_if(kinds.begin(), kinds.end(), [&](const SublayerKind* k) { return k->name == name; });
  return at == kinds.end() ? nullptr : *at;
}

// A hybrid has attention in every attn_every-th layer, and the mixer that the config names in the others.
std::string_view mixer_name(const ModelConfig& config, std::int64_t layer) {
  return config.attn_every > 0 && (layer + 1) % config.attn_every == 0 ? gqa_mixer.name
                                                                       : std::string_view(config.mixer);
}

Status known(std::string_view field, std::span<const SublayerKind* const> kinds, std::string_view name) {
  if (find(kinds, name)) return {};
  std::string names;
  for (const SublayerKind* k : kinds) names += (names.empty() ? "" : ", ") + std::string(k->name);
  return usage_error(fmt::format("model.{}: {} is not in this build yet", field, printable(std::string(name))),
                     "use one of: " + names);
}

}  // namespace

std::string LayerContext::name() const { return fmt::format("blocks.{}", layer); }

bool LayerContext::rotary() const { return config.nope_every <= 0 || (layer + 1) % config.nope_every != 0; }

std::span<const SublayerKind* const> mixers() { return mixer_kinds; }
std::span<const SublayerKind* const> ffns() { return ffn_kinds; }

const SublayerKind& mixer_of(const ModelConfig& config, std::int64_t layer) {
  return *find(mixers(), mixer_name(config, layer));
}

const SublayerKind& ffn_of(const ModelConfig& config, std::int64_t) { return *find(ffns(), config.ffn); }

Status check_layers(const ModelConfig& config) {
  if (Status ok = known("mixer", mixers(), config.mixer); !ok) return ok;
  return known("ffn", ffns(), config.ffn);
}

}  // namespace stacklab
