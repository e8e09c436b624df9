#include "ui/shell/popup.h"

#include <QApplication>
#include <QKeyEvent>
#include <QMouseEvent>

#include "ui/theme/look.h"

namespace stacklab::ui {

Popup::Popup(QWidget* window) : QFrame(window) {
  setObjectName(QStringLiteral("popup"));
  setAttribute(Qt::WA_StyledBackground);
  hide();
  connect(&look(), &Look::changed, this, &Popup::place);
  connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) {
    if (isVisible() && now && now != this && !isAncestorOf(now) && now->window() == this->window()) leave();
  });
}

void Popup::open_below(QWidget* anchor, QSize size, QWidget* focus) {
  if (!isVisible()) focus_before_ = QApplication::focusWidget();
  anchor_ = anchor;
  wanted_ = size;
  place();
  show();
  raise();
  focus->setFocus(Qt::PopupFocusReason);
  qApp->installEventFilter(this);
}

void Popup::set_height(int height) {
  wanted_.setHeight(height);
  place();
}

void Popup::place() {
  if (!anchor_) return;
  const QWidget* over = parentWidget();
  const QPoint corner = anchor_->mapTo(over, QPoint(anchor_->width(), anchor_->height() + 3));
  const int width = std::min(wanted_.width(), over->width() - 16);
  const int height = std::min(wanted_.height(), over->height() - corner.y() - 16);
  const int left = std::clamp(corner.x() - width, 8, std::max(8, over->width() - width - 8));
  setGeometry(left, corner.y(), width, std::max(height, 80));
}

void Popup::leave() {
  qApp->removeEventFilter(this);
  hide();
  emit dismissed();
}

void Popup::dismiss() {
  if (!isVisible()) return;
  leave();
  if (focus_before_ && focus_before_->isVisible())
    focus_before_->setFocus(Qt::OtherFocusReason);
  else
    parentWidget()->setFocus();
}

bool Popup::eventFilter(QObject* watched, QEvent* event) {
  if (watched == parentWidget() && event->type() == QEvent::Resize) place();
  if (event->type() == QEvent::MouseButtonPress) {
    auto* widget = qobject_cast<QWidget*>(watched);
    // The press that closes it does nothing else where it opened it.
    if (widget && widget != this && !isAncestorOf(widget) && widget->window() == window()) {
      const bool on_anchor = anchor_ && (widget == anchor_ || anchor_->isAncestorOf(widget));
      dismiss();
      return on_anchor;
    }
  }
  return QFrame::eventFilter(watched, event);
}

void Popup::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape) return dismiss();
  QFrame::keyPressEvent(event);
}

}  // namespace stacklab::ui

#include <moc_popup.cpp>
