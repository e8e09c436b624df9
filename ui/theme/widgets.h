// The few small widgets that every page uses.
#pragma once

#include <QFrame>
#include <QLabel>
#include <QPushButton>
#include <QToolButton>
#include <QWidget>

#include "ui/theme/glyphs.h"
#include "ui/theme/look.h"

namespace stacklab::ui {

// A label in one of the look's text roles, which follows theme and zoom; elides when told to, with the whole text as
// tip.
class TextLabel : public QLabel {
 public:
  TextLabel(TextRole role, Token color, bool bold = false, QWidget* parent = nullptr);
  void set_elided(bool elided);    // takes what room there is
  void set_shrinking();            // as wide as its text, elided where there is less room
  void set_numbers(bool numbers);  // digits of equal width
  void set_mono(bool mono);
  void set_color(Token color);
  void set_full_text(const QString& text);
  QString full_text() const { return full_text_; }
  QSize minimumSizeHint() const override;
  QSize sizeHint() const override;

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void restyle();
  void relayout();

  TextRole role_;
  Token color_;
  bool bold_;
  bool elided_ = false;
  bool numbers_ = false, mono_ = false;
  QString full_text_;
};

// Glyph and word on a soft ground, or without ground.
class StatePill : public QWidget {
 public:
  explicit StatePill(QWidget* parent = nullptr);
  void set_state(Glyph glyph, const QString& word, Token color, Token ground);
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  Glyph glyph_ = Glyph::none;
  QString word_;
  Token color_ = Token::text3, ground_ = Token::surface;
};

// 6 px high, in the state's colour. A fraction below 0 means unknown: an empty track.
class ThinProgress : public QWidget {
 public:
  explicit ThinProgress(QWidget* parent = nullptr);
  void set(double fraction, Token color);
  double fraction() const { return fraction_; }
  QSize sizeHint() const override { return {80, 6}; }
  QSize minimumSizeHint() const override { return {24, 6}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  double fraction_ = -1;
  Token color_ = Token::info;
};

// A short piece of a run's line: its colour and dash.
void paint_swatch(class QPainter& painter, const QRectF& box, std::int64_t run_number, bool shown = true);

class Swatch : public QWidget {
 public:
  explicit Swatch(QWidget* parent = nullptr) : QWidget(parent) {}
  void set_run_number(std::int64_t number);
  QSize sizeHint() const override { return {18, 12}; }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::int64_t number_ = 0;
};

// Keeps a button's icon in step with the text: 16 px at the usual size.
void scale_icon(QAbstractButton* button, double at_13px = 16);
QFrame* make_line(Qt::Orientation orientation, QWidget* parent = nullptr);
// Buttons carry an accessible name (their text without "&", unless another is given).
QPushButton* make_button(const QString& text, const QString& icon_name = {}, QWidget* parent = nullptr);
void make_primary(QPushButton* button);

// One bold sentence of fact, one of help, one button: what an empty place shows.
class Notice : public QWidget {
  Q_OBJECT
 public:
  explicit Notice(QWidget* parent = nullptr);
  void set_texts(const QString& fact, const QString& help, const QString& button);
  QPushButton* button() const { return button_; }

 private:
  TextLabel* fact_;
  TextLabel* help_;
  QPushButton* button_;
};

}  // namespace stacklab::ui
