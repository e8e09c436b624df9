#include "ui/theme/look.h"

#include <QApplication>
#include <QEvent>
#include <QFile>
#include <QFontDatabase>
#include <QFontInfo>
#include <QFontMetrics>
#include <QPalette>
#include <QPointer>
#include <QStyle>
#include <QStyleFactory>
#include <QWidget>

namespace stacklab::ui {
namespace {

QPalette palette_of(const Theme& t) {
  QPalette p;
  // One colour is left to the desktop, so that it still tells whether it is light or dark: that of disabled windows,
  // which nothing here paints with.
  const auto set = [&p, &t](QPalette::ColorRole role, Token token) {
    p.setColor(QPalette::Active, role, t[token]);
    p.setColor(QPalette::Inactive, role, t[token]);
    if (role != QPalette::Window) p.setColor(QPalette::Disabled, role, t[token]);
  };
  set(QPalette::Window, Token::window);
  set(QPalette::WindowText, Token::text);
  set(QPalette::Base, Token::surface);
  set(QPalette::AlternateBase, Token::sunken);
  set(QPalette::Text, Token::text);
  set(QPalette::Button, Token::raised);
  set(QPalette::ButtonText, Token::text);
  set(QPalette::BrightText, Token::bad);
  set(QPalette::Highlight, Token::soft);
  set(QPalette::HighlightedText, Token::text);
  set(QPalette::Light, Token::raised);
  set(QPalette::Midlight, Token::hover);
  set(QPalette::Mid, Token::border);
  set(QPalette::Dark, Token::strong);
  set(QPalette::Shadow, Token::strong);
  set(QPalette::PlaceholderText, Token::text3);
  set(QPalette::ToolTipBase, Token::raised);
  set(QPalette::ToolTipText, Token::text);
  set(QPalette::Link, Token::accent);
  set(QPalette::LinkVisited, Token::accent);
  for (const QPalette::ColorRole role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, t[Token::off]);
  return p;
}

bool desktop_looks_dark() {
  return QApplication::palette().color(QPalette::Disabled, QPalette::Window).lightness() < 128;
}

QString style_sheet(const Theme& t, const Metrics& m, int base_pixels) {
  QFile file(QStringLiteral(":/theme/workbench.qss"));
  if (!file.open(QIODevice::ReadOnly)) return {};
  QString sheet = QString::fromUtf8(file.readAll());
  // Longer names first, so that @text does not eat the start of @text2.
  QList<std::pair<QString, QString>> values;
  for (int i = 0; i < token_count; ++i)
    values.append({QLatin1String(token_name(static_cast<Token>(i))), t[static_cast<Token>(i)].name()});
  const auto length = [](double px) { return QString::number(static_cast<int>(px + 0.5)) + QLatin1String("px"); };
  values.append({QStringLiteral("theme"), t.is_dark() ? QStringLiteral("dark") : QStringLiteral("light")});
  values.append({QStringLiteral("control_height"), length(m.control() - 2)});
  values.append({QStringLiteral("small_height"), length(m.small_control() - 2)});
  values.append({QStringLiteral("row_height"), length(m.row())});
  values.append({QStringLiteral("tab_height"), length(m.tab())});
  values.append({QStringLiteral("menu_height"), length(m.menu() - 8)});
  values.append({QStringLiteral("indicator"), length(m.scaled(13))});
  values.append({QStringLiteral("indicator_radius"), length(m.scaled(13) / 2 + 1)});
  values.append({QStringLiteral("arrow_size"), length(m.scaled(12))});
  values.append({QStringLiteral("icon_size"), length(m.scaled(16))});
  values.append({QStringLiteral("font_small"), length(base_pixels * 11 / 13.0)});
  values.append({QStringLiteral("font_secondary"), length(base_pixels * 12 / 13.0)});
  values.append({QStringLiteral("font_body"), length(base_pixels)});
  std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  for (const auto& [name, value] : values) sheet.replace(QLatin1Char('@') + name, value);
  return sheet;
}

}  // namespace

QString to_string(ThemeMode mode) {
  return mode == ThemeMode::dark    ? QStringLiteral("dark")
         : mode == ThemeMode::light ? QStringLiteral("light")
                                    : QStringLiteral("follow");
}

ThemeMode theme_mode_from_string(const QString& word) {
  if (word == QLatin1String("dark")) return ThemeMode::dark;
  if (word == QLatin1String("light")) return ThemeMode::light;
  return ThemeMode::follow;
}

Look& Look::instance() {
  // Owned by the application, so that it never outlives what it styles.
  static QPointer<Look> look;
  if (!look) look = new Look;
  return *look;
}

Look::Look() : QObject(qApp), system_font_(QApplication::font()), theme_(Theme::builtin(false)) {
  QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
  desktop_is_dark_ = desktop_looks_dark();
  base_pixels_ = qBound(10, QFontInfo(system_font_).pixelSize(), 28);
  qApp->installEventFilter(this);
  apply();
}

void Look::set_mode(ThemeMode mode) {
  if (mode == mode_) return;
  mode_ = mode;
  apply();
}

void Look::set_zoom(int percent) {
  percent = qBound(70, percent, 200);
  if (percent == zoom_) return;
  zoom_ = percent;
  apply();
}

void Look::set_base_pixel_size(int pixels) {
  base_pixels_ = pixels;
  apply();
}

void Look::apply() {
  applying_ = true;
  theme_ = Theme::builtin(mode_ == ThemeMode::dark || (mode_ == ThemeMode::follow && desktop_is_dark_));
  const QFont body = font(TextRole::body);
  const QFontMetrics measure(body);
  metrics_.f = measure.height();
  tabular_digits_ = true;
  for (char c = '1'; c <= '9'; ++c)
    tabular_digits_ &= measure.horizontalAdvance(QLatin1Char(c)) == measure.horizontalAdvance(QLatin1Char('0'));
  QApplication::setPalette(palette_of(theme_));
  QApplication::setFont(body);
  qApp->setStyleSheet(style_sheet(theme_, metrics_, body.pixelSize()));
  applying_ = false;
  emit changed();
}

QFont Look::font(TextRole role, bool bold) const {
  double at_13px = 13;
  switch (role) {
    case TextRole::title:
      at_13px = 17;
      break;
    case TextRole::big:
      at_13px = 26;
      break;
    case TextRole::body:
      at_13px = 13;
      break;
    case TextRole::secondary:
      at_13px = 12;
      break;
    case TextRole::small:
      at_13px = 11;
      break;
  }
  QFont result = system_font_;
  result.setPixelSize(std::max(7, qRound(at_13px / 13.0 * base_pixels_ * zoom_ / 100.0)));
  result.setBold(bold);
  return result;
}

QFont Look::number_font(TextRole role, bool bold) const {
  const QFont plain = font(role, bold);
  if (tabular_digits_) return plain;
  QFont fixed = QFontDatabase::systemFont(QFontDatabase::FixedFont);
  fixed.setPixelSize(plain.pixelSize());
  fixed.setBold(bold);
  return fixed;
}

QFont Look::mono_font(TextRole role) const {
  QFont fixed = QFontDatabase::systemFont(QFontDatabase::FixedFont);
  fixed.setPixelSize(font(role).pixelSize());
  return fixed;
}

bool Look::eventFilter(QObject* watched, QEvent* event) {
  if (watched == qApp && event->type() == QEvent::ApplicationPaletteChange && !applying_) {
    const bool dark = desktop_looks_dark();
    if (dark != desktop_is_dark_) {
      desktop_is_dark_ = dark;
      if (mode_ == ThemeMode::follow)
        QMetaObject::invokeMethod(
            this, [this] { apply(); }, Qt::QueuedConnection);
    }
  }
  return QObject::eventFilter(watched, event);
}

}  // namespace stacklab::ui

#include <moc_look.cpp>
