#include <algorithm>
#include <map>

#include "engine/config/fields.h"
#include "engine/run/run.h"
#include "engine/store/run_filter.h"

namespace stacklab {
namespace {

using Type = FilterKey::Type;

std::vector<FilterKey> all_keys() {
  std::vector<std::string> states;
  for (const RunState s : {RunState::queued, RunState::running, RunState::paused, RunState::stopping,
                           RunState::finished, RunState::failed, RunState::killed, RunState::lost})
    states.emplace_back(to_string(s));
  std::vector<FilterKey> keys = {
      {"tag", Type::tag, "a tag of the run"},
      {"state", Type::state, "what it is doing, or how it ended", states},
      {"name", Type::text, "its name"},
      {"loss", Type::number, "last training loss, nats", {}, true},
      {"val_loss", Type::number, "last validation loss, nats", {}, true},
      {"first_loss", Type::number, "first training loss, nats", {}, true},
      {"lr", Type::number, "peak rate of the hidden matrices"},
      {"step", Type::number, "steps done"},
      {"total_steps", Type::number, "steps of the whole run"},
      {"progress", Type::number, "per cent of its steps done"},
      {"tokens", Type::number, "tokens seen"},
      {"seconds", Type::number, "time spent training"},
      {"tokens_per_second", Type::number, "speed of its last process"},
      {"parameters", Type::number, "of its model"},
      {"peak_bytes", Type::number, "most memory used"},
      {"plan_bytes", Type::number, "memory planned"},
      {"created", Type::time, "when it was made: 2025-01-31"},
      {"finished", Type::time, "when it ended: 2025-01-31"},
      {"cause", Type::text, "why it is in its state"},
      {"note", Type::text, "what you wrote about it"},
      {"id", Type::text, "hash of its config"},
      {"commit", Type::text, "build that trained it"},
      {"corpus_sha256", Type::text, "hash of its corpus"},
      {"tokenizer", Type::text, "its tokenizer"},
      {"number", Type::number, "its place in the store, from 0"},
      {"parent", Type::text, "run that it was forked from"},
      {"fork_step", Type::number, "step that it was forked after"},
      {"is", Type::is, "other properties", {"archived", "deleted", "detached", "dirty", "forked"}}};
  for (const std::string_view name : {metric::ce, metric::z_loss, metric::grad_norm, metric::update_norm,
                                      metric::max_logit, metric::adam_lr, metric::muon_lr, metric::mfu_6nd,
                                      metric::mfu_attention, metric::mfu_documents, metric::hfu, metric::process_bytes})
    keys.push_back({"metric." + std::string(name), Type::number, "last value of this metric", {}, true});
  for (const FieldInfo& field : field_infos()) {
    if (field.key == "name") continue;
    FilterKey key{field.key, Type::number, std::string(field.help), field.rules.choices};
    if (field.type == "boolean") key.type = Type::boolean;
    if (field.type == "text") key.type = Type::text;
    keys.push_back(std::move(key));
  }
  return keys;
}

const std::map<std::string, std::string, std::less<>>& short_forms() {
  static const auto forms = [] {
    std::map<std::string, std::string, std::less<>> made, twice;
    for (const FilterKey& key : filter_keys()) {
      const std::size_t dot = key.key.rfind('.');
      if (dot == std::string::npos) continue;
      const std::string last = key.key.substr(dot + 1);
      if (!made.emplace(last, key.key).second && !key.key.starts_with("metric.")) twice.emplace(last, "");
    }
    for (const auto& [name, nothing] : twice) made.erase(name);
    // A key of the config goes before the metric that follows it.
    for (const char* name : {"adam_lr", "muon_lr"}) made[name] = std::string("optim.") + name;
    for (const auto& [from, to] : {std::pair{"config", "id"},
                                   {"hash", "id"},
                                   {"corpus", "corpus_sha256"},
                                   {"tags", "tag"},
                                   {"notes", "note"},
                                   {"validation", "val_loss"},
                                   {"speed", "tokens_per_second"},
                                   {"seed", "train.seed"}})
      made[from] = to;
    return made;
  }();
  return forms;
}

}  // namespace

const std::vector<FilterKey>& filter_keys() {
  static const std::vector<FilterKey> keys = all_keys();
  return keys;
}

const FilterKey* find_filter_key(std::string_view name) {
  const auto exact = [](std::string_view key) -> const FilterKey* {
    const auto& keys = filter_keys();
    const auto at = std::find_if(keys.begin(), keys.end(), [key](const FilterKey& k) { return k.key == key; });
    return at == keys.end() ? nullptr : &*at;
  };
  if (const FilterKey* key = exact(name)) return key;
  const auto form = short_forms().find(name);
  return form == short_forms().end() ? nullptr : exact(form->second);
}

}  // namespace stacklab
