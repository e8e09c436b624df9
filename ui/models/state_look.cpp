#include "ui/models/state_look.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {
QString tr(const char* text) { return QCoreApplication::translate("states", text); }
}  // namespace

StateLook look_of(RunState state, bool stalled) {
  switch (state) {
    case RunState::queued:
      return {Glyph::circle, tr("queued"), Token::text3, Token::hover};
    case RunState::running:
      return stalled ? StateLook{Glyph::play_hollow, tr("stalled"), Token::warn, Token::warn_soft}
                     : StateLook{Glyph::play, tr("running"), Token::info, Token::info_soft};
    case RunState::paused:
      return {Glyph::pause, tr("paused"), Token::warn, Token::warn_soft};
    case RunState::stopping:
      return {Glyph::square_hollow, tr("stopping"), Token::warn, Token::warn_soft};
    case RunState::finished:
      return {Glyph::check, tr("finished"), Token::good, Token::good_soft};
    case RunState::failed:
      return {Glyph::cross, tr("failed"), Token::bad, Token::bad_soft};
    case RunState::killed:
      return {Glyph::square, tr("killed"), Token::bad, Token::bad_soft};
    case RunState::lost:
      return {Glyph::question, tr("lost"), Token::warn, Token::warn_soft};
  }
  return {Glyph::question, tr("unknown"), Token::text3, Token::hover};
}

QString cause_of(const RunInfo& run, double now) {
  const RunSummary& s = run.summary;
  if (s.state == RunState::running && s.stalled && s.last_beat > 0)
    return tr("no beat for %1").arg(format_duration(now - s.last_beat));
  if (!s.cause.empty()) {
    const QString cause = QString::fromStdString(s.cause);
    // An option of the command line is no word of the window.
    static const QLatin1String limit("reached --max-steps ");
    return cause.startsWith(limit) ? tr("paused at its limit of %1 steps").arg(cause.mid(limit.size())) : cause;
  }
  if (s.state == RunState::lost && s.last_beat > 0) return tr("last beat %1").arg(format_clock(s.last_beat));
  if (s.state == RunState::stopping) return tr("finishing the step and saving");
  return {};
}

bool has_diverged(const RunInfo& run) {
  const RunSummary& s = run.summary;
  if (s.state != RunState::failed) return false;
  return (s.last_loss && !std::isfinite(*s.last_loss)) || s.cause.find("not finite") != std::string::npos;
}

EventLook look_of(RunEvent::Kind kind) {
  switch (kind) {
    case RunEvent::Kind::checkpoint:
      return {Glyph::diamond, Token::good};
    case RunEvent::Kind::spike:
      return {Glyph::triangle_down, Token::warn};
    case RunEvent::Kind::logit:
      return {Glyph::square, Token::bad};
    case RunEvent::Kind::non_finite:
      return {Glyph::cross, Token::bad};
    case RunEvent::Kind::warning:
    case RunEvent::Kind::stall:
    case RunEvent::Kind::budget:
    case RunEvent::Kind::disk:
    case RunEvent::Kind::store:
      return {Glyph::triangle_down, Token::warn};
    case RunEvent::Kind::info:
      break;
  }
  return {Glyph::diamond, Token::text3};
}

double fraction_done(const RunSummary& run) {
  if (run.total_steps <= 0) return -1;
  return std::clamp(static_cast<double>(run.step) / static_cast<double>(run.total_steps), 0.0, 1.0);
}

double seconds_left(const RunSummary& run) {
  if (!is_active(run.state) || run.step <= 0 || run.seconds <= 0 || run.total_steps < run.step) return -1;
  return run.seconds / static_cast<double>(run.step) * static_cast<double>(run.total_steps - run.step);
}

QString phase_title(const std::string& phase) {
  if (phase == "text") return tr("Text");
  if (phase == "shards" || phase == "starting") return tr("Preparation");
  if (phase == "training") return tr("Training");
  if (phase == "evaluation") return tr("Evaluation");
  return QString::fromStdString(phase);
}

bool is_queued(const JobSnapshot& job) { return job.progress.phase.empty() || job.progress.phase == "queued"; }

std::optional<double> fact_of(const RunSummary& run, std::string_view name) {
  for (const auto& [key, value] : run.facts)
    if (key == name) return value;
  return std::nullopt;
}

double tokens_per_step(const RunInfo& run) {
  if (run.config.batch_tokens > 0) return static_cast<double>(run.config.batch_tokens);
  return run.summary.step > 0 ? static_cast<double>(run.summary.tokens) / static_cast<double>(run.summary.step) : 0;
}

}  // namespace stacklab::ui
