// Training on a text of one's own: what will be made of it, then the making, with progress and a way to stop it.
#pragma once

#include <QDialog>
#include <QTimer>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "engine/service/own_text.h"
#include "ui/pages/runs/launch_planner.h"
#include "ui/theme/fact_grid.h"

class QComboBox;

namespace stacklab::ui {

// Prepares a text on a thread of its own. What it says comes at the pace of the window; its end waits for the thread,
// which looks for a stop many times a second.
class TextPreparer : public QObject {
  Q_OBJECT
 public:
  explicit TextPreparer(QObject* parent = nullptr);
  ~TextPreparer() override;

  void start(const QString& file, const RunConfig& config, const QString& workspace);
  void stop();
  bool is_busy() const { return busy_; }

 signals:
  void progressed(const stacklab::Progress& progress);
  // Null: it failed, or was stopped; then the error says which.
  void ended(std::shared_ptr<const stacklab::Result<stacklab::RunConfig>> result);

 private:
  std::jthread thread_;
  std::mutex mutex_;
  std::optional<Progress> latest_;
  QTimer tick_;
  bool busy_ = false;
};

class OwnTextDialog : public QDialog {
  Q_OBJECT
 public:
  // plan: works out how long it will take.
  OwnTextDialog(const QString& file, qint64 bytes, const QString& workspace, LaunchPlanner::Work plan, QWidget* parent);

  QPushButton* train_button() const { return train_; }
  QPushButton* settings_button() const { return settings_; }
  QPushButton* cancel_button() const { return cancel_; }
  QComboBox* size_box() const { return size_; }
  bool is_preparing() const { return preparer_->is_busy(); }
  QString words() const;

  void reject() override;  // stops what is being made first

 signals:
  void ready(const stacklab::RunConfig& config);            // to be started
  void settings_wanted(const stacklab::RunConfig& config);  // to be looked at first

 private:
  void choose();
  void begin(bool start);
  void show_progress(const Progress& progress);
  void take(const Result<RunConfig>& result);

  QString file_, workspace_;
  qint64 bytes_;
  RunConfig config_;
  bool start_ = true, leaving_ = false;
  TextPreparer* preparer_;
  LaunchPlanner* planner_;
  QComboBox* size_;
  FactGrid* facts_;
  QWidget *before_, *during_;
  struct Line {
    const char* phase;
    TextLabel *title, *detail;
    ThinProgress* bar;
  };
  std::vector<Line> lines_;
  TextLabel* problem_;
  QPushButton *train_, *settings_, *cancel_;
};

}  // namespace stacklab::ui
