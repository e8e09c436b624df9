#include "ui/pages/runs/filter_field.h"

#include <QKeyEvent>
#include <QListView>
#include <QStandardItemModel>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include "ui/theme/icons.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

constexpr int most_offers = 40, offers_at_once = 9;

class OfferDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override {
    return {100, metrics().small_control()};
  }
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const Theme& t = theme();
    if (option.state & QStyle::State_Selected) painter->fillRect(option.rect, t[Token::soft]);
    QRect box = option.rect.adjusted(8, 0, -8, 0);
    painter->setFont(look().mono_font(TextRole::secondary));
    painter->setPen(t[Token::text]);
    const QString text = index.data().toString();
    painter->drawText(box, Qt::AlignLeft | Qt::AlignVCenter, text);
    box.setLeft(box.left() + painter->fontMetrics().horizontalAdvance(text) + 16);
    painter->setFont(look().font(TextRole::secondary));
    painter->setPen(t[Token::text3]);
    painter->drawText(
        box, Qt::AlignLeft | Qt::AlignVCenter,
        painter->fontMetrics().elidedText(index.data(Qt::ToolTipRole).toString(), Qt::ElideRight, box.width()));
  }
};

}  // namespace

FilterField::FilterField(QWidget* parent) : QWidget(parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(3);
  edit_ = new QLineEdit(this);
  edit_->setPlaceholderText(tr("Filter: lr > 1e-4 and tag:ablation"));
  edit_->setAccessibleName(tr("Filter runs"));
  edit_->setAccessibleDescription(tr("Compares columns, keys of the config and metrics with values; and, or, not."));
  edit_->setClearButtonEnabled(false);
  auto* funnel = edit_->addAction(icon(QStringLiteral("view-filter"), Token::text3), QLineEdit::LeadingPosition);
  funnel->setToolTip(tr("Filter"));
  count_ = new TextLabel(TextRole::secondary, Token::text3, false, edit_);
  count_->set_numbers(true);
  count_->setAttribute(Qt::WA_TransparentForMouseEvents);
  problem_ = new TextLabel(TextRole::secondary, Token::bad, false, this);
  problem_->setWordWrap(true);
  problem_->hide();
  column->addWidget(edit_);
  column->addWidget(problem_);

  model_ = new QStandardItemModel(this);
  // Part of the window, not a window of its own: the field keeps the focus on every desktop.
  offers_ = new QListView(parent ? parent : this);
  offers_->setObjectName(QStringLiteral("tip"));
  offers_->setModel(model_);
  offers_->setItemDelegate(new OfferDelegate(offers_));
  offers_->setFocusPolicy(Qt::NoFocus);
  offers_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  offers_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  offers_->setAccessibleName(tr("What may come next"));
  offers_->hide();
  edit_->installEventFilter(this);
  connect(offers_, &QListView::clicked, this, [this](const QModelIndex& index) { take(index.row()); });
  connect(edit_, &QLineEdit::textChanged, this, [this] { judge(); });
  connect(edit_, &QLineEdit::textEdited, this, [this] { offer(false); });
  connect(edit_, &QLineEdit::cursorPositionChanged, this, [this] {
    if (offers_->isVisible()) offer(false);
  });
  const auto restyle = [this] {
    edit_->setFont(look().mono_font(TextRole::secondary));
    edit_->setStyleSheet(QStringLiteral("QLineEdit{font-family:'%1';font-size:%2px;}")
                             .arg(look().mono_font(TextRole::secondary).family())
                             .arg(look().font(TextRole::secondary).pixelSize()));
    place();
  };
  restyle();
  connect(&look(), &Look::changed, this, restyle);
}

void FilterField::set_text(const QString& text) { edit_->setText(text); }

void FilterField::set_count(std::int64_t shown, std::int64_t all) {
  count_->set_full_text(edit_->text().trimmed().isEmpty() ? QString()
                                                          : tr("%1 of %2").arg(format_count(shown), format_count(all)));
  place();
}

void FilterField::place() {
  count_->adjustSize();
  const int width = count_->full_text().isEmpty() ? 0 : count_->width() + 10;
  edit_->setTextMargins(0, 0, width, 0);
  count_->move(edit_->width() - count_->width() - 9, (edit_->height() - count_->height()) / 2);
}

void FilterField::resizeEvent(QResizeEvent*) { place(); }

void FilterField::judge() {
  const std::string text = edit_->text().toStdString();
  const auto filter = parse_run_filter(text);
  if (filter) {
    problem_->hide();
    problem_->set_full_text({});
    edit_->setToolTip({});
    if (!whole_.isNull() && edit_->text() == whole_) return;
    whole_ = edit_->text();
    emit changed(*filter);
    return;
  }
  const FilterError& error = filter.error();
  QString said = QString::fromStdString(error.what);
  said[0] = said[0].toUpper();
  const QString place = QString::fromStdString(text.substr(0, error.at));
  said = tr("%1 (character %2).").arg(said).arg(place.size() + 1);
  if (!error.remedy.empty()) {
    QString remedy = QString::fromStdString(error.remedy);
    remedy[0] = remedy[0].toUpper();
    said += QLatin1Char(' ') + remedy + (remedy.endsWith(QLatin1Char('?')) ? QString() : QStringLiteral("."));
  }
  problem_->set_full_text(said);
  problem_->show();
  edit_->setAccessibleDescription(said);
  whole_ = QString();
  emit broken();
}

void FilterField::offer(bool asked) {
  const std::string text = edit_->text().toStdString();
  const std::size_t cursor = edit_->text().left(edit_->cursorPosition()).toStdString().size();
  const FilterCompletions offered = complete_run_filter(text, cursor, words_);
  from_ = static_cast<int>(QString::fromStdString(text.substr(0, offered.from)).size());
  to_ = static_cast<int>(QString::fromStdString(text.substr(0, offered.to)).size());
  const QString typed = edit_->text().mid(from_, to_ - from_);
  model_->clear();
  for (const FilterCompletion& choice : offered.choices) {
    if (model_->rowCount() == most_offers) break;
    auto* item = new QStandardItem(QString::fromStdString(choice.text));
    item->setToolTip(QString::fromStdString(choice.help));
    item->setAccessibleDescription(item->toolTip());
    model_->appendRow(item);
  }
  // What is already there needs no offer.
  const bool done = model_->rowCount() == 1 && model_->item(0)->text() == typed;
  if (model_->rowCount() == 0 || done || (!asked && edit_->text().isEmpty())) return offers_->hide();
  const int rows = std::min(offers_at_once, model_->rowCount());
  const QPoint at = edit_->mapTo(offers_->parentWidget(), QPoint(0, edit_->height() + 2));
  offers_->setGeometry(at.x(), at.y(), std::max(edit_->width(), metrics().scaled(420)),
                       rows * metrics().small_control() + 4);
  offers_->raise();
  offers_->show();
  offers_->setCurrentIndex({});
}

void FilterField::take(int row) {
  if (row < 0 || row >= model_->rowCount()) return;
  const QString value = model_->item(row)->text();
  QString text = edit_->text();
  const bool sign = QStringLiteral("=!<>:~").contains(value.at(0));
  const QString after =
      value.endsWith(QLatin1Char(':')) || text.mid(to_).startsWith(QLatin1Char(' ')) ? QString() : QStringLiteral(" ");
  const QString before =
      !sign && from_ > 0 && from_ == to_ && text.at(from_ - 1).isLetterOrNumber() ? QStringLiteral(" ") : QString();
  text.replace(from_, to_ - from_, before + value + after);
  offers_->hide();
  edit_->setText(text);
  edit_->setCursorPosition(from_ + static_cast<int>((before + value + after).size()));
  offer(false);
}

bool FilterField::eventFilter(QObject* watched, QEvent* event) {
  if (watched != edit_) return false;
  if (event->type() == QEvent::FocusOut) offers_->hide();
  if (event->type() != QEvent::KeyPress) return false;
  const auto* key = static_cast<QKeyEvent*>(event);
  const int row = offers_->currentIndex().isValid() ? offers_->currentIndex().row() : -1;
  switch (key->key()) {
    case Qt::Key_Down:
      if (!offers_->isVisible()) {
        offer(true);
        return true;
      }
      offers_->setCurrentIndex(model_->index(std::min(row + 1, model_->rowCount() - 1), 0));
      return true;
    case Qt::Key_Up:
      if (!offers_->isVisible()) return false;
      offers_->setCurrentIndex(row > 0 ? model_->index(row - 1, 0) : QModelIndex());
      return true;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (!offers_->isVisible() || row < 0) {
        offers_->hide();
        return true;
      }
      take(row);
      return true;
    case Qt::Key_Tab:
      if (!offers_->isVisible()) return false;
      take(std::max(0, row));
      return true;
    case Qt::Key_Escape:
      if (offers_->isVisible()) {
        offers_->hide();
        return true;
      }
      if (edit_->text().isEmpty()) return false;
      edit_->clear();
      return true;
    default:
      return false;
  }
}

}  // namespace stacklab::ui

#include <moc_filter_field.cpp>
