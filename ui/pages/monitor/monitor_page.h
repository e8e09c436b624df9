// The page that watches runs: list, panels, and the inspector that the shell puts in a dock.
#pragma once

#include <optional>

#include "ui/frame/page.h"
#include "ui/models/run_list_model.h"
#include "ui/models/workspace_link.h"
#include "ui/pages/monitor/inspector.h"
#include "ui/pages/monitor/journey.h"
#include "ui/pages/monitor/monitor_charts.h"
#include "ui/pages/monitor/run_list_view.h"

class QCheckBox;
class QComboBox;
class QSlider;
class QStackedLayout;
class QToolButton;
class QUndoStack;

namespace stacklab::ui {

class MonitorPage : public Page {
  Q_OBJECT
 public:
  // Showing and hiding runs can be undone where a stack is given.
  explicit MonitorPage(WorkspaceLink* link, QUndoStack* undo = nullptr, QWidget* parent = nullptr);

  void add_actions(ActionSet& actions) override;
  QTabWidget* dock() const override { return inspector_; }
  bool dock_wanted() const override { return !is_empty_; }
  void show_run(const RunId& run, std::optional<std::int64_t> step) override;

  Inspector* inspector() const { return inspector_; }
  RunListModel* runs() const { return runs_; }
  RunListView* run_list() const { return list_; }
  RunFilterBox* run_filter() const { return filter_; }
  MonitorCharts* charts() const { return charts_; }
  JourneyStrip* journey_strip() const { return strip_; }
  QWidget* failure_strip() const { return failure_; }
  Notice* notice() const { return notice_; }

  // Explains the first run while it goes on, until the user closes it or it is over and the window opens again.
  void set_introduction(bool on, const std::string& corpus = {});
  bool is_empty() const { return is_empty_; }  // nothing to inspect
  bool introduction() const { return introduction_; }
  // What the button of an empty workspace says and helps with.
  void set_start_texts(const QString& help, const QString& button);
  // Pictures show buttons as in a window that can steer.
  void set_looks_steerable(bool on) { looks_steerable_ = on; }
  void set_list_visible(bool visible) override;

  const RunId& selected() const { return selected_; }
  void select(const RunId& id);
  void select_what_runs() { user_chose_ = false; }                                   // from the next look on
  QString trouble() const { return snapshot_ ? snapshot_->read_error : QString(); }  // why the store cannot be read
  bool settled() const override;

  // Actions of the shell's menus.
  void stop_selected();
  void resume_selected();
  void trace_selected();  // measures its next steps by operation
  bool can_trace() const { return inspector_->trace_button()->isEnabled(); }
  bool can_stop() const { return inspector_->stop_button()->isEnabled(); }
  bool can_resume() const { return inspector_->resume_button()->isEnabled(); }
  void go_to_first_non_finite();
  void export_values(const QString& path);   // what the shown panels show, as CSV
  void export_picture(const QString& path);  // of all panels, as PNG, SVG or PDF by its ending
  void ask_export_values();
  void ask_export_picture();

  // What is kept between starts: panels, axes, smoothing's companions.
  static constexpr int state_version = 1;
  QJsonObject state() const;
  void restore(const QJsonObject& state);

 signals:
  void state_changed();
  void start_requested();
  void introduction_closed();
  // While the first run is explained.
  void journey_told(const stacklab::ui::Journey& journey, const QString& title, const QString& sentence,
                    double left_seconds, double tokens_per_second);
  void steering_changed();
  void pin_wanted(qint64 number);
  void baseline_wanted(qint64 number);
  void clone_wanted(const stacklab::RunId& run);  // with other settings

 private:
  void build_header();
  void build_tools();
  void build_layout_choice();
  void fit_tools();
  void resizeEvent(QResizeEvent* event) override;
  void build_content();
  void take_snapshot(const WorkspaceSnapshotPtr& snapshot);
  void take_events(const EventsChunkPtr& events);
  void choose_selection();
  void update_curves();
  void update_inspector();
  void update_journey();
  void update_failure();
  void update_header();
  void update_list_head();
  void update_empty();
  const JobSnapshot* pending_job() const;  // of this process, whose run has no row yet
  const JobSnapshot* job_of(const RunId& run) const;
  double speed_of(const RunInfo& run) const;

  WorkspaceLink* link_;
  RunListModel* runs_;
  EventListModel* events_;
  Inspector* inspector_;
  MonitorCharts* charts_;
  QWidget *header_ = nullptr, *tools_ = nullptr, *list_box_ = nullptr;
  RunListView* list_ = nullptr;
  RunFilterBox* filter_ = nullptr;
  TextLabel *facts_ = nullptr, *points_ = nullptr, *list_count_ = nullptr, *smoothing_value_ = nullptr;
  QPushButton *first_non_finite_ = nullptr, *export_ = nullptr;
  QToolButton *back_ = nullptr, *forward_ = nullptr, *log_x_ = nullptr, *log_y_ = nullptr;
  QSlider* smoothing_ = nullptr;
  QComboBox *x_kind_ = nullptr, *layout_ = nullptr;
  QPushButton* add_panel_ = nullptr;
  std::vector<QWidget*> spare_tools_;  // what a narrow window gives up, first to last
  XKind curves_kind_ = XKind::step;
  QCheckBox *raw_ = nullptr, *robust_ = nullptr;
  JourneyStrip* strip_ = nullptr;
  QFrame* failure_ = nullptr;
  TextLabel *failure_title_ = nullptr, *failure_text_ = nullptr;
  QPushButton *failure_resume_ = nullptr, *failure_clone_ = nullptr, *failure_close_ = nullptr;
  Notice* notice_ = nullptr;
  QStackedLayout* stack_ = nullptr;
  QWidget* content_ = nullptr;

  WorkspaceSnapshotPtr snapshot_;
  Journey journey_;
  std::string journey_of_;
  RunId selected_;
  bool user_chose_ = false, inspector_shows_job_ = false;
  std::string introduction_corpus_;
  bool is_empty_ = false, introduction_ = false, looks_steerable_ = false;
  std::uint64_t events_generation_ = 0;
  std::string curves_signature_;
  QString dismissed_failure_;
  QString start_help_, start_button_;
};

}  // namespace stacklab::ui
