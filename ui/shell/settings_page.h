// Theme, text size, layout; and what this computer is.
#pragma once

#include <QWidget>
#include <map>

#include "ui/models/snapshot.h"
#include "ui/theme/widgets.h"

class QButtonGroup;
class QGridLayout;

namespace stacklab::ui {

class SettingsPage : public QWidget {
  Q_OBJECT
 public:
  explicit SettingsPage(QWidget* parent = nullptr);
  void show_system(const SystemInfo& info);
  void show_look();  // after the theme or the text size has changed elsewhere

 signals:
  void theme_chosen(stacklab::ui::ThemeMode mode);
  void zoom_chosen(int percent);
  void layout_reset();

 private:
  QButtonGroup* themes_;
  TextLabel* zoom_;
  QGridLayout* facts_;
  std::map<QString, TextLabel*> values_;
};

}  // namespace stacklab::ui
