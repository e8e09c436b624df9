#include "engine/run/run.h"

#include <array>
#include <utility>

namespace stacklab {
namespace {

constexpr std::array<std::pair<RunState, std::string_view>, 8> state_words = {{
    {RunState::queued, "queued"},
    {RunState::running, "running"},
    {RunState::paused, "paused"},
    {RunState::stopping, "stopping"},
    {RunState::finished, "finished"},
    {RunState::failed, "failed"},
    {RunState::killed, "killed"},
    {RunState::lost, "lost"},
}};

constexpr std::array<std::pair<RunEvent::Kind, std::string_view>, 10> event_words = {{
    {RunEvent::Kind::info, "info"},
    {RunEvent::Kind::checkpoint, "checkpoint"},
    {RunEvent::Kind::spike, "spike"},
    {RunEvent::Kind::logit, "logit"},
    {RunEvent::Kind::non_finite, "non_finite"},
    {RunEvent::Kind::warning, "warning"},
    {RunEvent::Kind::stall, "stall"},
    {RunEvent::Kind::budget, "budget"},
    {RunEvent::Kind::disk, "disk"},
    {RunEvent::Kind::store, "store"},
}};

constexpr std::array<std::pair<RunEvent::Severity, std::string_view>, 4> severity_words = {{
    {RunEvent::Severity::none, ""},
    {RunEvent::Severity::notice, "notice"},
    {RunEvent::Severity::warning, "warning"},
    {RunEvent::Severity::critical, "critical"},
}};

template <class Table, class Key>
std::string_view word_of(const Table& table, Key key) {
  for (const auto& [k, word] : table)
    if (k == key) return word;
  return "unknown";
}

template <class Key, class Table>
std::optional<Key> key_of(const Table& table, std::string_view word) {
  for (const auto& [k, w] : table)
    if (w == word) return k;
  return std::nullopt;
}

}  // namespace

std::string metric::max_logit_of(std::int64_t layer, std::int64_t head) {
  return std::string(max_logit) + ".L" + std::to_string(layer) + ".H" + std::to_string(head);
}

std::string_view to_string(RunState state) { return word_of(state_words, state); }
std::optional<RunState> run_state_from_string(std::string_view word) { return key_of<RunState>(state_words, word); }
std::string_view to_string(RunEvent::Kind kind) { return word_of(event_words, kind); }
std::optional<RunEvent::Kind> run_event_kind_from_string(std::string_view word) {
  return key_of<RunEvent::Kind>(event_words, word);
}
std::string_view to_string(RunEvent::Severity severity) { return word_of(severity_words, severity); }
std::optional<RunEvent::Severity> severity_from_string(std::string_view word) {
  return key_of<RunEvent::Severity>(severity_words, word);
}

bool outlives_step(RunEvent::Kind kind) {
  switch (kind) {
    case RunEvent::Kind::checkpoint:
    case RunEvent::Kind::spike:
    case RunEvent::Kind::logit:
    case RunEvent::Kind::non_finite:
      return false;
    default:
      return true;
  }
}

}  // namespace stacklab
