#include "engine/store/records.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace stacklab::store {
namespace {

using Json = nlohmann::json;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // Clang 14 does not find it by itself

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double number_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto& word = json.get_ref<const std::string&>();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  throw std::invalid_argument("not a number");
}

RecordBody body_of(const Json& json) {
  const auto kind = json.at("kind").get<std::string>();
  if (kind == "step") {
    StepRecord r{json.at("step"), json.at("tokens"), number_of(json.at("seconds")), number_of(json.at("time")), {}};
    for (const auto& pair : json.at("values"))
      r.values.emplace_back(pair.at(0).get<std::string>(), number_of(pair.at(1)));
    return r;
  }
  if (kind == "event") {
    const auto event = run_event_kind_from_string(json.at("event").get<std::string>());
    if (!event) throw std::invalid_argument("unknown event");
    EventRecord r{json.at("sequence"), json.at("step"), number_of(json.at("time")), *event, json.at("text")};
    // Lines of version 1 have no alerts.
    const auto severity = severity_from_string(json.value("severity", ""));
    if (!severity) throw std::invalid_argument("unknown severity");
    r.severity = *severity;
    if (const auto value = json.find("value"); value != json.end()) r.value = number_of(*value);
    return r;
  }
  if (kind == "resolved") {
    const auto event = run_event_kind_from_string(json.at("event").get<std::string>());
    if (!event) throw std::invalid_argument("unknown event");
    return ResolvedRecord{json.at("sequence"), json.at("step"), number_of(json.at("time")), *event};
  }
  if (kind == "fact") return FactRecord{json.at("name"), number_of(json.at("value"))};
  if (kind == "resumed") return ResumedRecord{json.at("after_step")};
  if (kind == "end") {
    const auto state = run_state_from_string(json.at("state").get<std::string>());
    if (!state) throw std::invalid_argument("unknown state");
    return EndRecord{*state,
                     json.at("cause"),
                     number_of(json.at("time")),
                     json.at("step"),
                     json.at("tokens"),
                     number_of(json.at("seconds")),
                     json.at("parameters"),
                     json.at("plan_bytes"),
                     json.at("peak_bytes"),
                     number_of(json.at("tokens_per_second"))};
  }
  throw std::invalid_argument("unknown kind");
}

}  // namespace

std::int64_t row_count(const Record& record) {
  const auto* step = std::get_if<StepRecord>(&record.body);
  return step ? 1 + static_cast<std::int64_t>(step->values.size()) : 1;
}

std::string to_json_line(const Record& record) {
  Json json = {{"run", record.key.run}, {"session", record.key.session}};
  std::visit(Overloaded{
                 [&](const StepRecord& r) {
                   Json values = Json::array();
                   for (const auto& [name, value] : r.values) values.push_back(Json::array({name, number(value)}));
                   json.update({{"kind", "step"},
                                {"step", r.step},
                                {"tokens", r.tokens},
                                {"seconds", number(r.process_seconds)},
                                {"time", number(r.unix_time)},
                                {"values", std::move(values)}});
                 },
                 [&](const EventRecord& r) {
                   json.update({{"kind", "event"},
                                {"sequence", r.sequence},
                                {"step", r.step},
                                {"time", number(r.unix_time)},
                                {"event", std::string(to_string(r.kind))},
                                {"text", r.text}});
                   if (r.severity != RunEvent::Severity::none) json["severity"] = std::string(to_string(r.severity));
                   if (r.value) json["value"] = number(*r.value);
                 },
                 [&](const ResolvedRecord& r) {
                   json.update({{"kind", "resolved"},
                                {"sequence", r.sequence},
                                {"step", r.step},
                                {"time", number(r.unix_time)},
                                {"event", std::string(to_string(r.kind))}});
                 },
                 [&](const FactRecord& r) {
                   json.update({{"kind", "fact"}, {"name", r.name}, {"value", number(r.value)}});
                 },
                 [&](const ResumedRecord& r) {
                   json.update({{"kind", "resumed"}, {"after_step", r.after_step}});
                 },
                 [&](const EndRecord& r) {
                   json.update({{"kind", "end"},
                                {"state", std::string(to_string(r.state))},
                                {"cause", r.cause},
                                {"time", number(r.unix_time)},
                                {"step", r.step},
                                {"tokens", r.tokens},
                                {"seconds", number(r.seconds)},
                                {"parameters", r.parameters},
                                {"plan_bytes", r.plan_bytes},
                                {"peak_bytes", r.peak_bytes},
                                {"tokens_per_second", number(r.tokens_per_second)}});
                 },
             },
             record.body);
  // Text that is not UTF-8 (a message with a file's name in it) must not end in an exception here.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Record> from_json_line(std::string_view line) {
  try {
    const Json json = Json::parse(line);
    Record record;
    record.key = {json.at("run").get<std::string>(), json.at("session").get<std::int64_t>()};
    record.body = body_of(json);
    return record;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace stacklab::store
