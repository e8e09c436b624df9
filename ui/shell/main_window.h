// The window: menus, rail, pages, dock, status bar; and how it opens and closes. What it can do is in window_*.cpp.
#pragma once

#include <QMainWindow>
#include <QPointer>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "ui/models/workspace_link.h"
#include "ui/pages/monitor/monitor_page.h"
#include "ui/pages/runs/runs_page.h"
#include "ui/shell/dropped.h"
#include "ui/shell/palette_model.h"
#include "ui/shell/settings.h"
#include "ui/shell/settings_page.h"
#include "ui/shell/status_strip.h"

class QActionGroup;
class QDialog;
class QMenu;
class QMessageBox;
class QStackedWidget;
class QToolBar;
class QUndoStack;

namespace stacklab::ui {

class Bell;
class CommandPalette;
class DockRail;
class FirstStart;
class NoticeModel;
class NoticePanel;
class RecentsModel;

struct WindowOptions {
  QString workspace_path;
  LinkOptions link;
  // Submitted by itself when the store holds no runs; and behind the button of an empty workspace.
  std::optional<RunConfig> first_run;
  SubmitOptions first_run_options;
  bool start_first_run = true;
  // Reads a config that the user has chosen. May wait: called on the reading thread.
  std::function<Result<RunConfig>(const std::string& file)> load_config;
  // What all windows of a program share; made from settings_file (empty: nothing is remembered) where there is none.
  std::shared_ptr<SettingsKeeper> keeper = {};
  QString settings_file;
  // Whether another window shows this workspace, so that its runs go on when this one closes.
  std::function<bool()> is_shared = {};
  bool for_pictures = false;  // looks as if it could steer
};

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  explicit MainWindow(WindowOptions options, QWidget* parent = nullptr);
  ~MainWindow() override;

  // Opens the workspace; the window shows what comes of it.
  void open();
  // Stops what runs and closes, without asking (signals, end of session).
  void close_without_asking();
  bool is_closing() const { return closing_; }
  const QString& workspace_path() const { return options_.workspace_path; }

  // For pages.
  WorkspaceLink* link() const { return link_.get(); }
  QUndoStack* undo_stack() const { return undo_; }
  SettingsKeeper* keeper() const { return options_.keeper.get(); }
  ActionSet* actions_by_name() const { return actions_; }

  MonitorPage* monitor() const { return monitor_; }
  RunsPage* runs_page() const { return runs_page_; }
  SettingsPage* settings_page() const { return settings_page_; }
  Page* page(const QString& name) const;
  QString shown_page() const;
  QStringList page_names() const;  // "monitor", "settings"
  void show_page(const QString& name);
  CommandPalette* palette_sheet() const { return palette_; }
  NoticePanel* notice_sheet() const { return notice_panel_; }
  NoticeModel* notices() const { return notices_; }
  RecentsModel* recents() const { return recents_; }
  FirstStart* first_start() const { return first_start_; }  // null: it has been closed, or never was
  StatusStrip* status() const { return status_; }
  DockRail* dock_rail() const { return dock_rail_; }

  void set_theme(ThemeMode mode);       // and remembers it
  void override_theme(ThemeMode mode);  // for this time
  void set_zoom(int percent);
  Arrangement arrangement() const;
  void arrange(const Arrangement& to);
  void save_perspective(const QString& name);  // can be undone
  void remove_perspective(const QString& name);
  // Finds out what it is, and does what a drop does.
  void take_path(const QString& path);
  void take_dropped(const Dropped& dropped);

  bool settled() const;     // the shown page has drawn what there is
  QString trouble() const;  // why the store cannot be read; empty: it can
  QString open_error() const { return open_error_; }

 signals:
  void opened();
  void open_failed(const QString& message);
  void finished();  // everything is saved and shut
  void workspace_wanted(const QString& path);
  void window_wanted();
  void quit_wanted();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dragLeaveEvent(QDragLeaveEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void build_pages();
  void build_rail();
  void build_dock();
  void connect_link();
  void connect_pages();
  void restore_monitor();  // its panels and axes, kept in a file of their own
  void take_snapshot(const WorkspaceSnapshotPtr& snapshot);
  void submit_first_run();

  // window_runs.cpp: the table and the monitor beside it
  void connect_runs();
  void tell_shown();
  void restore_shown();
  void introduce();

  // window_menus.cpp
  void build_actions();
  void build_menus();
  void build_corner();
  void fill_recents(QMenu* menu);
  void fill_perspectives(QMenu* menu);
  std::vector<PaletteItem> palette_items();
  void open_palette();
  void edit_shortcuts();

  // window_intake.cpp
  void choose_config();
  void start_config(const QString& file);
  void choose_text();
  void train_on(const QString& file, qint64 bytes);
  void choose_workspace();
  void open_recent(const Recent& recent);
  void ask(const QString& fact, const QString& help, const QString& action = {}, std::function<void()> call = {});
  void show_problem(const QString& what, const QString& remedy);

  // window_closing.cpp
  void ask_to_close();
  void begin_close();
  void remember();
  void show_farewell(const QString& fact, const QString& help);
  bool work_in_flight() const;

  // window_layout.cpp
  void restore_layout();
  void reset_layout();
  void fit_to_width(int width);
  void fit_dock();
  void open_dock_tab(int tab);
  void ask_perspective_name();

  WindowOptions options_;
  std::unique_ptr<WorkspaceLink> link_;
  ActionSet* actions_ = nullptr;
  QUndoStack* undo_ = nullptr;
  QStackedWidget* pages_ = nullptr;
  std::vector<Page*> page_list_;
  MonitorPage* monitor_ = nullptr;
  RunsPage* runs_page_ = nullptr;
  SettingsPage* settings_page_ = nullptr;
  Notice* problem_ = nullptr;
  QToolBar* rail_ = nullptr;
  QActionGroup* page_actions_ = nullptr;
  QDockWidget* dock_ = nullptr;
  QStackedWidget* dock_pages_ = nullptr;
  DockRail* dock_rail_ = nullptr;
  StatusStrip* status_ = nullptr;
  FirstStart* first_start_ = nullptr;
  QWidget* palette_field_ = nullptr;
  Bell* bell_ = nullptr;
  CommandPalette* palette_ = nullptr;
  NoticeModel* notices_ = nullptr;
  NoticePanel* notice_panel_ = nullptr;
  RecentsModel* recents_ = nullptr;
  QLabel* drop_hint_ = nullptr;
  QAction *inspector_shown_ = nullptr, *list_shown_ = nullptr;
  QMap<ThemeMode, QAction*> theme_actions_;
  QPointer<QMessageBox> question_;
  QPointer<QDialog> farewell_;
  struct Restored {
    QSet<std::int64_t> shown;
    std::int64_t highest = -1;
  };
  std::optional<Restored> restored_;  // curves on show when the workspace was left; until the first look
  WorkspaceSnapshotPtr snapshot_;
  SystemInfoPtr system_;
  QString open_error_;
  bool first_run_decided_ = false, closing_ = false, done_ = false;
  bool narrow_ = false, very_narrow_ = false, dock_opened_ = false;  // opened: by hand, though the window is narrow
};

}  // namespace stacklab::ui
