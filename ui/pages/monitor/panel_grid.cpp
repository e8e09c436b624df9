#include "ui/pages/monitor/panel_grid.h"

#include <QApplication>
#include <QJsonObject>
#include <QSplitter>
#include <algorithm>
#include <cmath>

namespace stacklab::ui {
namespace {

constexpr int gap = 8;
constexpr std::size_t most_columns = 4;

double weight(const QJsonValue& value) {
  const double w = value.toDouble(1);
  return std::isfinite(w) ? std::clamp(w, 0.05, 20.0) : 1;
}

template <class Weights>
void set_shares(QSplitter* splitter, const Weights& weights) {
  QList<int> sizes;
  for (const double w : weights) sizes << static_cast<int>(1000 * w);
  splitter->setSizes(sizes);
  for (int i = 0; i < sizes.size(); ++i) splitter->setStretchFactor(i, sizes[i]);
}

}  // namespace

QStringList PanelLayout::panels() const {
  QStringList ids;
  for (const Row& row : rows)
    for (const Column& column : row.columns)
      for (const Place& place : column.places) ids << place.panel;
  return ids;
}

void PanelLayout::add(const QString& panel) {
  if (panels().contains(panel)) return;
  if (rows.empty() || rows.back().columns.size() >= most_columns) rows.push_back({1, {}});
  rows.back().columns.push_back({1, {{panel, 1}}});
}

void PanelLayout::remove(const QString& panel) {
  for (Row& row : rows) {
    for (Column& column : row.columns) std::erase_if(column.places, [&](const Place& p) { return p.panel == panel; });
    std::erase_if(row.columns, [](const Column& c) { return c.places.empty(); });
  }
  std::erase_if(rows, [](const Row& r) { return r.columns.empty(); });
}

void PanelLayout::move(const QString& panel, int places) {
  std::vector<Place*> all;
  for (Row& row : rows)
    for (Column& column : row.columns)
      for (Place& place : column.places) all.push_back(&place);
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    const int to = i + places;
    if (all[static_cast<std::size_t>(i)]->panel != panel) continue;
    if (to >= 0 && to < static_cast<int>(all.size()))
      std::swap(all[static_cast<std::size_t>(i)]->panel, all[static_cast<std::size_t>(to)]->panel);
    return;
  }
}

void PanelLayout::resize(const QString& panel, double width, double height) {
  const auto times = [](double& share, double by) { share = std::clamp(share * by, 0.1, 10.0); };
  for (Row& row : rows)
    for (Column& column : row.columns)
      for (Place& place : column.places) {
        if (place.panel != panel) continue;
        times(column.width, width);
        // Alone in its column it is as high as its row.
        times(column.places.size() > 1 ? place.height : row.height, height);
      }
}

QJsonArray PanelLayout::to_json() const {
  QJsonArray to;
  for (const Row& row : rows) {
    QJsonArray columns;
    for (const Column& column : row.columns) {
      QJsonArray places;
      for (const Place& place : column.places)
        places.append(QJsonObject{{"panel", place.panel}, {"height", place.height}});
      columns.append(QJsonObject{{"width", column.width}, {"panels", places}});
    }
    to.append(QJsonObject{{"height", row.height}, {"columns", columns}});
  }
  return to;
}

PanelLayout PanelLayout::from_json(const QJsonArray& from, const QStringList& known) {
  PanelLayout layout;
  QStringList seen;
  for (const QJsonValue& row_value : from) {
    Row row{weight(row_value.toObject()["height"]), {}};
    for (const QJsonValue& column_value : row_value.toObject()["columns"].toArray()) {
      Column column{weight(column_value.toObject()["width"]), {}};
      for (const QJsonValue& place : column_value.toObject()["panels"].toArray()) {
        const QString id = place.toObject()["panel"].toString();
        if (!known.contains(id) || seen.contains(id)) continue;
        seen << id;
        column.places.push_back({id, weight(place.toObject()["height"])});
      }
      if (!column.places.empty()) row.columns.push_back(std::move(column));
    }
    if (!row.columns.empty()) layout.rows.push_back(std::move(row));
  }
  return layout;
}

PanelGrid::PanelGrid(QWidget* parent) : QScrollArea(parent) {
  setWidgetResizable(true);
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::NoFocus);
  setAccessibleName(tr("Panels"));
  viewport()->setAutoFillBackground(false);
}

void PanelGrid::add_panel(PanelFrame* panel) {
  panel->setParent(this);
  panel->hide();
  panel->setMinimumWidth(150);
  panel->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Expanding);
  panels_.push_back(panel);
  const QString id = panel->id();
  connect(panel, &PanelFrame::hide_requested, this, [this, id] { hide_panel(id); });
  connect(panel, &PanelFrame::move_requested, this, [this, id](int places) {
    PanelLayout next = layout_;
    next.move(id, places);
    set_layout(next);
  });
}

QStringList PanelGrid::ids() const {
  QStringList ids;
  for (const PanelFrame* panel : panels_) ids << panel->id();
  return ids;
}

void PanelGrid::set_layout(const PanelLayout& layout) {
  if (layout == layout_) return;
  layout_ = layout;
  build();
  emit layout_changed();
}

void PanelGrid::show_panel(const QString& panel) {
  PanelLayout next = layout_;
  next.add(panel);
  set_layout(next);
}

void PanelGrid::hide_panel(const QString& panel) {
  PanelLayout next = layout_;
  next.remove(panel);
  set_layout(next);
}

QString PanelGrid::current_panel() const {
  for (const QWidget* at = QApplication::focusWidget(); at; at = at->parentWidget())
    if (const auto* panel = qobject_cast<const PanelFrame*>(at)) current_ = panel->id();
  const QStringList shown = layout_.panels();
  return shown.contains(current_) || shown.isEmpty() ? current_ : shown.front();
}

void PanelGrid::resize_current(double width, double height) {
  const QString id = current_panel();
  QWidget* focus = QApplication::focusWidget();
  PanelLayout next = layout_;
  next.resize(id, width, height);
  set_layout(next);
  // The panels were put together anew; the keyboard stays where it was.
  if (focus && focus->isVisible() && isAncestorOf(focus)) focus->setFocus();
}

QSplitter* PanelGrid::make_splitter(Qt::Orientation orientation) {
  auto* splitter = new QSplitter(orientation);
  splitter->setObjectName(QStringLiteral("panels"));
  splitter->setChildrenCollapsible(false);
  splitter->setHandleWidth(gap);
  connect(splitter, &QSplitter::splitterMoved, this, &PanelGrid::read_sizes);
  return splitter;
}

void PanelGrid::build() {
  for (PanelFrame* panel : panels_) {
    panel->hide();
    panel->setParent(this);
  }
  const auto find = [this](const QString& id) {
    return *std::find_if(panels_.begin(), panels_.end(), [&](const PanelFrame* p) { return p->id() == id; });
  };
  QSplitter* all = make_splitter(Qt::Vertical);
  std::vector<double> heights;
  for (const PanelLayout::Row& row : layout_.rows) {
    QSplitter* across = make_splitter(Qt::Horizontal);
    std::vector<double> widths;
    for (const PanelLayout::Column& column : row.columns) {
      QSplitter* down = make_splitter(Qt::Vertical);
      std::vector<double> parts;
      for (const PanelLayout::Place& place : column.places) {
        PanelFrame* panel = find(place.panel);
        down->addWidget(panel);
        panel->show();
        parts.push_back(place.height);
      }
      set_shares(down, parts);
      across->addWidget(down);
      widths.push_back(column.width);
    }
    set_shares(across, widths);
    all->addWidget(across);
    heights.push_back(row.height);
  }
  set_shares(all, heights);
  setWidget(all);  // deletes the one before
}

void PanelGrid::read_sizes() {
  auto* all = qobject_cast<QSplitter*>(widget());
  const auto share = [](QSplitter* splitter, auto& of, auto member) {
    const QList<int> sizes = splitter->sizes();
    double sum = 0;
    for (const int s : sizes) sum += s;
    if (sum <= 0) return;
    for (std::size_t i = 0; i < of.size(); ++i)
      of[i].*member = std::max(0.05, sizes[static_cast<int>(i)] / sum * static_cast<double>(of.size()));
  };
  share(all, layout_.rows, &PanelLayout::Row::height);
  for (std::size_t r = 0; r < layout_.rows.size(); ++r) {
    auto* across = qobject_cast<QSplitter*>(all->widget(static_cast<int>(r)));
    PanelLayout::Row& row = layout_.rows[r];
    share(across, row.columns, &PanelLayout::Column::width);
    for (std::size_t c = 0; c < row.columns.size(); ++c)
      share(qobject_cast<QSplitter*>(across->widget(static_cast<int>(c))), row.columns[c].places,
            &PanelLayout::Place::height);
  }
  emit layout_changed();
}

}  // namespace stacklab::ui

#include <moc_panel_grid.cpp>
