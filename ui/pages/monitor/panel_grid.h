// Where the panels of a page stand: rows of columns of panels, which the user resizes, moves, hides and brings back.
#pragma once

#include <QJsonArray>
#include <QScrollArea>
#include <QString>
#include <vector>

#include "ui/plots/panel_frame.h"

class QSplitter;

namespace stacklab::ui {

struct PanelLayout {
  struct Place {
    QString panel;
    double height = 1;  // beside its neighbours in the column
    bool operator==(const Place&) const = default;
  };
  struct Column {
    double width = 1;
    std::vector<Place> places;
    bool operator==(const Column&) const = default;
  };
  struct Row {
    double height = 1;
    std::vector<Column> columns;
    bool operator==(const Row&) const = default;
  };
  std::vector<Row> rows;
  bool operator==(const PanelLayout&) const = default;

  QStringList panels() const;  // in order
  void add(const QString& panel);
  void remove(const QString& panel);
  void move(const QString& panel, int places);                     // trades places with another
  void resize(const QString& panel, double width, double height);  // times so much
  QJsonArray to_json() const;
  // Panels that are not known, or stand there twice, are left out; so is what holds none.
  static PanelLayout from_json(const QJsonArray& from, const QStringList& known);
};

class PanelGrid : public QScrollArea {
  Q_OBJECT
 public:
  explicit PanelGrid(QWidget* parent = nullptr);

  void add_panel(PanelFrame* panel);  // known from now on; shown where a layout has it
  void set_layout(const PanelLayout& layout);
  const PanelLayout& layout() const { return layout_; }
  const std::vector<PanelFrame*>& panels() const { return panels_; }
  QStringList ids() const;
  bool shows(const QString& panel) const { return layout_.panels().contains(panel); }
  void show_panel(const QString& panel);
  void hide_panel(const QString& panel);
  // The one that the keyboard is in, or was last; else the first.
  QString current_panel() const;
  void resize_current(double width, double height);

 signals:
  void layout_changed();

 private:
  void build();
  QSplitter* make_splitter(Qt::Orientation orientation);
  void read_sizes();

  std::vector<PanelFrame*> panels_;
  PanelLayout layout_;
  mutable QString current_;
};

}  // namespace stacklab::ui
