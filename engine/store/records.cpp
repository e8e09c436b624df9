#include "engine/store/records.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/json_reader.h"

namespace stacklab::store {
namespace {

using Json = nlohmann::ordered_json;

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

template <class Kind>
Kind kind_of(const char* key, std::optional<Kind> (*from_string)(std::string_view), JsonFields& fields) {
  const std::optional<Kind> kind = from_string(fields.text(key));
  if (!kind) fields.fault(key, "is unknown");
  return kind.value_or(Kind{});
}

std::vector<std::pair<std::string, double>> values_of(JsonFields& fields) {
  std::vector<std::pair<std::string, double>> values;
  for (const Json& pair : fields.list("values")) {
    const bool named = pair.is_array() && pair.size() == 2 && pair[0].is_string();
    const std::optional<double> value = named ? number_or_word(pair[1]) : std::nullopt;
    if (!value) return fields.fault("values", "are not names with numbers"), std::move(values);
    values.emplace_back(pair[0].get_ref<const std::string&>(), *value);
  }
  return values;
}

// Of a kind that is unknown nothing.
std::optional<RecordBody> body_of(JsonFields& f) {
  const std::string kind = f.text("kind");
  if (kind == "step")
    return StepRecord{f.count("step"), f.count("tokens"), f.any_number("seconds"), f.any_number("time"), values_of(f)};
  if (kind == "event") {
    EventRecord r{f.count("sequence"), f.count("step"), f.any_number("time"),
                  kind_of("event", run_event_kind_from_string, f), f.text("text")};
    // Lines of version 1 have no alerts.
    if (f.find("severity")) r.severity = kind_of("severity", severity_from_string, f);
    if (f.find("value")) r.value = f.any_number("value");
    return r;
  }
  if (kind == "resolved")
    return ResolvedRecord{f.count("sequence"), f.count("step"), f.any_number("time"),
                          kind_of("event", run_event_kind_from_string, f)};
  if (kind == "fact") return FactRecord{f.text("name"), f.any_number("value")};
  if (kind == "resumed") return ResumedRecord{f.count("after_step")};
  if (kind == "end") {
    EndRecord r{kind_of("state", run_state_from_string, f),
                f.text("cause"),
                f.any_number("time"),
                f.count("step"),
                f.count("tokens"),
                f.any_number("seconds"),
                f.count("parameters"),
                f.count("plan_bytes"),
                f.count("peak_bytes"),
                f.any_number("tokens_per_second")};
    if (f.find("queue")) r.queue_options = f.text("queue");
    return r;
  }
  return std::nullopt;
}

}  // namespace

std::int64_t row_count(const Record& record) {
  const auto* step = std::get_if<StepRecord>(&record.body);
  return step ? 1 + static_cast<std::int64_t>(step->values.size()) : 1;
}

std::int64_t rows_of(const std::vector<Record>& records) {
  std::int64_t rows = 0;
  for (const auto& record : records) rows += row_count(record);
  return rows;
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
                   if (!r.queue_options.empty()) json["queue"] = r.queue_options;
                 },
             },
             record.body);
  // Text that is not UTF-8 (a message with a file's name in it) must not end in an exception here.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Record> from_json_line(std::string_view line) {
  const auto json = parse_json_object(line);
  if (!json) return std::nullopt;
  JsonFields fields(*json);
  const SessionKey key{fields.text("run"), fields.count("session")};
  auto body = body_of(fields);
  if (!body || !fields.error().empty()) return std::nullopt;
  return Record{key, *std::move(body)};
}

}  // namespace stacklab::store
