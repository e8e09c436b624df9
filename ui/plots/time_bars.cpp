#include "ui/plots/time_bars.h"

#include <QHelpEvent>
#include <QPainter>
#include <QStyle>
#include <QToolTip>
#include <algorithm>

#include "ui/theme/look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {
constexpr int pad = 12, gap = 8;
int row_height() { return metrics().small_control(); }
}  // namespace

QString format_time(double seconds) {
  if (seconds >= 1) return format_fixed(seconds, 2) + QStringLiteral(" s");
  if (seconds >= 0.1) return format_fixed(seconds * 1e3, 0) + QStringLiteral(" ms");
  if (seconds >= 1e-3) return format_fixed(seconds * 1e3, 1) + QStringLiteral(" ms");
  return format_fixed(seconds * 1e6, 0) + QStringLiteral(" µs");
}

TimeBars::TimeBars(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::TabFocus);
  setAccessibleName(tr("Time per operation"));
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  connect(&look(), &Look::changed, this, &QWidget::updateGeometry);
}

void TimeBars::set_bars(std::vector<TimeBar> bars) {
  std::stable_sort(bars.begin(), bars.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  if (bars == bars_) return;
  bars_ = std::move(bars);
  QStringList words;
  for (const TimeBar& bar : bars_) words << tr("%1 %2").arg(bar.name, format_time(bar.seconds));
  setAccessibleDescription(words.join(QStringLiteral("; ")));
  updateGeometry();
  update();
}

QSize TimeBars::sizeHint() const { return {240, static_cast<int>(bars_.size()) * row_height() + 8}; }

double TimeBars::whole() const {
  double sum = 0;
  for (const TimeBar& bar : bars_) sum += bar.seconds;
  return sum;
}

void TimeBars::paintEvent(QPaintEvent*) {
  if (bars_.empty()) return;
  QPainter painter(this);
  const QFont font = look().font(TextRole::secondary), numbers = look().number_font(TextRole::secondary);
  const QFontMetrics m(font), n(numbers);
  int time_width = 0;
  for (const TimeBar& bar : bars_) time_width = std::max(time_width, n.horizontalAdvance(format_time(bar.seconds)));
  const int inner = width() - 2 * pad - time_width - 2 * gap, name_width = inner * 3 / 5;
  const double most = std::max(bars_.front().seconds, 1e-12);
  for (std::size_t i = 0; i < bars_.size(); ++i) {
    const int top = 4 + static_cast<int>(i) * row_height();
    const auto place = [&](const QRect& box) { return QStyle::visualRect(layoutDirection(), rect(), box); };
    painter.setFont(font);
    painter.setPen(theme()[Token::text2]);
    painter.drawText(place({pad, top, name_width, row_height()}),
                     static_cast<int>(QStyle::visualAlignment(layoutDirection(), Qt::AlignLeft) | Qt::AlignVCenter),
                     m.elidedText(bars_[i].name, Qt::ElideRight, name_width));
    const int length = std::max(1, static_cast<int>(bars_[i].seconds / most * (inner - name_width)));
    painter.fillRect(place({pad + name_width + gap, top + row_height() / 2 - 4, length, 8}), theme()[Token::text3]);
    painter.setFont(numbers);
    painter.setPen(theme()[Token::text]);
    painter.drawText(place({width() - pad - time_width, top, time_width, row_height()}),
                     static_cast<int>(QStyle::visualAlignment(layoutDirection(), Qt::AlignRight) | Qt::AlignVCenter),
                     format_time(bars_[i].seconds));
  }
  if (hasFocus()) {
    painter.setPen(QPen(theme()[Token::accent], 2));
    painter.drawRect(rect().adjusted(1, 1, -1, -1));
  }
}

bool TimeBars::event(QEvent* event) {
  if (event->type() == QEvent::FocusIn || event->type() == QEvent::FocusOut) update();
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int row = (help->pos().y() - 4) / row_height();
  if (row >= 0 && row < static_cast<int>(bars_.size())) {
    const TimeBar& bar = bars_[static_cast<std::size_t>(row)];
    QToolTip::showText(help->globalPos(),
                       tr("%1: %2 s, %3 of the operations")
                           .arg(bar.name, QString::number(bar.seconds, 'g', 6), format_percent(bar.seconds / whole())),
                       this);
  } else {
    QToolTip::hideText();
  }
  return true;
}

}  // namespace stacklab::ui

#include <moc_time_bars.cpp>
