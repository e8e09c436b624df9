// The dock beside the runs: what the chosen run is and what can be done with it; how the chosen ones differ.
#pragma once

#include <QTabWidget>
#include <functional>
#include <vector>

#include "ui/models/run_columns.h"
#include "ui/pages/runs/mini_loss.h"
#include "ui/theme/widgets.h"

class QGridLayout;
class QPlainTextEdit;
class QTableWidget;
class QTreeWidget;
class QVBoxLayout;

namespace stacklab::ui {

class FactGrid;
class RunHead;
struct RunActions;

class RunPanel : public QTabWidget {
  Q_OBJECT
 public:
  explicit RunPanel(const RunActions& actions, QWidget* parent = nullptr);

  // row may be null: nothing is chosen. baseline may be null, too.
  void show_run(const RunRowPtr& row, const RunRowPtr& baseline, double now, bool can_steer);
  // Two or more are compared with the first, or with the baseline where it is one of them.
  void show_difference(const std::vector<RunRowPtr>& rows, std::int64_t baseline);
  // Of the run on show, oldest first.
  void show_events(const std::vector<RunEventRow>& events);
  QTreeWidget* events() const { return events_; }
  MiniLoss* mini_loss() const { return mini_; }
  QPlainTextEdit* note() const { return note_; }
  QTableWidget* difference() const { return difference_; }
  QLabel* difference_title() const;

 signals:
  void note_edited(const QString& note);
  void tags_wanted();
  void event_chosen(qint64 step);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void save_note();

  RunHead* head_;
  TextLabel *against_title_, *difference_title_, *tags_;
  MiniLoss* mini_;
  FactGrid* facts_;
  QGridLayout* against_;
  QWidget *against_box_, *against_line_;
  QPlainTextEdit* note_;
  QTableWidget* difference_;
  QTreeWidget* events_;
  QWidget* body_;
  RunId shown_;
  QString shown_note_, shown_against_, shown_difference_;
  bool difference_dirty_ = true;
};

}  // namespace stacklab::ui
