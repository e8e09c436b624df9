#include "engine/service/watch.h"

#include <fmt/format.h>

#include <map>

#include "engine/base/log.h"
#include "engine/base/text.h"

namespace stacklab {
namespace {

constexpr double seconds_per_hour = 3600;
constexpr double warning_share = 0.9;
constexpr double look_every = 2;  // seconds between looks at the disk and the workspace
// An alert on the disk is over when there is room for so much more than what raised it.
constexpr std::int64_t least_checkpoints = 2, enough_checkpoints = 3;
// Where heads are not clipped, logits beyond this end in attention that looks at one token.
constexpr double default_logit_threshold = 100;

double logit_threshold(const RunConfig& config) {
  return config.optim.qk_clip > 0 ? config.optim.qk_clip : default_logit_threshold;
}

}  // namespace

// Of hours and money, what ends first.
std::optional<BudgetWatch::Use> BudgetWatch::time_use(double elapsed, double ahead) const {
  const double hours = (before_ + elapsed + ahead) / seconds_per_hour, now = (before_ + elapsed) / seconds_per_hour;
  std::optional<Use> use;
  if (budget_.hours > 0)
    use =
        Use{hours, budget_.hours,
            fmt::format("{} of run.budget.hours={}", format_duration(now * seconds_per_hour), shortest(budget_.hours))};
  if (budget_.usd > 0 && budget_.usd_per_hour > 0) {
    const double limit = budget_.usd / budget_.usd_per_hour;
    if (!use || limit < use->limit)
      use = Use{hours, limit,
                fmt::format("{:.2f} of run.budget.usd={} (at {} an hour)", now * budget_.usd_per_hour,
                            shortest(budget_.usd), shortest(budget_.usd_per_hour))};
  }
  return use;
}

std::optional<std::string> BudgetWatch::spent(std::int64_t tokens, std::int64_t next_tokens, double elapsed,
                                              double next_seconds) const {
  if (const auto use = time_use(elapsed, next_seconds); use && use->used > use->limit)
    return fmt::format("budget: {} are used", use->text);
  if (budget_.tokens > 0 && tokens + next_tokens > budget_.tokens)
    return fmt::format("budget: {} of run.budget.tokens={} are used", format_integer(tokens), budget_.tokens);
  return std::nullopt;
}

std::optional<std::string> BudgetWatch::nearly_spent(std::int64_t tokens, double elapsed) {
  if (told_) return std::nullopt;
  std::string text;
  if (const auto use = time_use(elapsed, 0); use && use->used > warning_share * use->limit) text = use->text;
  if (budget_.tokens > 0 && static_cast<double>(tokens) > warning_share * static_cast<double>(budget_.tokens))
    text = fmt::format("{} of run.budget.tokens={}", format_integer(tokens), budget_.tokens);
  if (text.empty()) return std::nullopt;
  told_ = true;
  return fmt::format("The budget is nearly spent: {} are used", text);
}

WatchingSink::WatchingSink(WatchOptions options, std::unique_ptr<RunSink> to)
    : options_(std::move(options)),
      to_(std::move(to)),
      alerts_(logit_threshold(*options_.config)),
      budget_(options_.config->run.budget, options_.seconds_before),
      begun_(options_.clock()),
      step_began_(begun_),
      looked_at_(begun_ - look_every) {}

void WatchingSink::progress(const Progress& progress) {
  to_->progress(progress);
  if (progress.phase != "training") return;
  const double now = options_.clock(), elapsed = now - begun_, last_step = now - step_began_;
  step_began_ = now;
  const std::int64_t step = progress.done, tokens = step * options_.config->train.batch_tokens;
  if (now - looked_at_ >= look_every) {
    looked_at_ = now;
    look_around(step);
  }
  if (const auto nearly = budget_.nearly_spent(tokens, elapsed)) {
    log_warning("{}: {}", options_.config->name, *nearly);
    to_->event({RunEvent::Kind::budget, step, *nearly, RunEvent::Severity::warning});
  }
  if (stopped_ || progress.done >= progress.total) return;
  if (const auto spent = budget_.spent(tokens, options_.config->train.batch_tokens, elapsed, last_step)) {
    stopped_ = true;
    to_->event({RunEvent::Kind::budget, step, fmt::format("The {}", *spent), RunEvent::Severity::critical});
    options_.stop(*spent);
  }
}

void WatchingSink::metrics(const MetricEvent& event) {
  to_->metrics(event);
  const AlertWatch::Verdict verdict = alerts_.observe(event);
  for (const RunEvent& raised : verdict.raised) {
    log_warning("{}: {}", options_.config->name, raised.text);
    to_->event(raised);
  }
  for (const RunEvent::Kind kind : verdict.resolved) to_->resolved(kind, event.step);
}

// What was recorded up to here decides what comes next, whichever process recorded it.
void WatchingSink::resumed_after(std::int64_t step) {
  to_->resumed_after(step);
  alerts_ = AlertWatch(logit_threshold(*options_.config));
  to_->settle();
  const auto reader = open_store_reader(options_.workspace);
  if (!reader) return;
  // Steps need not be recorded one by one.
  const std::int64_t from = step - AlertWatch::memory * std::max<std::int64_t>(1, options_.config->run.log_every) - 1;
  std::map<std::int64_t, MetricEvent> events;
  // A fork's first steps are its parent's.
  RunId run = options_.run;
  for (std::int64_t last = step; !run.empty() && last > from;) {
    for (const std::string_view name : {metric::loss, metric::grad_norm, metric::max_logit}) {
      const auto points = (*reader)->series(run, std::string(name), from, last - from);
      if (!points) return;
      for (const SeriesPoint& p : *points) {
        if (p.step > last) break;
        events[p.step].step = p.step;
        events[p.step].values.push_back({name, p.value});
      }
    }
    const auto known = (*reader)->run(run);
    if (!known || known->parent.empty()) break;
    run = known->parent;
    last = std::min(last, known->fork_step);
  }
  for (const auto& [at, event] : events) alerts_.observe(event);
}

void WatchingSink::look_around(std::int64_t step) {
  if (const Status there = options_.store->check_place(); there.has_value() == gone_) {
    gone_ = !there;
    if (gone_) {
      log_error("{}: {}", options_.config->name, there.error().message());
      to_->event({RunEvent::Kind::store, step, there.error().message(), RunEvent::Severity::critical});
    } else {
      to_->resolved(RunEvent::Kind::store, step);
    }
  }
  const std::int64_t free = options_.free_bytes(), one = options_.checkpoint_bytes;
  if (free < 0 || gone_) return;
  if (!disk_low_ && free < least_checkpoints * one) {
    disk_low_ = true;
    const std::string text =
        fmt::format("The disk is nearly full: {} are free, a checkpoint takes {}",
                    format_bytes(static_cast<double>(free)), format_bytes(static_cast<double>(one)));
    log_warning("{}: {}", options_.config->name, text);
    to_->event({RunEvent::Kind::disk, step, text, RunEvent::Severity::warning, static_cast<double>(free)});
  } else if (disk_low_ && free >= enough_checkpoints * one) {
    disk_low_ = false;
    to_->resolved(RunEvent::Kind::disk, step);
  }
}

}  // namespace stacklab
