// The window: menus, rail, pages, inspector dock, status bar; and how it opens and closes.
#pragma once

#include <QMainWindow>
#include <functional>
#include <memory>
#include <optional>

#include "ui/models/workspace_link.h"
#include "ui/pages/monitor/monitor_page.h"
#include "ui/shell/settings.h"
#include "ui/shell/settings_page.h"
#include "ui/shell/status_strip.h"

class QActionGroup;
class QDialog;
class QMessageBox;
class QStackedWidget;
class QToolBar;

namespace stacklab::ui {

struct WindowOptions {
  QString workspace_path;
  LinkOptions link;
  // Submitted by itself when the store holds no runs; and behind the button of an empty workspace.
  std::optional<RunConfig> first_run;
  SubmitOptions first_run_options;
  bool start_first_run = true;
  // Reads a config that the user has chosen. May wait: called on the reading thread.
  std::function<Result<RunConfig>(const std::string& file)> load_config;
  QString settings_file;      // empty: nothing is remembered
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

  MonitorPage* monitor() const { return monitor_; }
  WorkspaceLink* link() const { return link_.get(); }
  QStringList page_names() const;  // "monitor", "settings"
  void show_page(const QString& name);
  void set_theme(ThemeMode mode);       // and remembers it
  void override_theme(ThemeMode mode);  // for this time
  bool settled() const;                 // the shown page has drawn what there is
  QString trouble() const;              // why the store cannot be read; empty: it can
  QString open_error() const { return open_error_; }

 signals:
  void opened();
  void open_failed(const QString& message);
  void finished();  // everything is saved and shut

 protected:
  void closeEvent(QCloseEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void build_rail();
  void build_dock();
  void build_menus();
  void connect_link();
  void take_snapshot(const WorkspaceSnapshotPtr& snapshot);
  void submit_first_run();
  void choose_config();
  void start_config(const QString& file);
  void show_problem(const QString& what, const QString& remedy);
  void ask_to_close();
  void begin_close();
  void show_farewell(const QString& fact, const QString& help);
  void show_cheat_sheet();
  void show_about();
  void set_zoom(int percent);
  void reset_layout();
  void fit_to_width(int width);
  void fit_dock();
  void show_error(const QString& title, const QString& what);
  bool work_in_flight() const;
  QAction* add_action(QMenu* menu, const QString& text, const QKeySequence& shortcut, std::function<void()> call);

  WindowOptions options_;
  Settings settings_;
  std::unique_ptr<WorkspaceLink> link_;
  QStackedWidget* pages_ = nullptr;
  MonitorPage* monitor_ = nullptr;
  SettingsPage* settings_page_ = nullptr;
  Notice* problem_ = nullptr;
  QToolBar* rail_ = nullptr;
  QActionGroup* page_actions_ = nullptr;
  QDockWidget* dock_ = nullptr;
  StatusStrip* status_ = nullptr;
  QAction *stop_ = nullptr, *resume_ = nullptr, *inspector_shown_ = nullptr, *list_shown_ = nullptr;
  QMap<ThemeMode, QAction*> theme_actions_;
  QPointer<QMessageBox> question_;
  QPointer<QDialog> farewell_;
  WorkspaceSnapshotPtr snapshot_;
  SystemInfoPtr system_;
  QString open_error_;
  bool first_run_decided_ = false, closing_ = false, done_ = false;
  bool dock_hidden_by_width_ = false, list_hidden_by_width_ = false;
};

}  // namespace stacklab::ui
