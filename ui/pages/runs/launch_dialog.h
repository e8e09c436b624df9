// A run before it is started: every key of its config, what follows from them, and what there is to start it with.
#pragma once

#include <QDialog>
#include <QPointer>

#include "ui/pages/runs/launch_form.h"
#include "ui/pages/runs/launch_planner.h"

class QCheckBox;
class QComboBox;
class QListWidget;

namespace stacklab::ui {

class FactGrid;
class RunControl;

// Where one begins.
struct LaunchStart {
  RunConfig config;
  QString title;  // "clone of first-run", the name of a file
  // To fork: the run, and the steps of its checkpoints; the newest is last.
  RunId parent;
  std::vector<std::int64_t> checkpoints;
  std::string workspace = {};  // for the words of a command
};

// A bar of what takes memory, beside what is free.
class MemoryBar : public QWidget {
 public:
  explicit MemoryBar(QWidget* parent = nullptr) : QWidget(parent) {}
  void set(const std::vector<std::pair<QString, std::int64_t>>& parts, std::int64_t free);
  static QColor color(std::size_t part);
  QSize sizeHint() const override { return {200, 16}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::vector<std::pair<QString, std::int64_t>> parts_;
  std::int64_t free_ = 0;
};

class LaunchDialog : public QDialog {
  Q_OBJECT
 public:
  LaunchDialog(RunControl* control, const LaunchStart& start, LaunchPlanner::Work work, QWidget* parent);

  LaunchForm* form() const { return form_; }
  QListWidget* sections() const { return sections_; }
  QPushButton* start_button() const { return start_; }
  QPushButton* queue_button() const { return queue_; }
  QPushButton* save_button() const { return save_; }
  QPushButton* copy_button() const { return copy_; }
  QPushButton* remedy_button() const { return remedy_; }
  QPushButton* anyway_button() const { return anyway_; }
  QString command() const;  // does what Start would, in a terminal
  QComboBox* checkpoint_box() const { return checkpoint_; }
  QComboBox* from_box() const { return from_box_; }
  QCheckBox* detached_box() const { return detached_; }
  LaunchPlanPtr plan() const { return plan_; }
  bool is_planning() const { return planner_->is_busy(); }
  QString footer() const;
  QString facts_text() const;  // all that stands at right, line by line

 protected:
  void keyPressEvent(QKeyEvent* event) override;

 private:
  QWidget* build_facts();
  int side_width(double at_13px, int percent) const;
  void judge();
  void show_sections();
  void show_plan(const LaunchPlanPtr& plan);
  void show_nothing(const QString& why);
  void name_start(const std::optional<RunState>& known);
  void begin(bool queued);
  void start_from(int choice);
  void save();
  void copy();
  void show_remedy(const LaunchFacts& facts);

  RunControl* control_;
  LaunchStart from_;
  LaunchForm* form_;
  LaunchPlanner* planner_;
  QListWidget* sections_;
  QComboBox *checkpoint_ = nullptr, *from_box_ = nullptr;
  QCheckBox* detached_;
  MemoryBar* bar_;
  FactGrid *memory_, *time_, *model_, *disk_;
  StatePill* fits_;
  QWidget* facts_;
  TextLabel *trouble_, *memory_note_, *remedy_note_, *time_note_, *hash_, *known_, *planning_;
  QPushButton *start_, *queue_, *save_, *copy_, *cancel_, *remedy_, *anyway_;
  LaunchPlanPtr plan_;
  QString problem_;
};

}  // namespace stacklab::ui
