#include "ui/shell/dock_rail.h"

#include <QAbstractButton>
#include <QKeyEvent>
#include <QPainter>
#include <QTabWidget>

#include "ui/theme/look.h"

namespace stacklab::ui {
namespace {

class SideButton : public QAbstractButton {
 public:
  SideButton(const QString& text, QWidget* parent) : QAbstractButton(parent) {
    setText(text);
    setAccessibleName(text);
    setCheckable(true);
    setFocusPolicy(Qt::TabFocus);
    setAttribute(Qt::WA_Hover);
  }
  QSize sizeHint() const override {
    return {metrics().tab(), QFontMetrics(look().font(TextRole::body, true)).horizontalAdvance(text()) + 24};
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    if (isChecked() || underMouse()) painter.fillRect(rect(), theme()[isChecked() ? Token::soft : Token::hover]);
    if (hasFocus()) {
      painter.setPen(QPen(theme()[Token::accent], 2));
      painter.drawRect(rect().adjusted(1, 1, -1, -1));
    }
    painter.setFont(look().font(TextRole::body, isChecked()));
    painter.setPen(theme()[isChecked() ? Token::accent : Token::text2]);
    painter.translate(width(), 0);
    painter.rotate(90);
    painter.drawText(QRect(0, 0, height(), width()), Qt::AlignCenter, text());
  }
};

}  // namespace

DockRail::DockRail(QWidget* parent) : QToolBar(parent) {
  setObjectName(QStringLiteral("dockRail"));
  setAccessibleName(tr("Tabs of the inspector"));
  setMovable(false);
  setFloatable(false);
  setContextMenuPolicy(Qt::PreventContextMenu);
  setOrientation(Qt::Vertical);
  hide();
  connect(&look(), &Look::changed, this, &DockRail::restyle);
}

void DockRail::set_tabs(QTabWidget* tabs) {
  if (tabs == tabs_) return;
  tabs_ = tabs;
  qDeleteAll(actions());  // with their buttons
  buttons_.clear();
  for (int i = 0; tabs && i < tabs->count(); ++i) {
    auto* button = new SideButton(tabs->tabText(i), this);
    connect(button, &QAbstractButton::clicked, this, [this, i] {
      emit chosen(i);
      show_open(open_);
    });
    buttons_.append(button);
    addWidget(button);
  }
  restyle();
}

void DockRail::show_open(bool open) {
  open_ = open;
  for (int i = 0; i < buttons_.size(); ++i) buttons_[i]->setChecked(open && tabs_ && tabs_->currentIndex() == i);
}

void DockRail::restyle() {
  for (QAbstractButton* button : buttons_) button->setFixedSize(button->sizeHint());
  setFixedWidth(metrics().tab() + 1);
}

}  // namespace stacklab::ui

#include <moc_dock_rail.cpp>
