#include "app/cli/levers.h"

#include <fmt/format.h>

#include "app/cli/console.h"
#include "engine/base/text.h"

namespace stacklab::cli {

std::string lever_table(const Levers& levers) {
  const auto bytes = [](std::int64_t b) { return format_bytes(static_cast<double>(b)); };
  std::vector<std::vector<std::string>> rows = {{"lever", "saves alone", "more work", "peak with those above", "what"}};
  for (const Lever& lever : levers.levers) {
    if (lever.settings.empty()) {
      rows.push_back({std::string(lever.name), "–", "–", bytes(lever.peak_bytes), lever.why_not});
      continue;
    }
    const std::string price = lever.price.empty() ? "" : "; " + lever.price;
    rows.push_back({fmt::format("{}", fmt::join(lever.settings, " ")), bytes(lever.saved_bytes),
                    fmt::format("{:.1f} %", 100 * lever.more_flops),
                    bytes(lever.peak_bytes) + (lever.fits ? ", fits" : ""), lever.what + price});
  }
  std::string text = table(rows, {false, true, true, true, false});
  const std::vector<std::string> enough = levers.enough();
  if (!enough.empty()) {
    text += "it fits with";
    for (const std::string& setting : enough) text += " --set " + setting;
    text += "\n";
  }
  return text;
}

void write_levers(JsonWriter& w, const Levers& levers) {
  w.begin_object();
  w.member("peak_bytes", levers.peak_bytes);
  w.member("budget_bytes", levers.budget_bytes);
  w.member("step_flops", levers.flops);
  const auto write_settings = [&](std::string_view key, const std::vector<std::string>& settings) {
    w.key(key);
    w.begin_array();
    for (const std::string& setting : settings) w.value(setting);
    w.end_array();
  };
  write_settings("enough", levers.enough());
  w.key("levers");
  w.begin_array();
  for (const Lever& lever : levers.levers) {
    w.begin_object();
    w.member("name", lever.name);
    w.member("applies", !lever.settings.empty());
    write_settings("settings", lever.settings);
    w.member("what", lever.settings.empty() ? lever.why_not : lever.what);
    w.member("price", lever.price);
    w.member("saved_bytes", lever.saved_bytes);
    w.member("more_flops", lever.more_flops);
    w.member("peak_bytes_with_those_before", lever.peak_bytes);
    w.member("fits", lever.fits);
    w.end_object();
  }
  w.end_array();
  w.end_object();
}

}  // namespace stacklab::cli
