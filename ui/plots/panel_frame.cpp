#include "ui/plots/panel_frame.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QMenu>
#include <QPainter>
#include <algorithm>

#include "ui/plots/export.h"
#include "ui/theme/icons.h"

namespace stacklab::ui {

PanelFrame::PanelFrame(const QString& id, const QString& title, QWidget* parent) : QFrame(parent), id_(id) {
  setObjectName(QStringLiteral("panel"));
  setAccessibleName(tr("%1 panel").arg(title));
  column_ = new QVBoxLayout(this);
  column_->setContentsMargins(1, 1, 1, 4);
  column_->setSpacing(0);
  auto* bar = new QWidget(this);
  header_ = new QHBoxLayout(bar);
  header_->setContentsMargins(11, 0, 4, 0);
  header_->setSpacing(8);
  title_ = new TextLabel(TextRole::body, Token::text, true, this);
  title_->set_full_text(title);
  title_->set_shrinking();
  unit_ = new TextLabel(TextRole::secondary, Token::text3, false, this);
  unit_->set_shrinking();
  menu_button_ = new QToolButton(this);
  menu_button_->setIcon(icon(QStringLiteral("view-more"), Token::text2));
  scale_icon(menu_button_);
  menu_button_->setAccessibleName(tr("Menu of the %1 panel").arg(title));
  menu_button_->setToolTip(tr("Export, table, axes, place"));
  header_->addWidget(title_);
  header_->addWidget(unit_);
  header_->addStretch();
  header_->addWidget(menu_button_);
  column_->addWidget(bar);
  const auto relayout = [this, bar] {
    bar->setFixedHeight(metrics().panel_header());
    fit_title();
  };
  relayout();
  connect(&look(), &Look::changed, this, relayout);
  connect(menu_button_, &QToolButton::clicked, this,
          [this] { open_menu(menu_button_->mapToGlobal(QPoint(0, menu_button_->height()))); });
}

void PanelFrame::set_content(QWidget* content) {
  content_ = content;
  auto* inset = new QHBoxLayout;
  inset->setContentsMargins(8, 0, 4, 0);
  inset->addWidget(content);
  column_->addLayout(inset, 1);
  content->installEventFilter(this);
}

QToolButton* PanelFrame::make_badge(const char* kind, const QString& icon_name) {
  auto* badge = new QToolButton(this);
  badge->setProperty("badge", QString::fromLatin1(kind));
  badge->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  scale_icon(badge, 12);
  // The size is computed from this font, the style sheet's size notwithstanding.
  const auto restyle = [this, badge] {
    badge->setFont(look().font(TextRole::small));
    fit_badges();
  };
  restyle();
  connect(&look(), &Look::changed, badge, restyle);
  if (!icon_name.isEmpty()) badge->setIcon(icon(icon_name, qstrcmp(kind, "bad") == 0 ? Token::bad : Token::warn));
  badge->hide();
  header_->insertWidget(header_->count() - 2, badge);
  badges_.push_back({badge, {}, {}});
  return badge;
}

void PanelFrame::set_badge(QToolButton* badge, bool shown, const QStringList& forms, const QString& tip) {
  badge->setVisible(shown);
  badge->setAccessibleName(forms.value(0).isEmpty() ? tip : forms[0]);
  for (Badge& known : badges_)
    if (known.button == badge) {
      known.forms = forms;
      known.tip = tip;
    }
  fit_badges();
}

QSize PanelFrame::minimumSizeHint() const {
  // What the header says grows shorter with the panel; it does not hold it open.
  int wide = menu_button_->sizeHint().width() + 60;
  for (int i = 1; i < column_->count(); ++i) wide = std::max(wide, column_->itemAt(i)->minimumSize().width());
  return {wide + 2, QFrame::minimumSizeHint().height()};
}

void PanelFrame::fit_badges() {
  std::vector<Badge*> shown;
  qsizetype most_forms = 0;
  for (Badge& badge : badges_)
    if (!badge.button->isHidden() && !badge.forms.isEmpty()) {
      shown.push_back(&badge);
      most_forms = std::max(most_forms, badge.forms.size());
    }
  if (shown.empty()) return;
  const QMargins margins = header_->contentsMargins();
  const int room = width() - margins.left() - margins.right() - title_->minimumWidth() -
                   menu_button_->sizeHint().width() - header_->spacing() * (3 + static_cast<int>(shown.size()));
  const auto say = [](const Badge& badge, const QString& text) {
    badge.button->setText(text);
    badge.button->setToolTip(text == badge.forms[0] ? badge.tip : badge.forms[0] + QLatin1Char('\n') + badge.tip);
  };
  int wanted = 0;
  for (qsizetype form = 0; form < most_forms; ++form) {
    wanted = 0;
    for (const Badge* badge : shown) {
      say(*badge, badge->forms[std::min(form, badge->forms.size() - 1)]);
      wanted += badge->button->sizeHint().width();
    }
    if (wanted <= room) return;
  }
  // Not even the short ones: the ends go, the beginnings stay.
  const int less = (wanted - room + static_cast<int>(shown.size()) - 1) / static_cast<int>(shown.size());
  for (const Badge* badge : shown) {
    const QFontMetrics m(badge->button->font());
    const QString text = badge->button->text();
    say(*badge, m.elidedText(text, Qt::ElideRight, std::max(0, m.horizontalAdvance(text) - less)));
  }
}

void PanelFrame::open_menu(const QPoint& global) {
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  menu->addAction(tr("Save picture (PNG, SVG, PDF)…"), this, [this] {
    ask_path(tr("Save picture"), {QStringLiteral("png"), QStringLiteral("svg"), QStringLiteral("pdf")},
             [this](const QString& path) { save_picture(path); });
  });
  fill_menu(menu);
  menu->addSeparator();
  menu->addAction(tr("Move to the place before"), this, [this] { emit move_requested(-1); });
  menu->addAction(tr("Move to the place after"), this, [this] { emit move_requested(1); });
  menu->addAction(tr("Hide this panel"), this, &PanelFrame::hide_requested);
  menu->popup(global);
}

void PanelFrame::ask_path(const QString& title, const QStringList& suffixes, std::function<void(const QString&)> save) {
  ask_save_path(this, title, QStandardPaths::DocumentsLocation, id_, suffixes, std::move(save));
}

void PanelFrame::save_picture(const QString& path) {
  save_widget_later(this, *this, caption_, path, [this, path](const QString& error) { emit saved(path, error); });
}

bool PanelFrame::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut) update();
  return QFrame::eventFilter(watched, event);
}

void PanelFrame::fit_title() {
  // The unit gives way first, then the title.
  const QFontMetrics m(look().font(TextRole::body, true));
  const int room = width() - menu_button_->sizeHint().width() - 40;
  title_->setMinimumWidth(std::max(0, std::min(m.horizontalAdvance(title()) + 2, room)));
  fit_badges();
}

void PanelFrame::resizeEvent(QResizeEvent* event) {
  QFrame::resizeEvent(event);
  fit_title();
}

void PanelFrame::paintEvent(QPaintEvent* event) {
  QFrame::paintEvent(event);
  if (!content_ || !content_->hasFocus()) return;
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(theme()[Token::accent], 2));
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 5, 5);
}

}  // namespace stacklab::ui

#include <moc_panel_frame.cpp>
