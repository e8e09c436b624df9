// The dock at the right: what one run is, how far it is, what can be done with it, and what happened in it.
#pragma once

#include <QListView>
#include <QStyledItemDelegate>
#include <QTabWidget>

#include "ui/models/event_list_model.h"
#include "ui/models/snapshot.h"
#include "ui/plots/time_bars.h"
#include "ui/theme/fact_grid.h"
#include "ui/theme/widgets.h"

class QPlainTextEdit;

namespace stacklab::ui {

class RunHead;

class EventDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override;
  QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override;
};

class Inspector : public QTabWidget {
  Q_OBJECT
 public:
  explicit Inspector(EventListModel* events, QWidget* parent = nullptr);

  void show_nothing();
  void show_job(const JobSnapshot& job);  // which has no run yet
  void show_run(const RunInfo& run, double now, double tokens_per_second, bool can_steer);

  TimeBars* times() const { return times_; }
  QPushButton* stop_button() const { return stop_; }
  QPushButton* resume_button() const { return resume_; }
  QPushButton* trace_button() const { return trace_; }
  QString trace_note() const { return trace_note_->full_text(); }
  // The run is being asked for a trace; and what came of it, empty: it was asked.
  void trace_begun(const RunInfo& run);
  void trace_asked(const RunId& run, const QString& error);

 signals:
  void stop_requested();
  void resume_requested();
  void trace_requested();
  void event_chosen(qint64 step);

 private:
  QWidget* make_times();
  QWidget* make_samples();
  void show_times(const RunSummary& run);
  void show_trace(const RunInfo& run, bool can_steer);
  void set_button(QPushButton* button, bool enabled, const QString& why_not);

  RunHead* head_;
  TextLabel* events_title_;
  QPushButton *stop_, *resume_, *trace_ = nullptr;
  FactGrid* facts_;
  QListView* events_;
  EventListModel* event_model_;
  TextLabel *times_note_ = nullptr, *trace_note_ = nullptr;
  // The trace that was asked for last: of which run, when it was measured before, and what went wrong.
  RunId trace_run_;
  double traced_before_ = 0;
  QString trace_error_;
  TimeBars* times_ = nullptr;
  QPlainTextEdit* config_;
  std::string shown_config_;
};

}  // namespace stacklab::ui
