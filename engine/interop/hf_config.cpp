#include "engine/interop/hf_config.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/atomic_file.h"
#include "engine/base/json_reader.h"
#include "engine/base/text.h"
#include "engine/config/config_io.h"

namespace stacklab {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t largest_file = 1 << 20;
constexpr int deepest = 32;  // real files have three levels

struct Architecture {
  std::string_view name, type;
  bool qk_norm;
  std::int64_t head_dim;  // where the file is silent; 0: hidden_size / num_attention_heads
  bool tied;              // likewise
};
constexpr std::array<Architecture, 3> architectures = {{{"Qwen3ForCausalLM", "qwen3", true, 128, false},
                                                        {"LlamaForCausalLM", "llama", false, 0, false},
                                                        {"SmolLM3ForCausalLM", "smollm3", false, 0, true}}};

// Reads keys of the file; null counts as absent. The first fault is kept.
class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {}

  // nullptr: absent.
  const Json* find(const char* key) const {
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }
  std::optional<std::int64_t> integer(const char* key) {
    const Json* v = find(key);
    if (!v) return std::nullopt;
    if (v->is_number_unsigned() && v->get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX))
      return v->get<std::int64_t>();
    if (v->is_number_integer() && !v->is_number_unsigned()) return v->get<std::int64_t>();
    fault(fmt::format("{} is no whole number", key));
    return std::nullopt;
  }
  std::int64_t needed(const char* key) {
    const std::optional<std::int64_t> value = integer(key);
    if (!value) fault(fmt::format("{} is missing", key));
    return value.value_or(0);
  }
  std::optional<double> number(const char* key) {
    const Json* v = find(key);
    if (!v) return std::nullopt;
    if (v->is_number()) return v->get<double>();
    fault(fmt::format("{} is no number", key));
    return std::nullopt;
  }
  bool flag(const char* key, bool otherwise) {
    const Json* v = find(key);
    if (!v) return otherwise;
    if (!v->is_boolean()) fault(fmt::format("{} is neither true nor false", key));
    return v->is_boolean() ? v->get<bool>() : otherwise;
  }
  std::string text(const char* key) {
    const Json* v = find(key);
    if (!v) return {};
    if (!v->is_string()) fault(fmt::format("{} is no text", key));
    return v->is_string() ? v->get<std::string>() : std::string();
  }
  void fault(std::string what) {
    if (fault_.empty()) fault_ = std::move(what);
  }
  const std::string& fault() const { return fault_; }

 private:
  const Json& object_;
  std::string fault_;
};

const Architecture* architecture_of(Reader& read) {
  std::string name;
  if (const Json* list = read.find("architectures")) {
    if (!list->is_array() || list->size() != 1 || !list->front().is_string()) {
      read.fault("architectures is not a list of one name");
      return nullptr;
    }
    name = list->front().get<std::string>();
  }
  const std::string type = read.text("model_type");
  for (const Architecture& a : architectures) {
    if (name.empty() ? a.type != type : a.name != name) continue;
    if (!type.empty() && a.type != type) {
      read.fault(fmt::format("architectures says {}, model_type says {}", name, printable(type)));
      return nullptr;
    }
    return &a;
  }
  read.fault(
      fmt::format("{} is not an architecture of this build, which reads Qwen3, Llama and SmolLM3",
                  name.empty() && type.empty() ? "no name" : "\"" + printable(name.empty() ? type : name) + "\""));
  return nullptr;
}

// What would make another model of the same numbers.
void refuse_others(Reader& read) {
  if (const std::string act = read.text("hidden_act"); !act.empty() && act != "silu")
    read.fault(fmt::format("hidden_act: \"{}\" is not silu", printable(act)));
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (read.flag(key, false)) read.fault(fmt::format("{}: biases are not in this build", key));
  if (read.flag("use_sliding_window", false)) read.fault("use_sliding_window: sliding windows are not imported");
  if (const Json* types = read.find("layer_types")) {
    if (!types->is_array()) read.fault("layer_types is no list");
    for (const Json& type : *types)
      if (type != "full_attention") read.fault("layer_types: only full_attention is imported");
  }
  if (const Json* quantised = read.find("quantization_config")) {
    const auto method = quantised->is_object() ? quantised->find("quant_method") : quantised->end();
    const bool named = quantised->is_object() && method != quantised->end() && method->is_string();
    read.fault(fmt::format("quantization_config: the weights are quantised ({})",
                           named ? printable(method->get<std::string>()) : "by an unnamed method"));
  }
}

// rope_parameters of version 5 comes before the keys of version 4.
void read_rotary(Reader& read, HfConfig& config) {
  std::optional<double> theta = read.number("rope_theta");
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* object = read.find(key);
    if (!object) continue;
    if (!object->is_object()) {
      read.fault(fmt::format("{} is no object", key));
      return;
    }
    Reader rotary(*object);
    std::string type = rotary.text("rope_type");
    if (type.empty()) type = rotary.text("type");
    if (const auto own = rotary.number("rope_theta")) theta = own;
    if (!type.empty() && type != "default")
      rotary.fault(fmt::format("rope_type \"{}\" is not in this build", printable(type)));
    if (!rotary.fault().empty()) read.fault(fmt::format("{}: {}", key, rotary.fault()));
  }
  if (!theta) config.notes.push_back("rope_theta is missing: 10000 is used");
  config.model.rope_theta = theta.value_or(10000);
}

// SmolLM3 lists for each layer whether it has rotary positions; every n-th has none.
void read_nope(Reader& read, const Architecture& architecture, ModelConfig& m) {
  m.nope_every = 0;
  if (architecture.type != "smollm3") return;
  m.nope_every = read.integer("no_rope_layer_interval").value_or(4);
  const Json* layers = read.find("no_rope_layers");
  if (!layers || m.nope_every < 1) return;
  bool regular = layers->is_array() && static_cast<std::int64_t>(layers->size()) == m.n_layers;
  for (std::int64_t i = 0; regular && i < m.n_layers; ++i)
    regular = (*layers)[static_cast<std::size_t>(i)] == ((i + 1) % m.nope_every == 0 ? 0 : 1);
  if (!regular) read.fault("no_rope_layers is not every n-th layer");
}

}  // namespace

Result<HfConfig> parse_hf_config(std::string_view json, std::string_view source_name) {
  const auto bad = [source_name](std::string_view cause) { return failed(fmt::format("{}: {}", source_name, cause)); };
  if (json.size() > static_cast<std::size_t>(largest_file)) return bad("too large for a config.json");
  if (has_nul(json)) return bad("not JSON: it has a NUL byte");
  bool deep = false;
  const Json root = Json::parse(
      json,
      [&deep](int depth, Json::parse_event_t, Json&) {
        deep |= depth > deepest;
        return depth <= deepest;  // what is deeper takes no memory
      },
      false);
  if (deep) return bad("nested too deeply for a config.json");
  if (!root.is_object()) return bad(root.is_discarded() ? "not JSON" : "not a JSON object");

  Reader read(root);
  HfConfig config;
  const Architecture* architecture = architecture_of(read);
  if (!architecture) return bad(read.fault());
  config.architecture = architecture->name;
  refuse_others(read);
  ModelConfig& m = config.model;
  m.qk_norm = architecture->qk_norm;
  m.vocab_size = read.needed("vocab_size");
  m.d_model = read.needed("hidden_size");
  m.n_layers = read.needed("num_hidden_layers");
  m.n_heads = read.needed("num_attention_heads");
  m.n_kv_heads = read.integer("num_key_value_heads").value_or(m.n_heads);
  m.intermediate = read.needed("intermediate_size");
  m.max_seq_len = read.needed("max_position_embeddings");
  m.norm_eps = read.number("rms_norm_eps").value_or(1e-6);
  m.tie_embeddings = read.flag("tie_word_embeddings", architecture->tied);
  m.z_loss_coef = 0;
  if (const auto width = read.integer("head_dim")) {
    m.head_dim = *width;
  } else if (architecture->head_dim > 0) {
    m.head_dim = architecture->head_dim;
    config.notes.push_back(fmt::format("head_dim is missing: {} is used", m.head_dim));
  } else if (m.n_heads > 0 && m.d_model % m.n_heads == 0) {
    m.head_dim = m.d_model / m.n_heads;
  } else {
    read.fault("hidden_size is not a multiple of num_attention_heads, and head_dim is missing");
  }
  read_rotary(read, config);
  read_nope(read, *architecture, m);
  if (!read.fault().empty()) return bad(read.fault());
  RunConfig run;
  run.model = m;
  if (const Status whole = check_model(run); !whole) return bad(whole.error().message());
  return config;
}

Result<HfConfig> read_hf_config(const std::filesystem::path& file) {
  const Result<std::string> text = read_file(file, largest_file);
  if (!text) return tl::unexpected(text.error());
  return parse_hf_config(*text, file.string());
}

}  // namespace stacklab
