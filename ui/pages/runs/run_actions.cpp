#include "ui/pages/runs/run_actions.h"

#include <QCoreApplication>
#include <algorithm>

#include "ui/theme/icons.h"

namespace stacklab::ui {
namespace {

QString tr(const char* text) { return QCoreApplication::translate("run_actions", text); }

QAction* make(QObject* parent, const QString& text, const char* icon_name = nullptr) {
  auto* action = new QAction(text, parent);
  if (icon_name) action->setIcon(icon(QLatin1String(icon_name)));
  action->setIconVisibleInMenu(false);
  return action;
}

// Enabled, or with the reason why not as its tip.
void allow(QAction* action, bool enabled, const QString& why_not) {
  action->setEnabled(enabled);
  action->setToolTip(enabled ? QString(action->text()).remove(QLatin1Char('&')) : why_not);
  action->setStatusTip(enabled ? QString() : why_not);
}

bool can_go_on(RunState s) {
  return s == RunState::paused || s == RunState::failed || s == RunState::killed || s == RunState::lost;
}

}  // namespace

RunActions::RunActions(QObject* parent)
    : start(make(parent, tr("New run…"), "list-add")),
      from_file(make(parent, tr("New run from a file…"), "document-open")),
      clone(make(parent, tr("Clone and edit…"))),
      fork(make(parent, tr("Fork at a checkpoint…"), "vcs-branch")),
      pause(make(parent, tr("Pause"), "media-playback-pause")),
      resume(make(parent, tr("Resume"), "media-playback-start")),
      stop(make(parent, tr("Stop"), "media-playback-stop")),
      checkpoint(make(parent, tr("Checkpoint now"), "document-save")),
      tags(make(parent, tr("Edit tags"))),
      note(make(parent, tr("Edit notes"))),
      show(make(parent, tr("Show or hide curves"))),
      pin(make(parent, tr("Pin to the top"))),
      baseline(make(parent, tr("Take as baseline"))),
      archive(make(parent, tr("Archive"))),
      remove(make(parent, tr("Delete"))),
      overlay(make(parent, tr("Compare curves"), "compare")),
      compare(make(parent, tr("Compare configs"))),
      copy_id(make(parent, tr("Copy the hash of the config"))),
      select_filter(make(parent, tr("Filter runs"))) {
  pin->setCheckable(true);
  baseline->setCheckable(true);
}

std::vector<RunActions::Entry> RunActions::entries() const {
  return {{"runs.new", start, "Ctrl+Shift+A", false},
          {"runs.from_file", from_file, "", false},
          {"runs.clone", clone, "Ctrl+D", false},
          {"runs.fork", fork, "", false},
          {"runs.pause", pause, "Ctrl+Alt+P", true},
          {"runs.resume", resume, "Ctrl+Alt+R", false},
          {"runs.stop", stop, "Ctrl+Alt+S", false},
          {"runs.checkpoint", checkpoint, "Ctrl+Alt+C", false},
          {"runs.tags", tags, "Ctrl+T", true},
          {"runs.note", note, "Ctrl+Alt+N", false},
          {"runs.show", show, "", false},
          {"runs.pin", pin, "", false},
          {"runs.baseline", baseline, "Ctrl+Shift+L", false},
          {"runs.overlay", overlay, "Ctrl+Alt+O", false},
          {"runs.compare", compare, "Ctrl+Alt+D", false},
          {"runs.copy_id", copy_id, "", false},
          {"runs.archive", archive, "", true},
          {"runs.delete", remove, "Del", false},
          {"runs.filter", select_filter, "Ctrl+F", true}};
}

void RunActions::update(const std::vector<RunRowPtr>& chosen, std::int64_t baseline_number, bool can_steer) {
  const QString read_only = tr("This workspace is open for reading only.");
  const QString nothing = tr("Choose a run first.");
  const auto every = [&](auto&& holds) {
    return !chosen.empty() &&
           std::all_of(chosen.begin(), chosen.end(), [&](const RunRowPtr& r) { return holds(r->summary); });
  };
  const auto some = [&](auto&& holds) {
    return std::any_of(chosen.begin(), chosen.end(), [&](const RunRowPtr& r) { return holds(r->summary); });
  };
  const auto steer = [&](QAction* action, bool possible, const QString& why_not) {
    allow(action, can_steer && possible, !can_steer ? read_only : chosen.empty() ? nothing : why_not);
  };
  const bool one = chosen.size() == 1;
  const QString only_one = tr("Choose one run alone.");
  allow(start, can_steer, read_only);
  allow(from_file, can_steer, read_only);
  steer(clone, one, only_one);
  steer(fork, one && chosen[0]->summary.step > 0, one ? tr("It has made no step yet.") : only_one);
  const auto running = [](const RunSummary& s) { return s.state == RunState::running; };
  const bool stopping = some([](const RunSummary& s) { return s.state == RunState::stopping; });
  const QString idle = stopping ? tr("It is finishing its step and saving.") : tr("It is not running.");
  steer(pause, some(running), idle);
  steer(stop, some([](const RunSummary& s) { return s.state == RunState::running || s.state == RunState::queued; }),
        idle);
  steer(checkpoint, some(running), idle);
  steer(resume, some([](const RunSummary& s) { return can_go_on(s.state); }),
        every([](const RunSummary& s) { return s.state == RunState::finished; }) ? tr("It has reached its end.")
                                                                                 : tr("It is working."));
  steer(tags, one, only_one);
  steer(note, one, only_one);
  allow(show, !chosen.empty(), nothing);
  allow(pin, !chosen.empty(), nothing);
  allow(baseline, one, chosen.empty() ? nothing : only_one);
  baseline->setChecked(one && chosen[0]->summary.number == baseline_number);
  allow(overlay, chosen.size() > 1, tr("Choose two runs or more."));
  allow(compare, chosen.size() > 1 || (one && baseline_number >= 0), tr("Choose two runs or more."));
  allow(copy_id, one, chosen.empty() ? nothing : only_one);
  const bool idle_all = every([](const RunSummary& s) { return !is_active(s.state); });
  const bool away = every([](const RunSummary& s) { return s.archived > 0; });
  const bool trashed = every([](const RunSummary& s) { return s.deleted > 0; });
  archive->setText(away ? tr("Bring back from the archive") : tr("Archive"));
  remove->setText(trashed ? tr("Bring back from the trash") : tr("Delete"));
  steer(archive, idle_all, tr("It is being trained: stop it first."));
  steer(remove, idle_all, tr("It is being trained: stop it first."));
}

}  // namespace stacklab::ui
