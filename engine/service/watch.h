// Looks on while a job trains: alerts on its numbers, its budget, the disk, and whether its workspace is still there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/result.h"
#include "engine/config/run_config.h"
#include "engine/run/alerts.h"
#include "engine/run/run.h"
#include "engine/store/store.h"

namespace stacklab {

// A run's budget, over all its processes.
class BudgetWatch {
 public:
  BudgetWatch(const BudgetConfig& budget, double seconds_before) : budget_(budget), before_(seconds_before) {}

  // What another step, as large and as long, would pass: "budget: 2 h of run.budget.hours=2 are used". elapsed: seconds
  // of this process.
  std::optional<std::string> spent(std::int64_t tokens, std::int64_t next_tokens, double elapsed,
                                   double next_seconds) const;
  // Past 90 % of something: said once.
  std::optional<std::string> nearly_spent(std::int64_t tokens, double elapsed);

 private:
  struct Use {
    double used, limit;
    std::string text;
  };
  std::optional<Use> time_use(double elapsed, double ahead) const;

  BudgetConfig budget_;
  double before_;
  bool told_ = false;
};

struct WatchOptions {
  const RunConfig* config = nullptr;
  RunId run;
  std::filesystem::path workspace;
  const Store* store = nullptr;
  double seconds_before = 0;                           // of the run's earlier processes
  std::int64_t checkpoint_bytes = 0;                   // less than two of them free is an alert
  std::function<void(const std::string& cause)> stop;  // the budget is spent
  std::function<double()> clock;                       // steady seconds
  std::function<std::int64_t()> free_bytes;            // of the workspace's disk; negative: unknown
};

// Hands everything on to a sink, with what it has to say added.
class WatchingSink final : public RunSink {
 public:
  WatchingSink(WatchOptions options, std::unique_ptr<RunSink> to);

  void progress(const Progress& progress) override;
  void metrics(const MetricEvent& event) override;
  void event(const RunEvent& event) override { to_->event(event); }
  void resolved(RunEvent::Kind kind, std::int64_t step) override { to_->resolved(kind, step); }
  void beat(double next_within_seconds) override { to_->beat(next_within_seconds); }
  void resumed_after(std::int64_t step) override;
  void fact(std::string_view name, double value) override { to_->fact(name, value); }
  void settle() override { to_->settle(); }

 private:
  void look_around(std::int64_t step);

  const WatchOptions options_;
  const std::unique_ptr<RunSink> to_;
  AlertWatch alerts_;
  BudgetWatch budget_;
  double begun_, step_began_, looked_at_;
  bool disk_low_ = false, gone_ = false, stopped_ = false;
};

}  // namespace stacklab
