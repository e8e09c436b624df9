#include "ui/theme/theme.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <cmath>

namespace stacklab::ui {
namespace {

constexpr std::array<const char*, token_count> token_names = {
    "window",    "sunken", "surface",   "raised", "hover",    "pressed", "border",    "strong", "input",
    "grid",      "text",   "text2",     "text3",  "off",      "accent",  "on_accent", "soft",   "good",
    "good_soft", "warn",   "warn_soft", "bad",    "bad_soft", "info",    "info_soft"};

bool read_colors(const QJsonArray& from, std::array<QColor, 10>& to) {
  if (from.size() != static_cast<int>(to.size())) return false;
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = QColor(from[static_cast<int>(i)].toString());
    if (!to[i].isValid()) return false;
  }
  return true;
}

double linear(double channel) {
  return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}

double luminance(const QColor& c) {
  return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
}

std::size_t modulo(std::int64_t number, std::int64_t base) {
  return static_cast<std::size_t>(((number % base) + base) % base);
}

}  // namespace

const char* token_name(Token token) { return token_names[static_cast<std::size_t>(token)]; }

std::optional<Theme> Theme::parse(const QByteArray& json) {
  const QJsonObject root = QJsonDocument::fromJson(json).object();
  const QJsonObject tokens = root["tokens"].toObject();
  Theme theme;
  theme.name_ = root["name"].toString();
  for (std::size_t i = 0; i < token_names.size(); ++i) {
    theme.tokens_[i] = QColor(tokens[QLatin1String(token_names[i])].toString());
    if (!theme.tokens_[i].isValid()) return std::nullopt;
  }
  if (!read_colors(root["runs"].toArray(), theme.runs_)) return std::nullopt;
  if (!read_colors(root["run_inks"].toArray(), theme.inks_)) return std::nullopt;
  return theme;
}

Theme Theme::builtin(bool dark) {
  QFile file(dark ? QStringLiteral(":/theme/dark.json") : QStringLiteral(":/theme/light.json"));
  if (file.open(QIODevice::ReadOnly))
    if (auto theme = parse(file.readAll())) return *theme;
  qFatal("the built-in theme is unreadable");
}

bool Theme::is_dark() const { return (*this)[Token::window].lightness() < 128; }

QColor Theme::run_color(std::int64_t number) const { return runs_[modulo(number, 10)]; }
QColor Theme::run_ink(std::int64_t number) const { return inks_[modulo(number, 10)]; }

QList<qreal> run_dash(std::int64_t number) {
  switch (modulo(number / 10, 4)) {
    case 1:
      return {3.5, 1.8};
    case 2:
      return {1.2, 1.5};
    case 3:
      return {5, 1.8, 1.2, 1.8};
    default:
      return {};
  }
}

QColor mix(const QColor& over, const QColor& under, double alpha) {
  const auto blend = [alpha](double a, double b) { return static_cast<float>(a * alpha + b * (1 - alpha)); };
  return QColor::fromRgbF(blend(over.redF(), under.redF()), blend(over.greenF(), under.greenF()),
                          blend(over.blueF(), under.blueF()));
}

double contrast(const QColor& a, const QColor& b) {
  const double la = luminance(a), lb = luminance(b);
  return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

}  // namespace stacklab::ui
