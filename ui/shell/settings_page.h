// Everything that can be set, at once and with a search; and what this computer is.
#pragma once

#include <functional>
#include <map>

#include "ui/frame/page.h"
#include "ui/models/snapshot.h"
#include "ui/shell/settings.h"
#include "ui/theme/widgets.h"

class QButtonGroup;
class QGridLayout;
class QLineEdit;
class QScrollArea;
class QVBoxLayout;

namespace stacklab::ui {

class SettingsPage : public Page {
  Q_OBJECT
 public:
  struct Item {
    QString section, title, help;
    QFrame* box;              // of the section
    QList<QWidget*> widgets;  // of its row
    QWidget* control;         // that gets the focus
  };

  explicit SettingsPage(SettingsKeeper* keeper, QWidget* parent = nullptr);
  void show_system(const SystemInfo& info);
  void show_look();  // after the theme or the text size has changed elsewhere
  const std::vector<Item>& items() const { return items_; }
  void reveal(const QString& title);  // brings it before the eyes, focused
  QLineEdit* search() const { return search_; }

 signals:
  void theme_chosen(stacklab::ui::ThemeMode mode);
  void zoom_chosen(int percent);
  void layout_reset();
  void shortcuts_wanted();

 private:
  QFrame* add_section(const QString& title);
  void add_row(const QString& title, const QString& help, QWidget* content, QWidget* control);
  void build_appearance();
  void build_notifications();
  void filter(const QString& typed);

  SettingsKeeper* keeper_;
  QLineEdit* search_;
  QScrollArea* scroll_;
  QWidget* body_;
  QVBoxLayout* column_;
  QString section_;
  QFrame* box_ = nullptr;
  QGridLayout* grid_ = nullptr;
  std::map<QFrame*, TextLabel*> headings_;
  std::vector<Item> items_;
  TextLabel* nothing_;
  QButtonGroup* themes_;
  TextLabel* zoom_;
  QGridLayout* facts_;
  QFrame* facts_box_;
  std::map<QString, TextLabel*> values_;
};

}  // namespace stacklab::ui
