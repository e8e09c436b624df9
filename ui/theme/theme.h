// The colours of the workbench: a table of tokens, read from resources/theme/<name>.json.
#pragma once

#include <QColor>
#include <QList>
#include <QString>
#include <array>
#include <cstdint>
#include <optional>

namespace stacklab::ui {

// Names are those of the table: window, sunken, ..., info_soft.
enum class Token {
  window,
  sunken,
  surface,
  raised,
  hover,
  pressed,
  border,
  strong,
  input,
  grid,
  text,
  text2,
  text3,
  off,
  accent,
  on_accent,
  soft,
  good,
  good_soft,
  warn,
  warn_soft,
  bad,
  bad_soft,
  info,
  info_soft,
};
inline constexpr int token_count = 25;
const char* token_name(Token token);

class Theme {
 public:
  // Empty when the bytes are not a whole theme (a token missing, a colour unreadable).
  static std::optional<Theme> parse(const QByteArray& json);
  static Theme builtin(bool dark);

  const QString& name() const { return name_; }
  bool is_dark() const;
  QColor operator[](Token token) const { return tokens_[static_cast<std::size_t>(token)]; }

  // A run has one colour, dash and marker everywhere, from its number in the store.
  QColor run_color(std::int64_t number) const;
  QColor run_ink(std::int64_t number) const;  // the colour as text: darker or lighter where contrast asks for it

 private:
  QString name_;
  std::array<QColor, token_count> tokens_;
  std::array<QColor, 10> runs_;
  std::array<QColor, 10> inks_;
};

QList<qreal> run_dash(std::int64_t number);  // in pen widths; empty: solid
QColor mix(const QColor& over, const QColor& under, double alpha);

// WCAG 2 contrast ratio, 1 to 21.
double contrast(const QColor& a, const QColor& b);

}  // namespace stacklab::ui
