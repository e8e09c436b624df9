#include "ui/plots/chart_panel.h"

#include <QEvent>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QMenu>
#include <QPainter>
#include <QStandardPaths>
#include <cmath>

#include "ui/plots/export.h"
#include "ui/plots/series_table.h"
#include "ui/theme/icons.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {

ChartPanel::ChartPanel(ChartSetup setup, SharedView* shared, QWidget* parent) : QFrame(parent) {
  setObjectName(QStringLiteral("panel"));
  setAccessibleName(tr("%1 panel").arg(setup.title));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(1, 1, 1, 4);
  column->setSpacing(0);
  auto* header = new QHBoxLayout;
  header->setContentsMargins(11, 0, 4, 0);
  header->setSpacing(8);
  auto* title = new TextLabel(TextRole::body, Token::text, true, this);
  title->set_full_text(setup.title);
  unit_ = new TextLabel(TextRole::secondary, Token::text3, false, this);
  unit_->set_shrinking();
  non_finite_ = make_badge("bad", QStringLiteral("dialog-error"));
  hidden_ = make_badge("warn", QStringLiteral("dialog-warning"));
  robust_ = make_badge("info", {});
  zoomed_ = make_badge("info", {});
  menu_button_ = new QToolButton(this);
  menu_button_->setIcon(icon(QStringLiteral("view-more"), Token::text2));
  scale_icon(menu_button_);
  menu_button_->setAccessibleName(tr("Menu of the %1 panel").arg(setup.title));
  menu_button_->setToolTip(tr("Export, table, axes"));
  header->addWidget(title);
  header->addWidget(unit_);
  header->addWidget(non_finite_);
  header->addWidget(hidden_);
  header->addWidget(robust_);
  header->addWidget(zoomed_);
  header->addStretch();
  header->addWidget(menu_button_);
  auto* bar = new QWidget(this);
  bar->setLayout(header);
  column->addWidget(bar);
  chart_ = new CurveChart(std::move(setup), shared, this);
  auto* inset = new QHBoxLayout;
  inset->setContentsMargins(8, 0, 4, 0);
  inset->addWidget(chart_);
  column->addLayout(inset, 1);
  unit_->set_full_text(chart_->log_y() ? tr("%1, log").arg(chart_->setup().unit) : chart_->setup().unit);
  const auto relayout = [bar] { bar->setFixedHeight(metrics().panel_header()); };
  relayout();
  connect(&look(), &Look::changed, this, relayout);
  connect(chart_, &CurveChart::facts_changed, this, [this] { update_badges(); });
  connect(chart_->shared(), &SharedView::changed, this, [this] { update_badges(); });
  connect(chart_, &CurveChart::menu_requested, this, [this](const QPoint& at) { open_menu(at); });
  connect(menu_button_, &QToolButton::clicked, this,
          [this] { open_menu(menu_button_->mapToGlobal(QPoint(0, menu_button_->height()))); });
  connect(non_finite_, &QToolButton::clicked, this, [this] {
    if (chart_->facts().first_non_finite) chart_->go_to(*chart_->facts().first_non_finite);
  });
  connect(hidden_, &QToolButton::clicked, this, [this] { set_log_y(false); });
  connect(robust_, &QToolButton::clicked, this, [this] { chart_->shared()->set_robust(false); });
  connect(zoomed_, &QToolButton::clicked, this, [this] { chart_->shared()->reset(); });
  chart_->installEventFilter(this);
  update_badges();
}

void ChartPanel::set_log_y(bool log) {
  if (log == chart_->log_y()) return;
  chart_->set_log_y(log);
  unit_->set_full_text(log ? tr("%1, log").arg(chart_->setup().unit) : chart_->setup().unit);
  emit log_y_changed(log);
}

QToolButton* ChartPanel::make_badge(const char* kind, const QString& icon_name) {
  auto* badge = new QToolButton(this);
  badge->setProperty("badge", QString::fromLatin1(kind));
  badge->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  scale_icon(badge, 12);
  // The size is computed from this font, the style sheet's size notwithstanding.
  const auto restyle = [badge] { badge->setFont(look().font(TextRole::small)); };
  restyle();
  connect(&look(), &Look::changed, badge, restyle);
  if (!icon_name.isEmpty()) badge->setIcon(icon(icon_name, qstrcmp(kind, "bad") == 0 ? Token::bad : Token::warn));
  badge->hide();
  return badge;
}

void ChartPanel::update_badges() {
  const ChartFacts& facts = chart_->facts();
  const auto set = [](QToolButton* badge, bool shown, const QString& text, const QString& tip) {
    badge->setVisible(shown);
    badge->setText(text);
    badge->setToolTip(tip);
    badge->setAccessibleName(text.isEmpty() ? tip : text);
  };
  const QString step = format_count(std::llround(facts.first_non_finite.value_or(0)));
  const bool narrow = width() < metrics().scaled(480);
  const QString who = narrow ? tr("NaN: go to %1").arg(step)
                      : facts.curves_with_non_finite == 1
                          ? tr("1 run has NaN: go to step %1").arg(step)
                          : tr("%1 curves have NaN: go to step %2").arg(facts.curves_with_non_finite).arg(step);
  set(non_finite_, facts.first_non_finite.has_value(), who,
      tr("%1: first value of %2 that is NaN or infinite. %3 in view.")
          .arg(chart_->setup().title, facts.first_non_finite_curve,
               format_count(static_cast<std::int64_t>(facts.non_finite))));
  set(hidden_, facts.hidden > 0,
      tr("%1 non-positive hidden").arg(format_count(static_cast<std::int64_t>(facts.hidden))),
      tr("A log axis cannot show values of 0 and below. Click for a linear axis."));
  set(robust_, facts.robust_cuts, tr("robust range"),
      tr("The axis holds the middle 98 % of the values. Click to show all."));
  const View& view = chart_->shared()->view();
  set(zoomed_, view.y.contains(chart_->setup().id), tr("y zoomed"), tr("Click to show everything."));
  setToolTip({});
  unit_->setToolTip(tr("%1 raw points, %2 drawn")
                        .arg(format_count(static_cast<std::int64_t>(facts.raw)),
                             format_count(static_cast<std::int64_t>(facts.drawn))));
}

void ChartPanel::open_menu(const QPoint& global) {
  auto* menu = new QMenu(this);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  menu->addAction(tr("Save picture (PNG)…"), this,
                  [this] { ask_path(tr("Save picture"), QStringLiteral("png"), &ChartPanel::save_picture); });
  menu->addAction(tr("Save visible values (CSV)…"), this,
                  [this] { ask_path(tr("Save values"), QStringLiteral("csv"), &ChartPanel::save_values); });
  menu->addAction(tr("Show as table"), this, [this] { show_table(*chart_, window()); });
  menu->addSeparator();
  QAction* log = menu->addAction(tr("Logarithmic y axis"));
  log->setCheckable(true);
  log->setChecked(chart_->log_y());
  connect(log, &QAction::toggled, this, &ChartPanel::set_log_y);
  QAction* first = menu->addAction(tr("Go to first non-finite value"), this,
                                   [this] { chart_->go_to(*chart_->facts().first_non_finite); });
  first->setEnabled(chart_->facts().first_non_finite.has_value());
  menu->addAction(tr("Show everything"), QKeySequence(Qt::Key_Home), chart_->shared(), &SharedView::reset);
  menu->popup(global);
}

void ChartPanel::ask_path(const QString& title, const QString& suffix, void (ChartPanel::*save)(const QString&)) {
  auto* dialog = new QFileDialog(window(), title, QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(suffix);
  dialog->selectFile(chart_->setup().id + QLatin1Char('.') + suffix);
  connect(dialog, &QFileDialog::fileSelected, this, save);
  dialog->open();
}

void ChartPanel::save_picture(const QString& path) {
  save_picture_later(this, grab().toImage(), path, [this, path](const QString& error) { emit saved(path, error); });
}

void ChartPanel::save_values(const QString& path) {
  save_values_later(this, extract(*chart_), path, [this, path](const QString& error) { emit saved(path, error); });
}

void ChartPanel::resizeEvent(QResizeEvent* event) {
  QFrame::resizeEvent(event);
  update_badges();
}

bool ChartPanel::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut) update();
  return QFrame::eventFilter(watched, event);
}

void ChartPanel::paintEvent(QPaintEvent* event) {
  QFrame::paintEvent(event);
  if (!chart_->hasFocus()) return;
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(theme()[Token::accent], 2));
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 5, 5);
}

}  // namespace stacklab::ui

#include <moc_chart_panel.cpp>
