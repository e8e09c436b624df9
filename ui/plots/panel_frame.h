// What every panel of a page has around it: title, unit, badges, a menu, and the focus ring of what it shows.
#pragma once

#include <QFrame>
#include <functional>
#include <vector>

#include "ui/theme/widgets.h"

class QHBoxLayout;
class QMenu;
class QVBoxLayout;

namespace stacklab::ui {

class PanelFrame : public QFrame {
  Q_OBJECT
 public:
  PanelFrame(const QString& id, const QString& title, QWidget* parent = nullptr);

  const QString& id() const { return id_; }
  QString title() const { return title_->full_text(); }
  QSize minimumSizeHint() const override;
  QToolButton* menu_button() const { return menu_button_; }
  // Said under exported pictures: what was drawn.
  void set_caption(const QString& caption) { caption_ = caption; }

  // What the panel shows, with its caption, as PNG, SVG or PDF by the file's ending. The file is written on another
  // thread.
  void save_picture(const QString& path);

 signals:
  void saved(const QString& path, const QString& error);  // error empty: done
  void hide_requested();
  void move_requested(int places);  // -1: earlier, 1: later

 protected:
  void set_content(QWidget* content);                                   // takes it; its focus rings the panel
  QToolButton* make_badge(const char* kind, const QString& icon_name);  // in the header, hidden
  // forms: the same said in full, then shorter; the first that there is room for is shown.
  void set_badge(QToolButton* badge, bool shown, const QStringList& forms, const QString& tip);
  QHBoxLayout* header() const { return header_; }
  QVBoxLayout* column() const { return column_; }
  TextLabel* unit() const { return unit_; }
  virtual void fill_menu(QMenu*) {}
  void open_menu(const QPoint& global);
  void ask_path(const QString& title, const QStringList& suffixes, std::function<void(const QString&)> save);

  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  struct Badge {
    QToolButton* button;
    QStringList forms;
    QString tip;
  };
  void fit_title();
  void fit_badges();
  std::vector<Badge> badges_;
  QString id_, caption_;
  QHBoxLayout* header_;
  QVBoxLayout* column_;
  TextLabel *title_, *unit_;
  QToolButton* menu_button_;
  QWidget* content_ = nullptr;
};

}  // namespace stacklab::ui
