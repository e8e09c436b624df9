#include "ui/shell/notice_panel.h"

#include <QKeyEvent>
#include <QPainter>
#include <QStyledItemDelegate>

#include "ui/theme/icons.h"
#include "ui/theme/numbers.h"
#include "ui/theme/widgets.h"

namespace stacklab::ui {
namespace {

constexpr int most_rows_shown = 9;

// Glyph, sentence (bold while unread), and below it run, step and time.
class NoticeDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override {
    const QFontMetrics first(look().font(TextRole::body, true)), second(look().font(TextRole::secondary));
    return {200, first.height() + second.height() + 12};
  }
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    painter->save();
    if (option.state & QStyle::State_Selected)
      painter->fillRect(option.rect, theme()[Token::soft]);
    else if (option.state & QStyle::State_MouseOver)
      painter->fillRect(option.rect, theme()[Token::hover]);
    const bool unread = index.data(NoticeModel::unread_role).toBool();
    const QFont first = look().font(TextRole::body, unread), second = look().font(TextRole::secondary);
    const QRect area = option.rect.adjusted(14, 5, -14, -6);
    const double side = metrics().scaled(11);
    const int line = QFontMetrics(first).height();
    paint_glyph(*painter, static_cast<Glyph>(index.data(NoticeModel::glyph_role).toInt()),
                QRectF(area.left(), area.top() + (line - side) / 2, side, side),
                theme()[static_cast<Token>(index.data(NoticeModel::color_role).toInt())]);
    const QRect words = area.adjusted(static_cast<int>(side) + 10, 0, unread ? -14 : 0, 0);
    painter->setFont(first);
    painter->setPen(theme()[Token::text]);
    painter->drawText(words, Qt::AlignLeft | Qt::AlignTop,
                      QFontMetrics(first).elidedText(index.data().toString(), Qt::ElideRight, words.width()));
    painter->setFont(second);
    painter->setPen(theme()[Token::text3]);
    painter->drawText(words.adjusted(0, line, 0, 0), Qt::AlignLeft | Qt::AlignTop,
                      QFontMetrics(second).elidedText(index.data(NoticeModel::detail_role).toString(), Qt::ElideMiddle,
                                                      words.width()));
    if (unread) {
      painter->setRenderHint(QPainter::Antialiasing);
      painter->setPen(Qt::NoPen);
      painter->setBrush(theme()[Token::accent]);
      painter->drawEllipse(QPointF(area.right() - 3, area.top() + line / 2.0), 3.2, 3.2);
    }
    painter->setPen(theme()[Token::grid]);
    painter->drawLine(option.rect.bottomLeft(), option.rect.bottomRight());
    painter->restore();
  }
};

}  // namespace

Bell::Bell(NoticeModel* model, QWidget* parent) : QToolButton(parent), model_(model) {
  setObjectName(QStringLiteral("bell"));
  setIcon(ui::icon(QStringLiteral("notifications"), Token::text2));
  scale_icon(this);
  setFocusPolicy(Qt::TabFocus);
  const auto update = [this] {
    const int unread = model_->unread();
    setText(unread > 0 ? format_count(unread) : QString());
    setToolButtonStyle(unread > 0 ? Qt::ToolButtonTextBesideIcon : Qt::ToolButtonIconOnly);
    const QString words = unread == 0   ? tr("Notifications, none unread")
                          : unread == 1 ? tr("Notifications, 1 unread")
                                        : tr("Notifications, %1 unread").arg(unread);
    setAccessibleName(words);
    setToolTip(words);
  };
  update();
  connect(model_, &NoticeModel::unread_changed, this, update);
}

NoticePanel::NoticePanel(NoticeModel* model, QWidget* window) : Popup(window), model_(model) {
  setAccessibleName(tr("Notifications"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(1, 8, 1, 1);
  column->setSpacing(6);
  auto* head = new QHBoxLayout;
  head->setContentsMargins(14, 0, 8, 0);
  auto* title = new TextLabel(TextRole::body, Token::text, true, this);
  title->set_full_text(tr("Notifications"));
  count_ = new TextLabel(TextRole::secondary, Token::text3, false, this);
  all_read_ = make_button(tr("Mark all as read"), {}, this);
  head->addWidget(title);
  head->addWidget(count_);
  head->addStretch();
  head->addWidget(all_read_);
  list_ = new QListView(this);
  list_->setAccessibleName(tr("Notifications"));
  list_->setAccessibleDescription(tr("Enter shows where it happened, Space marks it as read or unread."));
  list_->setModel(model_);
  list_->setItemDelegate(new NoticeDelegate(list_));
  list_->setUniformItemSizes(true);
  list_->setMouseTracking(true);
  list_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  list_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  empty_ = new TextLabel(TextRole::body, Token::text, true, this);
  empty_->set_full_text(tr("Nothing has happened that you should know of."));
  empty_help_ = new TextLabel(TextRole::secondary, Token::text2, false, this);
  empty_help_->set_full_text(tr("Spikes, values that are not finite, warnings and the end of runs appear here."));
  for (TextLabel* label : {empty_, empty_help_}) {
    label->setWordWrap(true);
    label->setContentsMargins(14, 0, 14, 0);
  }
  column->addLayout(head);
  column->addWidget(make_line(Qt::Horizontal, this));
  column->addWidget(empty_);
  column->addWidget(empty_help_);
  column->addWidget(list_, 1);
  column->addStretch();
  connect(all_read_, &QPushButton::clicked, model_, &NoticeModel::mark_all_read);
  connect(list_, &QListView::clicked, this, &NoticePanel::choose);
  connect(model_, &NoticeModel::unread_changed, this, &NoticePanel::update_head);
  connect(model_, &QAbstractItemModel::rowsInserted, this, &NoticePanel::update_head);
  connect(&look(), &Look::changed, this, [this] { list_->doItemsLayout(); });
  update_head();
}

void NoticePanel::open(QWidget* anchor) {
  update_head();
  const int rows = std::min(model_->rowCount(), most_rows_shown);
  const int height = rows > 0 ? metrics().control() + 40 + rows * list_->sizeHintForRow(0) : metrics().scaled(140);
  open_below(anchor, QSize(metrics().scaled(420), height), rows > 0 ? static_cast<QWidget*>(list_) : this);
  if (model_->rowCount() > 0 && !list_->currentIndex().isValid()) list_->setCurrentIndex(model_->index(0));
}

void NoticePanel::update_head() {
  const int unread = model_->unread();
  const bool empty = model_->rowCount() == 0;
  count_->set_full_text(empty ? QString() : tr("%1 unread of %2").arg(unread).arg(model_->rowCount()));
  all_read_->setVisible(!empty);
  all_read_->setEnabled(unread > 0);
  list_->setVisible(!empty);
  empty_->setVisible(empty);
  empty_help_->setVisible(empty);
}

void NoticePanel::choose(const QModelIndex& index) {
  if (!index.isValid()) return;
  const Notification notice = model_->at(index.row());
  model_->mark_read(index.row());
  dismiss();
  if (!notice.run.empty()) emit chosen(notice.run, notice.step);
}

// A list keeps these keys to itself.
bool NoticePanel::eventFilter(QObject* watched, QEvent* event) {
  const QModelIndex at = list_->currentIndex();
  if (watched == list_ && event->type() == QEvent::KeyPress) {
    switch (static_cast<QKeyEvent*>(event)->key()) {
      case Qt::Key_Escape:
        dismiss();
        return true;
      case Qt::Key_Return:
      case Qt::Key_Enter:
        choose(at);
        return true;
      case Qt::Key_Space:
        if (at.isValid()) model_->mark_read(at.row(), model_->is_unread(at.row()));
        return true;
      default:
        break;
    }
  }
  return Popup::eventFilter(watched, event);
}

}  // namespace stacklab::ui

#include <moc_notice_panel.cpp>
