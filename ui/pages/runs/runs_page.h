// All runs of the workspace: looked for, sorted, grouped, described, steered; and what waits to become one.
#pragma once

#include <QJsonObject>
#include <QPointer>
#include <QTimer>
#include <QUndoStack>

#include "ui/frame/page.h"
#include "ui/models/run_table_model.h"
#include "ui/pages/runs/filter_field.h"
#include "ui/pages/runs/launch_dialog.h"
#include "ui/pages/runs/queue_panel.h"
#include "ui/pages/runs/run_actions.h"
#include "ui/pages/runs/run_control.h"
#include "ui/pages/runs/run_panel.h"
#include "ui/pages/runs/runs_view.h"
#include "ui/pages/runs/saved_views.h"

class QComboBox;
class QMenu;

namespace stacklab::ui {

class RunsPage : public Page {
  Q_OBJECT
 public:
  RunsPage(WorkspaceLink* link, QUndoStack* undo, QWidget* parent = nullptr);

  void add_actions(ActionSet& actions) override;
  QTabWidget* dock() const override { return panel_; }
  void show_run(const RunId& run, std::optional<std::int64_t> step) override;
  bool dock_wanted() const override { return cover_ == nullptr && !is_empty_; }
  bool settled() const override;
  // Stands in place of the table until it is closed.
  void set_cover(QWidget* cover, const QString& facts);
  void close_cover();
  bool is_covered() const { return cover_ != nullptr; }
  // A config to be looked at before it is started: of a file, a drop, a preset.
  LaunchDialog* launch(LaunchStart start);
  // A run's config, to be changed and started as another run.
  void clone(const RunSummary& run);
  // What works out the needs of a config, in this workspace; for a thread of its own.
  LaunchPlanner::Work plan_work() const;

  RunTableModel* model() const { return model_; }
  RunsView* view() const { return view_; }
  FilterField* filter() const { return filter_; }
  RunPanel* panel() const { return panel_; }
  QueuePanel* queue() const { return queue_; }
  RunControl* control() const { return control_; }
  RunActions& actions() { return actions_; }
  const std::vector<QAction*>& preset_actions() const { return preset_actions_; }
  LaunchDialog* launch_dialog() const { return launch_; }
  void leave();  // what was changed just now is kept, too
  RunsViewState state() const;
  void apply(const RunsViewState& state);
  void save_view(const QString& name);
  void remove_view(const QString& name);
  const SavedViews& views() const { return views_; }
  void set_group(const QString& key);
  void sort_by(const QString& column, bool descending);
  void set_columns(const QStringList& ids);
  std::vector<RunRowPtr> chosen() const;
  // Which runs have their curves on show, and which have not.
  void follow_shown(const QSet<std::int64_t>& shown, const QSet<std::int64_t>& hidden);
  QString facts_text() const { return facts_->full_text(); }
  Notice* notice() const { return empty_; }
  // Undoable.
  void toggle_pinned(const std::vector<std::int64_t>& numbers);
  void toggle_baseline(std::int64_t number);

 signals:
  void run_chosen(const stacklab::RunId& run);
  void event_chosen(const stacklab::RunId& run, qint64 step);
  void cover_closed();
  // What becomes of it comes back by follow_shown: which curves are on show is the monitor's to know.
  void show_wanted(const QSet<std::int64_t>& numbers, bool shown);
  void overlay_wanted(const QSet<std::int64_t>& numbers);  // these alone, and before the eyes
  void marks_changed();                                    // pinned runs, the baseline
  // As this workspace was left: of the runs up to the highest number, those were on show.
  void shown_restored(const QSet<std::int64_t>& shown, std::int64_t highest);

 private:
  void build();
  void connect_actions();
  void add_preset_actions(ActionSet& actions);
  void open_file();
  void fork_chosen();
  void put_away(bool trash);
  void take(const RunListAnswerPtr& answer);
  void choice_moved();
  void ask_store();
  void fill_view_menu();
  void fill_column_menu(QMenu* menu);
  void show_context_menu(const QPoint& at);
  void edit_cell(const QString& column);
  void toggle_shown(const std::vector<std::int64_t>& numbers);
  void read_mini();
  void forecast_queue();
  void load_views();
  void keep_views();
  void show_emptiness();
  void keep_rows();

  WorkspaceLink* link_;
  RunControl* control_;
  RunSource* source_;
  RunTableModel* model_;
  RunActions actions_;
  std::vector<QAction*> preset_actions_;
  RunsView* view_;
  FilterField* filter_;
  RunPanel* panel_;
  QueuePanel* queue_;
  TextLabel *facts_, *baseline_;
  QToolButton *view_button_, *columns_button_;
  QComboBox* group_;
  QPushButton *overlay_, *new_run_;
  Notice* empty_;
  QWidget *tools_, *cover_ = nullptr;
  QString cover_facts_;
  QPushButton* close_cover_;
  QPointer<LaunchDialog> launch_;
  LaunchPlanner* forecaster_ = nullptr;
  RunConfig forecast_of_;
  RunId forecast_run_;
  SavedViews views_;
  QSet<std::int64_t> shown_;
  RunFilter filter_tree_;
  std::optional<RunFilter> filter_with_rows_;     // the last one that matched a run
  bool put_away_ = false, undo_offered_ = false;  // runs, since the window opened
  QString sort_ = QStringLiteral("number");
  bool descending_ = true, applying_ = false, is_empty_ = false, views_loaded_ = false, mini_busy_ = false;
  QTimer keep_timer_, choice_timer_;
  std::map<RunState, std::int64_t> counts_;
  std::int64_t all_ = -1;
  QString error_, mini_key_;
  std::string workspace_;  // its folder; empty until it is open
};

}  // namespace stacklab::ui
