#include "app/cli/operations.h"

#include <fmt/format.h>

#include "app/cli/console.h"
#include "engine/base/text.h"

namespace stacklab::cli {

std::string operations_table(const std::vector<OperationTotal>& operations, double seconds) {
  std::vector<std::vector<std::string>> rows = {{"operation", "calls", "seconds", "GFLOP/s", "GB/s", "share"}};
  double inside = 0;
  const auto share = [&](double part) { return fmt::format("{:.1f} %", 100 * part / seconds); };
  for (const OperationTotal& o : operations) {
    inside += o.seconds;
    rows.push_back({o.op, format_integer(o.calls), fmt::format("{:.4f}", o.seconds),
                    fmt::format("{:.1f}", o.flops / o.seconds * 1e-9),
                    fmt::format("{:.1f}", o.bytes / o.seconds * 1e-9), share(o.seconds)});
  }
  rows.push_back({"outside of them", "", fmt::format("{:.4f}", seconds - inside), "", "", share(seconds - inside)});
  return table(rows, {false, true, true, true, true, true});
}

void write_operations(JsonWriter& w, const std::vector<OperationTotal>& operations, double seconds) {
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
    w.end_object();
  }
  w.end_array();
}

}  // namespace stacklab::cli
