#include "ui/pages/monitor/run_list_view.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QPainter>
#include <QPointer>
#include <QStyle>
#include <QToolTip>
#include <QUndoStack>

#include "ui/models/state_look.h"
#include "ui/theme/look.h"
#include "ui/theme/widgets.h"

namespace stacklab::ui {
namespace {
constexpr int left_pad = 11, swatch_width = 16, gap = 8, right_pad = 11;

// Which runs are on show, before and after.
class ShownCommand : public QUndoCommand {
 public:
  ShownCommand(RunListModel* runs, const QString& what, std::set<RunId> before, std::set<RunId> after)
      : QUndoCommand(what), runs_(runs), before_(std::move(before)), after_(std::move(after)) {}
  void undo() override {
    if (runs_) runs_->set_all_shown(before_);
  }
  void redo() override {
    if (runs_) runs_->set_all_shown(after_);
  }

 private:
  QPointer<RunListModel> runs_;
  std::set<RunId> before_, after_;
};

}  // namespace

QRect RunListDelegate::swatch_rect(const QRect& row, Qt::LayoutDirection direction) {
  return QStyle::visualRect(direction, row, {row.left(), row.top(), left_pad + swatch_width + gap / 2, row.height()});
}

QSize RunListDelegate::sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const {
  const QFontMetrics name(look().font(TextRole::body, true)), below(look().font(TextRole::secondary));
  return {120, name.height() + below.height() + 11};
}

void RunListDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const RunInfo& run = static_cast<const RunOrder*>(index.model())->run_at(index);
  const bool shown = index.data(RunListModel::shown_role).toBool();
  const bool selected = option.state & QStyle::State_Selected;
  const Theme& t = theme();
  const QRect row = option.rect;
  painter->save();
  if (selected)
    painter->fillRect(row, t[Token::soft]);
  else if (option.state & QStyle::State_MouseOver)
    painter->fillRect(row, t[Token::hover]);
  painter->setPen(t[Token::grid]);
  painter->drawLine(row.bottomLeft(), row.bottomRight());
  if ((option.state & QStyle::State_HasFocus) && option.widget && option.widget->hasFocus()) {
    painter->setPen(QPen(t[Token::accent], 2));
    painter->drawRect(row.adjusted(1, 1, -1, -2));
  }

  // Everything is laid out from left to right and mirrored where the desktop reads the other way.
  const auto place = [&](int x, int y, int width, int height) {
    return QStyle::visualRect(option.direction, row, QRect(x, y, std::max(0, width), height));
  };
  const int leading = static_cast<int>(QStyle::visualAlignment(option.direction, Qt::AlignLeft) | Qt::AlignVCenter);
  const QFont name_font = look().font(TextRole::body, selected), small = look().font(TextRole::secondary);
  const QFontMetrics name(name_font), below(small);
  const int x = row.left() + left_pad + swatch_width + gap;
  int right = row.right() - right_pad;
  const int y1 = row.top() + 5, y2 = y1 + name.height() + 1;
  paint_swatch(*painter, place(row.left() + left_pad, y1, swatch_width, name.height()), run.summary.number, shown);

  const QString loss = index.data(RunListModel::last_loss_role).toString();
  painter->setFont(look().number_font(TextRole::body));
  const int loss_width = painter->fontMetrics().horizontalAdvance(loss);
  const bool bad = run.summary.last_loss && !std::isfinite(*run.summary.last_loss);
  painter->setPen(t[bad ? Token::bad : shown ? Token::text : Token::text3]);
  painter->drawText(place(right - loss_width, y1, loss_width, name.height()), Qt::AlignCenter, loss);
  painter->setFont(name_font);
  painter->setPen(t[shown ? Token::text : Token::text3]);
  const int name_width = right - loss_width - 8 - x;
  painter->drawText(place(x, y1, name_width, name.height()), leading,
                    name.elidedText(index.data().toString(), Qt::ElideMiddle, name_width));

  const StateLook state = look_of(run);
  const int side = metrics().scaled(10);
  paint_glyph(*painter, state.glyph, place(x, y2 + (below.height() - side) / 2, side, side), t[state.color]);
  painter->setFont(small);
  const int word_x = x + side + 5, word_width = below.horizontalAdvance(state.word);
  painter->setPen(t[state.color]);
  painter->drawText(place(word_x, y2, right - word_x, below.height()), leading, state.word);
  const QString why = index.data(RunListModel::cause_role).toString();
  const int why_x = word_x + word_width + 6;
  painter->setPen(t[Token::text3]);
  const QString mark = index.data(RunListModel::mark_role).toString();
  if (!mark.isEmpty()) {
    const int mark_width = std::min(below.horizontalAdvance(mark), std::max(0, right - why_x));
    painter->drawText(place(right - mark_width, y2, mark_width, below.height()), Qt::AlignCenter,
                      below.elidedText(mark, Qt::ElideLeft, mark_width));
    right -= mark_width + 8;
  }
  painter->drawText(place(why_x, y2, right - why_x, below.height()), leading,
                    below.elidedText(why, Qt::ElideRight, std::max(0, right - why_x)));
  painter->restore();
}

RunListView::RunListView(RunListModel* model, QWidget* parent)
    : QListView(parent), runs_(model), order_(new RunOrder(model, this)) {
  setModel(order_);
  setItemDelegate(new RunListDelegate(this));
  setMouseTracking(true);
  setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setSelectionMode(QAbstractItemView::SingleSelection);
  setUniformItemSizes(true);
  setEditTriggers(QAbstractItemView::NoEditTriggers);
  setAccessibleName(tr("Runs"));
  setAccessibleDescription(
      tr("Space shows or hides a run's curves, Alt+Space shows it alone; P pins it to the top, B holds the "
         "others against it."));
  connect(&look(), &Look::changed, this, [this] { scheduleDelayedItemsLayout(); });
}

void RunListView::mousePressEvent(QMouseEvent* event) {
  const QModelIndex at = indexAt(event->pos());
  if (at.isValid() && event->button() == Qt::LeftButton) {
    const RunId id = order_->run_at(at).summary.id;
    if (event->modifiers() & Qt::AltModifier) return solo(id);
    if (RunListDelegate::swatch_rect(visualRect(at), layoutDirection()).contains(event->pos())) return toggle(id);
  }
  QListView::mousePressEvent(event);
}

void RunListView::keyPressEvent(QKeyEvent* event) {
  const int key = event->key();
  const bool ours = key == Qt::Key_Space || key == Qt::Key_P || key == Qt::Key_B;
  const bool plain = !(event->modifiers() & (Qt::ControlModifier | Qt::MetaModifier));
  if (!ours || !plain || !currentIndex().isValid()) return QListView::keyPressEvent(event);
  const RunSummary& run = order_->run_at(currentIndex()).summary;
  if (key == Qt::Key_P)
    emit pin_wanted(run.number);
  else if (key == Qt::Key_B)
    emit baseline_wanted(run.number);
  else if (event->modifiers() & Qt::AltModifier)
    solo(run.id);
  else
    toggle(run.id);
}

void RunListView::contextMenuEvent(QContextMenuEvent* event) {
  const QModelIndex at = event->reason() == QContextMenuEvent::Keyboard ? currentIndex() : indexAt(event->pos());
  if (!at.isValid()) return;
  const RunId id = order_->run_at(at).summary.id;
  const std::int64_t number = order_->run_at(at).summary.number;
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  menu->addAction(runs_->is_shown(id) ? tr("Hide its curves") : tr("Show its curves"), this,
                  [this, id] { toggle(id); });
  menu->addAction(tr("Show it alone"), this, [this, id] { solo(id); });
  menu->addSeparator();
  menu->addAction(runs_->is_pinned(number) ? tr("Unpin") : tr("Pin to the top"), this,
                  [this, number] { emit pin_wanted(number); });
  menu->addAction(runs_->baseline() == number ? tr("No baseline") : tr("Take as baseline"), this,
                  [this, number] { emit baseline_wanted(number); });
  menu->popup(event->reason() == QContextMenuEvent::Keyboard ? viewport()->mapToGlobal(visualRect(at).center())
                                                             : event->globalPos());
}

void RunListView::toggle(const RunId& id) {
  const bool show = !runs_->is_shown(id);
  const RunInfo* run = runs_->find(id);
  const QString name = run ? QString::fromStdString(run->summary.name) : QString();
  change(show ? tr("show %1").arg(name) : tr("hide %1").arg(name), [&] { runs_->set_shown(id, show); });
}

void RunListView::solo(const RunId& id) {
  change(tr("show one run alone"), [&] { runs_->solo(id); });
}

void RunListView::change(const QString& what, const std::function<void()>& call) {
  const std::set<RunId> before = runs_->shown();
  call();
  if (undo_ && runs_->shown() != before) undo_->push(new ShownCommand(runs_, what, before, runs_->shown()));
}

bool RunListView::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QModelIndex at = indexAt(help->pos());
    if (at.isValid() && RunListDelegate::swatch_rect(visualRect(at), layoutDirection()).contains(help->pos())) {
      QToolTip::showText(help->globalPos(),
                         at.data(RunListModel::shown_role).toBool() ? tr("Hide this run") : tr("Show this run"), this);
      return true;
    }
  }
  return QListView::viewportEvent(event);
}

}  // namespace stacklab::ui

#include <moc_run_list_view.cpp>
