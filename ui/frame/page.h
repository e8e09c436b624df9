// What the shell knows of a page: its actions, what it shows in the dock, and how it is told to show a run.
#pragma once

#include <QWidget>
#include <optional>

#include "ui/frame/action_set.h"
#include "ui/models/snapshot.h"

class QTabWidget;

namespace stacklab::ui {

class Page : public QWidget {
  Q_OBJECT
 public:
  using QWidget::QWidget;

  // What can be done here, for menus and palette. An action that works on what the page shows calls show_me() first.
  virtual void add_actions(ActionSet&) {}
  // For the dock at right; null: this page has none.
  virtual QTabWidget* dock() const { return nullptr; }
  // Whether there is something to inspect.
  virtual bool dock_wanted() const { return dock() != nullptr; }
  // The list at left, which a narrow window gives up.
  virtual void set_list_visible(bool) {}
  // Brings a run, and what happened at a step of it, before the eyes.
  virtual void show_run(const RunId&, std::optional<std::int64_t>) {}
  // Everything that it shows has been read and drawn.
  virtual bool settled() const { return true; }

  void show_me() { emit shown_requested(); }

 signals:
  void shown_requested();
  void dock_wanted_changed();
  void message(const QString& text);  // one line for the status bar
};

}  // namespace stacklab::ui
