#include "ui/shell/command_palette.h"

#include <QKeyEvent>
#include <QLineEdit>
#include <QPainter>

#include "ui/theme/widgets.h"

namespace stacklab::ui {
namespace {

constexpr int most_used = 8;
constexpr int most_rows_shown = 14;

// Title with the typed letters bold, then what it belongs to; keys at right.
class PaletteDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override { return {200, metrics().row()}; }
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    painter->save();
    if (option.state & QStyle::State_Selected) painter->fillRect(option.rect, theme()[Token::soft]);
    const bool enabled = index.flags() & Qt::ItemIsEnabled;
    const QFont plain = look().font(TextRole::body), bold = look().font(TextRole::body, true);
    const QFont small = look().font(TextRole::secondary);
    const QRect area = option.rect.adjusted(12, 0, -12, 0);
    const QString keys = index.data(PaletteModel::keys_role).toString();
    painter->setFont(small);
    painter->setPen(theme()[Token::text3]);
    const int keys_width = keys.isEmpty() ? 0 : QFontMetrics(small).horizontalAdvance(keys) + 16;
    painter->drawText(area, Qt::AlignVCenter | Qt::AlignRight, keys);
    int x = area.left();
    const std::int64_t number = index.data(PaletteModel::run_number_role).toLongLong();
    if (number >= 0) {
      paint_swatch(*painter, QRectF(x, area.top(), 16, area.height()), number);
      x += 24;
    }
    const int right = area.right() - keys_width;
    const QString title = index.data().toString();
    const QVariantList letters = index.data(PaletteModel::letters_role).toList();
    painter->setPen(theme()[enabled ? Token::text : Token::off]);
    const QFontMetrics plain_width(plain), bold_width(bold);
    if (bold_width.horizontalAdvance(title) > right - x || title.isRightToLeft()) {
      // Too long to mark letters in, or written from right to left, where letters join.
      painter->setFont(plain);
      const QString shown = plain_width.elidedText(title, Qt::ElideRight, right - x);
      painter->drawText(QRect(x, area.top(), right - x, area.height()), Qt::AlignVCenter | Qt::AlignLeft, shown);
      x += plain_width.horizontalAdvance(shown);
    } else {
      qsizetype next = 0;
      for (int from = 0; from < title.size();) {
        const bool marked = next < letters.size() && letters[next].toInt() == from;
        int to = from + 1;
        if (marked) {
          ++next;
          while (next < letters.size() && letters[next].toInt() == to) ++to, ++next;
        } else {
          to = next < letters.size() ? letters[next].toInt() : static_cast<int>(title.size());
        }
        const QString part = title.mid(from, to - from);
        painter->setFont(marked ? bold : plain);
        painter->drawText(QRect(x, area.top(), right - x, area.height()), Qt::AlignVCenter | Qt::AlignLeft, part);
        x += (marked ? bold_width : plain_width).horizontalAdvance(part);
        from = to;
      }
    }
    painter->setFont(small);
    painter->setPen(theme()[Token::text3]);
    x += 10;
    if (x < right)
      painter->drawText(
          QRect(x, area.top(), right - x, area.height()), Qt::AlignVCenter | Qt::AlignLeft,
          QFontMetrics(small).elidedText(index.data(PaletteModel::note_role).toString(), Qt::ElideRight, right - x));
    painter->restore();
  }
};

}  // namespace

CommandPalette::CommandPalette(QWidget* window) : Popup(window), model_(new PaletteModel(this)) {
  setAccessibleName(tr("Search runs and actions"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 8, 8, 8);
  column->setSpacing(6);
  field_ = new QLineEdit(this);
  field_->setAccessibleName(tr("Search runs and actions"));
  field_->setAccessibleDescription(tr("Arrows choose, Enter does it, Escape closes."));
  field_->setPlaceholderText(tr("Action, run or setting"));
  list_ = new QListView(this);
  list_->setAccessibleName(tr("What fits"));
  list_->setModel(model_);
  list_->setItemDelegate(new PaletteDelegate(list_));
  list_->setUniformItemSizes(true);
  list_->setFocusPolicy(Qt::NoFocus);
  list_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  nothing_ = new TextLabel(TextRole::body, Token::text2, false, this);
  nothing_->set_full_text(tr("Nothing fits. Fewer letters find more."));
  nothing_->setContentsMargins(12, 4, 12, 4);
  column->addWidget(field_);
  column->addWidget(nothing_);
  column->addWidget(list_, 1);
  connect(field_, &QLineEdit::textChanged, this, [this](const QString& typed) {
    model_->set_typed(typed.left(200));
    mark_first();
  });
  connect(list_, &QListView::clicked, this, &CommandPalette::choose);
  connect(&look(), &Look::changed, this, [this] { list_->doItemsLayout(); });
}

void CommandPalette::open(QWidget* anchor, std::vector<PaletteItem> items) {
  model_->set_items(std::move(items), used_last_);
  field_->clear();
  open_below(anchor, QSize(metrics().scaled(560), metrics().scaled(440)), field_);
  mark_first();
}

void CommandPalette::mark_first() {
  nothing_->setVisible(model_->rowCount() == 0);
  const int rows = std::clamp(model_->rowCount(), 1, most_rows_shown);
  set_height(metrics().control() + 26 + rows * metrics().row());
  mark(0, 1);
}

// What cannot be done now is passed over; beyond an end it goes on at the other.
void CommandPalette::mark(int row, int direction) {
  const int rows = model_->rowCount();
  for (int i = 0; i < rows; ++i, row += direction) {
    row = (row + rows) % rows;
    if (model_->item(row)->enabled) return list_->setCurrentIndex(model_->index(row));
  }
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (watched == field_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    const int rows = model_->rowCount(), at = list_->currentIndex().row();
    const int page = std::max(1, list_->viewport()->height() / std::max(1, list_->sizeHintForRow(0)) - 1);
    switch (key->key()) {
      case Qt::Key_Down:
        mark(at + 1, 1);
        break;
      case Qt::Key_Up:
        mark(at - 1, -1);
        break;
      case Qt::Key_PageDown:
        mark(std::min(rows - 1, at + page), 1);
        break;
      case Qt::Key_PageUp:
        mark(std::max(0, at - page), -1);
        break;
      case Qt::Key_Return:
      case Qt::Key_Enter:
        choose(list_->currentIndex());
        return true;
      case Qt::Key_Tab:
      case Qt::Key_Backtab:
        return true;  // there is nothing else to go to
      default:
        return Popup::eventFilter(watched, event);
    }
    return true;
  }
  return Popup::eventFilter(watched, event);
}

void CommandPalette::choose(const QModelIndex& index) {
  const PaletteItem* item = model_->item(index.isValid() ? index.row() : -1);
  if (!item || !item->enabled) return;
  used_last_.removeAll(item->id);
  used_last_.prepend(item->id);
  while (used_last_.size() > most_used) used_last_.removeLast();
  const std::function<void()> call = item->call;
  dismiss();
  if (call) call();
}

}  // namespace stacklab::ui

#include <moc_command_palette.cpp>
