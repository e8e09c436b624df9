#include "ui/pages/runs/runs_view.h"

#include <QHeaderView>
#include <QKeyEvent>
#include <QLineEdit>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>

#include "ui/models/state_look.h"
#include "ui/theme/icons.h"
#include "ui/theme/look.h"
#include "ui/theme/numbers.h"
#include "ui/theme/widgets.h"

namespace stacklab::ui {
namespace {

constexpr int pad = 8;

int eye_width() { return metrics().scaled(16) + 8; }
int swatch_width() { return metrics().scaled(16); }

void draw_text(QPainter& painter, const QRect& box, int align, const QString& text, Qt::TextElideMode elide) {
  painter.drawText(box, align | Qt::AlignVCenter | Qt::TextSingleLine,
                   painter.fontMetrics().elidedText(text, elide, box.width()));
}

void paint_tags(QPainter& painter, QRect box, const std::vector<std::string>& tags) {
  const Theme& t = theme();
  painter.setFont(look().font(TextRole::small));
  const QFontMetrics font = painter.fontMetrics();
  const int height = font.height() + 4;
  std::size_t drawn = 0;
  for (const std::string& tag : tags) {
    const QString text = QString::fromStdString(tag);
    const bool more = drawn + 1 < tags.size();
    const int room = box.width() - (more ? font.horizontalAdvance(QStringLiteral("+99")) + 6 : 0);
    const int width = font.horizontalAdvance(text) + 14;
    if (drawn > 0 && width > room) break;
    const QRect chip(box.left(), box.center().y() - height / 2, std::min(width, std::max(24, room)), height);
    painter.setPen(t[Token::border]);
    painter.setBrush(t[Token::sunken]);
    painter.drawRoundedRect(QRectF(chip).adjusted(.5, .5, -.5, -.5), 3, 3);
    painter.setPen(t[Token::text2]);
    draw_text(painter, chip.adjusted(5, 0, -5, 0), Qt::AlignLeft, text, Qt::ElideRight);
    box.setLeft(chip.right() + 5);
    ++drawn;
  }
  if (drawn == tags.size()) return;
  painter.setPen(t[Token::text3]);
  draw_text(painter, box, Qt::AlignLeft, QStringLiteral("+%1").arg(tags.size() - drawn), Qt::ElideNone);
}

}  // namespace

QRect RunsDelegate::eye_rect(const QRect& cell) { return {cell.left(), cell.top(), eye_width() + 4, cell.height()}; }

QSize RunsDelegate::sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const { return {60, metrics().row()}; }

QWidget* RunsDelegate::createEditor(QWidget* parent, const QStyleOptionViewItem&, const QModelIndex& index) const {
  auto* editor = new QLineEdit(parent);
  editor->setAccessibleName(index.model()->headerData(index.column(), Qt::Horizontal).toString());
  editor->setStyleSheet(QStringLiteral("min-height:0;padding:0 5px;border-radius:0;"));
  return editor;
}

void RunsDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const Theme& t = theme();
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  if (option.state & QStyle::State_Selected)
    painter->fillRect(option.rect, t[Token::soft]);
  else if (option.state & QStyle::State_MouseOver)
    painter->fillRect(option.rect, t[Token::hover]);
  if (const RunRowPtr row = model_->run_at(index.row())) {
    paint_cell(*painter, option, index, *row);
  } else if (index.column() == 0) {
    painter->setPen(t[Token::text3]);
    painter->setFont(look().font(TextRole::body));
    draw_text(*painter, option.rect.adjusted(pad, 0, -pad, 0), Qt::AlignLeft, index.data().toString(), Qt::ElideRight);
  }
  painter->restore();
}

void RunsDelegate::paint_cell(QPainter& painter, const QStyleOptionViewItem& option, const QModelIndex& index,
                              const RunRow& row) const {
  const Theme& t = theme();
  const RunSummary& run = row.summary;
  const RunColumn& column = model_->columns()[static_cast<std::size_t>(index.column())];
  const CellText cell = cell_text(column, row, model_->now());
  const bool hidden = model_->is_hidden(run.number);
  QRect box = option.rect.adjusted(pad, 0, -pad, -1);
  painter.setPen(t[cell.bad ? Token::bad : cell.faint ? Token::text3 : hidden ? Token::text2 : Token::text]);
  switch (column.kind) {
    case RunColumn::Kind::name: {
      box.setLeft(option.rect.left() + 6);
      const int side = metrics().scaled(14);
      if (!hidden)
        painter.drawPixmap(
            box.left(), box.center().y() - side / 2,
            icon_pixmap(QStringLiteral("view-visible"), side, painter.device()->devicePixelRatioF(), t[Token::text3]));
      box.setLeft(box.left() + eye_width() - 6);
      paint_swatch(painter, QRectF(box.left(), box.top(), swatch_width(), box.height()), run.number, !hidden);
      box.setLeft(box.left() + swatch_width() + 9);
      const bool baseline = model_->baseline() == run.number, pinned = model_->pinned().contains(run.number);
      if (baseline || pinned) {
        painter.setFont(look().font(TextRole::small));
        const QString word = baseline ? tr("baseline") : tr("pinned");
        const int width = painter.fontMetrics().horizontalAdvance(word);
        painter.setPen(t[Token::text3]);
        draw_text(painter, QRect(box.right() - width, box.top(), width + 1, box.height()), Qt::AlignRight, word,
                  Qt::ElideNone);
        box.setRight(box.right() - width - 6);
      }
      painter.setPen(t[hidden ? Token::text3 : Token::text]);
      painter.setFont(look().font(TextRole::body, option.state & QStyle::State_Selected));
      draw_text(painter, box, Qt::AlignLeft, cell.text, Qt::ElideMiddle);
      return;
    }
    case RunColumn::Kind::state: {
      const StateLook state = look_of(run.state, run.stalled);
      const int side = metrics().scaled(11);
      paint_glyph(painter, state.glyph, QRectF(box.left(), box.center().y() - side / 2.0, side, side), t[state.color]);
      box.setLeft(box.left() + side + 6);
      painter.setFont(look().font(TextRole::body));
      painter.setPen(t[state.color]);
      const int word = painter.fontMetrics().horizontalAdvance(state.word);
      draw_text(painter, box, Qt::AlignLeft, state.word, Qt::ElideRight);
      box.setLeft(box.left() + word + 6);
      QString why = cause_of({run, {}, -1}, model_->now());
      if (why.isEmpty() && run.detached && is_active(run.state)) why = tr("detached");
      painter.setPen(t[Token::text3]);
      if (box.width() > metrics().scaled(20)) draw_text(painter, box, Qt::AlignLeft, why, Qt::ElideRight);
      return;
    }
    case RunColumn::Kind::progress: {
      painter.setFont(look().number_font(TextRole::body));
      const double done = fraction_done(run);
      if (done < 0 || run.state == RunState::finished || run.state == RunState::queued)
        return draw_text(painter, box, Qt::AlignLeft, cell.text, Qt::ElideRight);
      const int number = painter.fontMetrics().horizontalAdvance(QStringLiteral("100 %"));
      const QRectF bar(box.left(), box.center().y() - 2, std::max(12, box.width() - number - 6), 6);
      painter.setPen(Qt::NoPen);
      painter.setBrush(t[Token::pressed]);
      painter.drawRoundedRect(bar, 3, 3);
      painter.setBrush(t[look_of(run.state, run.stalled).color]);
      if (done > 0) painter.drawRoundedRect(QRectF(bar.left(), bar.top(), std::max(4.0, bar.width() * done), 6), 3, 3);
      painter.setPen(t[Token::text]);
      return draw_text(painter, box, Qt::AlignRight, cell.text, Qt::ElideNone);
    }
    case RunColumn::Kind::tags:
      return paint_tags(painter, box, run.tags);
    case RunColumn::Kind::hash:
      painter.setFont(look().mono_font(TextRole::secondary));
      return draw_text(painter, box, Qt::AlignLeft, cell.text, Qt::ElideRight);
    case RunColumn::Kind::number:
      painter.setFont(look().number_font(TextRole::body));
      return draw_text(painter, box, Qt::AlignRight, cell.text, Qt::ElideRight);
    case RunColumn::Kind::note:
      painter.setPen(t[Token::text2]);
      [[fallthrough]];
    case RunColumn::Kind::text:
      painter.setFont(look().font(TextRole::body));
      return draw_text(painter, box, Qt::AlignLeft, cell.text, Qt::ElideRight);
  }
}

RunsView::RunsView(RunTableModel* model, QWidget* parent) : QTreeView(parent), runs_(model) {
  // A list that is empty for a moment takes the selection along, not the wish for it. Before the
  // selection hears of it.
  connect(model, &QAbstractItemModel::rowsAboutToBeRemoved, this, [this](const QModelIndex&, int first, int last) {
    if (first == 0 && last == runs_->rowCount() - 1) remember();
  });
  setModel(model);
  setItemDelegate(new RunsDelegate(model, this));
  setRootIsDecorated(false);
  setItemsExpandable(false);
  setUniformRowHeights(true);
  setSelectionMode(QAbstractItemView::ExtendedSelection);
  setSelectionBehavior(QAbstractItemView::SelectRows);
  setEditTriggers(QAbstractItemView::DoubleClicked);
  setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  setContextMenuPolicy(Qt::CustomContextMenu);
  setMouseTracking(true);
  setFrameShape(QFrame::NoFrame);
  setAccessibleName(tr("Runs"));
  setAccessibleDescription(tr("Space shows or hides a run's curves; left and right fold a group."));
  header()->setSectionsMovable(true);
  header()->setFirstSectionMovable(false);
  header()->setSectionsClickable(true);
  header()->setSortIndicatorShown(true);
  header()->setStretchLastSection(true);
  header()->setContextMenuPolicy(Qt::CustomContextMenu);
  header()->setAccessibleName(tr("Columns"));
  connect(model, &QAbstractItemModel::modelAboutToBeReset, this, &RunsView::remember);
  connect(model, &QAbstractItemModel::modelReset, this, &RunsView::restore);
  connect(model, &QAbstractItemModel::rowsInserted, this, [this](const QModelIndex&, int first, int last) {
    if (first == 0 && last == runs_->rowCount() - 1) restore();
  });
  for (const auto signal : {&QAbstractItemModel::rowsInserted, &QAbstractItemModel::rowsRemoved})
    connect(model, signal, this, [this] { QMetaObject::invokeMethod(this, [this] { look_at_rows(); }); });
  connect(model, &QAbstractItemModel::layoutChanged, this, [this] { look_at_rows(); });
  connect(&look(), &Look::changed, this, &RunsView::restyle);
  restyle();
}

void RunsView::restyle() {
  header()->setMinimumHeight(metrics().row());
  // Columns keep their share of the text.
  const int unit = metrics().scaled(100);
  if (unit_ > 0 && unit != unit_)
    for (int i = 0; i < header()->count(); ++i) header()->resizeSection(i, header()->sectionSize(i) * unit / unit_);
  unit_ = unit;
  scheduleDelayedItemsLayout();
}

void RunsView::lay_out(const QHash<QString, int>& widths) {
  for (int i = 0; i < runs_->columnCount(); ++i) {
    const RunColumn& column = runs_->columns()[static_cast<std::size_t>(i)];
    header()->resizeSection(i, widths.value(column.id, metrics().scaled(column.width)));
  }
  look_at_rows();
}

std::vector<std::int64_t> RunsView::selected_numbers() const {
  std::vector<std::int64_t> numbers;
  for (const QItemSelectionRange& range : selectionModel()->selection())
    for (int row = range.top(); row <= range.bottom(); ++row)
      if (const std::int64_t n = runs_->number_at(row); n >= 0) numbers.push_back(n);
  return numbers;
}

std::int64_t RunsView::current_number() const {
  return currentIndex().isValid() ? runs_->number_at(currentIndex().row()) : -1;
}

void RunsView::select_numbers(const std::vector<std::int64_t>& numbers, std::int64_t current) {
  QItemSelection selection;
  for (const std::int64_t n : numbers)
    if (const int row = runs_->row_of(n); row >= 0)
      selection.select(runs_->index(row, 0), runs_->index(row, runs_->columnCount() - 1));
  if (const int row = runs_->row_of(current); row >= 0)
    selectionModel()->setCurrentIndex(runs_->index(row, 0), QItemSelectionModel::NoUpdate);
  selectionModel()->select(selection, QItemSelectionModel::ClearAndSelect);
}

void RunsView::remember() {
  if (runs_->rowCount() == 0) return;
  kept_selection_ = selected_numbers();
  kept_current_ = current_number();
  kept_scroll_ = verticalScrollBar()->value();
}

void RunsView::restore() {
  if (!kept_selection_.empty() || kept_current_ >= 0) select_numbers(kept_selection_, kept_current_);
  QMetaObject::invokeMethod(
      this,
      [this] {
        verticalScrollBar()->setValue(std::min(kept_scroll_, verticalScrollBar()->maximum()));
        look_at_rows();
      },
      Qt::QueuedConnection);
}

void RunsView::look_at_rows() {
  const QModelIndex top = indexAt(QPoint(1, 1));
  const int first = top.isValid() ? top.row() : 0;
  const int count = viewport()->height() / std::max(1, metrics().row()) + 2;
  runs_->set_visible(first, first + count);
}

void RunsView::drawRow(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const Theme& t = theme();
  const QRect row = option.rect;
  const bool focused = hasFocus() && currentIndex().row() == index.row();
  if (runs_->is_group(index.row())) {
    const RunGroup& group = *runs_->group_at(index.row());
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->fillRect(row, t[Token::sunken]);
    const qreal side = metrics().scaled(8), x = row.left() + 11, y = row.center().y() + .5;
    painter->setPen(QPen(t[Token::text2], 1.4, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    if (group.open)
      painter->drawPolyline(QPolygonF({{x, y - side / 4}, {x + side / 2, y + side / 4}, {x + side, y - side / 4}}));
    else
      painter->drawPolyline(
          QPolygonF({{x + side / 4, y - side / 2}, {x + 3 * side / 4, y}, {x + side / 4, y + side / 2}}));
    const QFont bold = look().font(TextRole::body, true);
    const QString title = index.siblingAtColumn(0).data().toString();
    QRect box = row.adjusted(static_cast<int>(x + side - row.left()) + 8, 0, -pad, -1);
    painter->setFont(bold);
    painter->setPen(t[Token::text]);
    draw_text(*painter, box, Qt::AlignLeft, title, Qt::ElideRight);
    box.setLeft(box.left() + QFontMetrics(bold).horizontalAdvance(title) + 10);
    painter->setFont(look().number_font(TextRole::body));
    painter->setPen(t[Token::text2]);
    if (box.width() > 10) draw_text(*painter, box, Qt::AlignLeft, runs_->group_text(group), Qt::ElideRight);
    painter->restore();
  } else {
    QTreeView::drawRow(painter, option, index);
  }
  painter->setPen(t[Token::grid]);
  painter->drawLine(row.bottomLeft(), row.bottomRight());
  if (focused) {
    painter->setPen(QPen(t[Token::accent], 2));
    painter->drawRect(QRect(0, row.top() + 1, viewport()->width() - 1, row.height() - 3));
  }
}

void RunsView::mousePressEvent(QMouseEvent* event) {
  const QModelIndex at = indexAt(event->pos());
  if (at.isValid() && event->button() == Qt::LeftButton) {
    if (runs_->is_group(at.row())) {
      setCurrentIndex(at);
      return runs_->set_open(at.row(), !runs_->group_at(at.row())->open);
    }
    const bool name = at.data(RunTableModel::column_role).toString() == QLatin1String("name");
    if (name && RunsDelegate::eye_rect(visualRect(at)).contains(event->pos())) {
      emit eye_clicked(runs_->number_at(at.row()));
      return;
    }
  }
  QTreeView::mousePressEvent(event);
}

void RunsView::keyPressEvent(QKeyEvent* event) {
  const QModelIndex at = currentIndex();
  const bool group = at.isValid() && runs_->is_group(at.row());
  if (group && (event->key() == Qt::Key_Left || event->key() == Qt::Key_Right))
    return runs_->set_open(at.row(), event->key() == Qt::Key_Right);
  if (group && (event->key() == Qt::Key_Space || event->key() == Qt::Key_Return))
    return runs_->set_open(at.row(), !runs_->group_at(at.row())->open);
  if (at.isValid() && !group && event->key() == Qt::Key_Space && event->modifiers() == Qt::NoModifier) {
    emit eye_clicked(runs_->number_at(at.row()));
    return;
  }
  QTreeView::keyPressEvent(event);
}

void RunsView::scrollContentsBy(int dx, int dy) {
  QTreeView::scrollContentsBy(dx, dy);
  if (dy != 0) look_at_rows();
}

void RunsView::resizeEvent(QResizeEvent* event) {
  QTreeView::resizeEvent(event);
  look_at_rows();
}

void RunsView::selectionChanged(const QItemSelection& selected, const QItemSelection& deselected) {
  QTreeView::selectionChanged(selected, deselected);
  emit selection_moved();
}

void RunsView::currentChanged(const QModelIndex& current, const QModelIndex& previous) {
  QTreeView::currentChanged(current, previous);
  emit selection_moved();
}

}  // namespace stacklab::ui

#include <moc_runs_view.cpp>
