// The status bar: the machine at left, the running job in the middle, counts, store and workspace at right.
#pragma once

#include <QWidget>

#include "ui/models/snapshot.h"
#include "ui/theme/widgets.h"

namespace stacklab::ui {

class IconLabel;

class StatusStrip : public QWidget {
  Q_OBJECT
 public:
  // The log of the store above this size is an alarm.
  static constexpr std::int64_t wal_alarm_bytes = 67'000'000;
  // Less than this on the disk of the workspace is one too.
  static constexpr std::int64_t disk_alarm_bytes = 1'000'000'000;

  explicit StatusStrip(const QString& workspace, const QString& workspace_path, QWidget* parent = nullptr);
  void show_system(const SystemInfo& info);
  void show_snapshot(const WorkspaceSnapshot& snapshot);
  void show_message(const QString& text);  // for a few seconds, instead of the job

 private:
  void show_name(const struct StateLook& state, const QString& name);

  IconLabel *device_, *memory_, *disk_;
  QFrame* job_rule_;
  StatePill* pill_;
  ThinProgress* bar_;
  TextLabel *job_, *message_, *counts_, *wal_, *workspace_;
  QTimer* message_timer_;
};

}  // namespace stacklab::ui
