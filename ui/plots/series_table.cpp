#include "ui/plots/series_table.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QDialog>
#include <QHeaderView>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <set>

#include "ui/plots/export.h"
#include "ui/theme/look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {

SeriesTableModel::SeriesTableModel(const CurveChart& chart, QObject* parent)
    : QAbstractTableModel(parent), format_(chart.setup().format) {
  const auto named = chart.curves();
  auto extracts = extract(chart);
  for (std::size_t i = 0; i < extracts.size(); ++i) {
    std::vector<double> merged;
    merged.reserve(steps_.size() + extracts[i].xs.size());
    std::set_union(steps_.begin(), steps_.end(), extracts[i].xs.begin(), extracts[i].xs.end(),
                   std::back_inserter(merged));
    steps_ = std::move(merged);
    curves_.push_back(
        {named[i].group + QLatin1Char(' ') + named[i].name, std::move(extracts[i].xs), std::move(extracts[i].ys)});
  }
}

int SeriesTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(steps_.size());
}

int SeriesTableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(curves_.size()) + 1;
}

QVariant SeriesTableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::TextAlignmentRole) return static_cast<int>(Qt::AlignRight | Qt::AlignVCenter);
  const double step = steps_[static_cast<std::size_t>(index.row())];
  if (index.column() == 0) return role == Qt::DisplayRole ? QVariant(format_count(std::llround(step))) : QVariant();
  const CurveColumn& curve = curves_[static_cast<std::size_t>(index.column()) - 1];
  const auto at = std::lower_bound(curve.xs.begin(), curve.xs.end(), step);
  const bool present = at != curve.xs.end() && *at == step;
  const double value = present ? curve.ys[static_cast<std::size_t>(at - curve.xs.begin())] : 0;
  if (role == Qt::DisplayRole) return present ? format_value(value, format_) : missing();
  if (role == Qt::ToolTipRole && present) return QString::number(value, 'g', 17);
  if (role == Qt::ForegroundRole && present && !std::isfinite(value)) return theme()[Token::bad];
  return {};
}

QVariant SeriesTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation == Qt::Vertical || role != Qt::DisplayRole) return {};
  return section == 0 ? tr("step") : curves_[static_cast<std::size_t>(section) - 1].title;
}

QString selected_text(const QAbstractItemView& view) {
  QModelIndexList chosen = view.selectionModel()->selectedIndexes();
  if (chosen.isEmpty()) return {};
  std::sort(chosen.begin(), chosen.end());
  QStringList head;
  std::set<int> columns;
  for (const QModelIndex& index : chosen) columns.insert(index.column());
  const auto title = [&](int section, Qt::Orientation across) {
    return view.model()->headerData(section, across).toString();
  };
  const bool named_rows = !title(0, Qt::Vertical).isEmpty();
  if (named_rows) head << QString();
  for (const int column : columns) head << title(column, Qt::Horizontal);
  QString text = head.join(QLatin1Char('\t'));
  int row = -1;
  for (const QModelIndex& index : chosen) {
    if (index.row() != row) {
      text += QLatin1Char('\n');
      if (named_rows) text += title(index.row(), Qt::Vertical) + QLatin1Char('\t');
    } else {
      text += QLatin1Char('\t');
    }
    row = index.row();
    text += index.data().toString();
  }
  return text + QLatin1Char('\n');
}

QDialog* show_table(QAbstractItemModel* model, const QString& title, const QString& name, QWidget* parent) {
  auto* dialog = new QDialog(parent);
  dialog->setObjectName(QStringLiteral("table"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(title);
  auto* column = new QVBoxLayout(dialog);
  auto* table = new QTableView(dialog);
  model->setParent(table);
  table->setModel(model);
  table->setAccessibleName(name);
  if (model->headerData(0, Qt::Vertical).toString().isEmpty()) table->verticalHeader()->hide();
  table->verticalHeader()->setDefaultSectionSize(metrics().row());
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::Interactive);
  table->setFont(look().number_font(TextRole::body));
  auto* copy = new QAction(QObject::tr("Copy"), table);
  copy->setShortcut(QKeySequence::Copy);
  copy->setShortcutContext(Qt::WidgetWithChildrenShortcut);
  table->addAction(copy);
  table->setContextMenuPolicy(Qt::ActionsContextMenu);
  QObject::connect(copy, &QAction::triggered, table, [table] {
    if (const QString text = selected_text(*table); !text.isEmpty()) QApplication::clipboard()->setText(text);
  });
  column->addWidget(table);
  dialog->resize(metrics().scaled(480), metrics().scaled(560));
  dialog->show();
  return dialog;
}

void show_table(const CurveChart& chart, QWidget* parent) {
  QDialog* dialog = show_table(new SeriesTableModel(chart, nullptr),
                               QObject::tr("%1, %2").arg(chart.setup().title, chart.setup().unit),
                               QObject::tr("%1 as a table").arg(chart.setup().title), parent);
  auto* table = dialog->findChild<QTableView*>();
  table->horizontalHeader()->setDefaultSectionSize(metrics().scaled(150));
  table->horizontalHeader()->setStretchLastSection(true);
  table->scrollToBottom();
}

}  // namespace stacklab::ui
