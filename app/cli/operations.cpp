#include "app/cli/operations.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/console.h"
#include "engine/base/text.h"

namespace stacklab::cli {

double Limits::reached(const OperationTotal& o) const {
  const double arithmetic = flops_per_second > 0 ? o.flops / flops_per_second : 0;
  const double memory = bytes_per_second > 0 ? o.bytes / bytes_per_second : 0;
  return std::max(arithmetic, memory) / o.seconds;
}

std::string operations_table(const std::vector<OperationTotal>& operations, double seconds, const Limits& limits) {
  const bool known = limits.flops_per_second > 0;
  std::vector<std::vector<std::string>> rows = {{"operation", "calls", "seconds", "GFLOP/s", "GB/s", "share"}};
  std::vector<bool> right = {false, true, true, true, true, true};
  if (known) rows[0].push_back("of the limit"), right.push_back(true);
  double inside = 0;
  const auto share = [&](double part) { return fmt::format("{:.1f} %", 100 * part / seconds); };
  for (const OperationTotal& o : operations) {
    inside += o.seconds;
    rows.push_back({o.op, format_integer(o.calls), fmt::format("{:.4f}", o.seconds),
                    fmt::format("{:.1f}", o.flops / o.seconds * 1e-9),
                    fmt::format("{:.1f}", o.bytes / o.seconds * 1e-9), share(o.seconds)});
    if (known) rows.back().push_back(fmt::format("{:.2f}", limits.reached(o)));
  }
  rows.push_back({"outside of them", "", fmt::format("{:.4f}", seconds - inside), "", "", share(seconds - inside)});
  if (known) rows.back().emplace_back();
  return table(rows, right);
}

void write_operations(JsonWriter& w, const std::vector<OperationTotal>& operations, double seconds,
                      const Limits& limits) {
  w.key("operations");
  w.begin_array();
  for (const OperationTotal& o : operations) {
    w.begin_object();
    w.member("op", o.op);
    w.member("calls", o.calls);
    w.member("seconds", o.seconds);
    w.member("flops", o.flops);
    w.member("bytes", o.bytes);
    w.member("gflop_per_second", o.flops / o.seconds * 1e-9);
    w.member("gbyte_per_second", o.bytes / o.seconds * 1e-9);
    w.member("share", o.seconds / seconds);
    if (limits.flops_per_second > 0) w.member("of_limit", limits.reached(o));
    w.end_object();
  }
  w.end_array();
}

}  // namespace stacklab::cli
