#include "ui/theme/widgets.h"

#include <QHBoxLayout>
#include <QPainter>
#include <QResizeEvent>
#include <QVBoxLayout>

#include "ui/theme/icons.h"

namespace stacklab::ui {
namespace {

// A word without an end would make its label as wide as itself.
QString breakable(const QString& text) {
  constexpr int longest_word = 40;
  QString broken;
  int word = 0;
  for (const QChar c : text) {
    word = c.isSpace() ? 0 : word + 1;
    broken += c;
    if (word < longest_word || c.isHighSurrogate()) continue;
    broken += QChar(0x200B);  // a place to break that is not seen
    word = 0;
  }
  return broken;
}

}  // namespace

TextLabel::TextLabel(TextRole role, Token color, bool bold, QWidget* parent)
    : QLabel(parent), role_(role), color_(color), bold_(bold) {
  restyle();
  connect(&look(), &Look::changed, this, [this] { restyle(); });
}

void TextLabel::restyle() {
  const QFont font = mono_      ? look().mono_font(role_)
                     : numbers_ ? look().number_font(role_, bold_)
                                : look().font(role_, bold_);
  // A style sheet of its own, because the application's sheet outranks a widget's font and palette.
  setStyleSheet(QStringLiteral("color:%1;font-size:%2px;font-weight:%3;font-family:'%4';background:transparent;")
                    .arg(theme()[color_].name())
                    .arg(font.pixelSize())
                    .arg(bold_ ? QStringLiteral("bold") : QStringLiteral("normal"), font.family()));
  setFont(font);
  relayout();
}

void TextLabel::set_elided(bool elided) {
  elided_ = elided;
  if (elided) setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  relayout();
}

void TextLabel::set_shrinking() {
  set_elided(true);
  setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Preferred);
}

QSize TextLabel::sizeHint() const {
  return elided_ ? QSize(fontMetrics().horizontalAdvance(full_text_) + 1, fontMetrics().height()) : QLabel::sizeHint();
}

void TextLabel::set_numbers(bool numbers) {
  numbers_ = numbers;
  restyle();
}

void TextLabel::set_mono(bool mono) {
  mono_ = mono;
  restyle();
}

void TextLabel::set_color(Token color) {
  if (color == color_) return;
  color_ = color;
  restyle();
}

void TextLabel::set_full_text(const QString& text) {
  if (text == full_text_) return;
  full_text_ = text;
  setAccessibleName(text);
  relayout();
  if (elided_) updateGeometry();
}

void TextLabel::relayout() {
  if (!elided_) {
    if (!full_text_.isEmpty() || !text().isEmpty()) setText(wordWrap() ? breakable(full_text_) : full_text_);
    return;
  }
  const QString shown = fontMetrics().elidedText(full_text_, Qt::ElideRight, std::max(0, width()));
  setText(shown);
  setToolTip(shown == full_text_ ? QString() : full_text_);
}

QSize TextLabel::minimumSizeHint() const {
  return elided_ ? QSize(0, fontMetrics().height()) : QLabel::minimumSizeHint();
}

void TextLabel::resizeEvent(QResizeEvent* event) {
  QLabel::resizeEvent(event);
  if (elided_) relayout();
}

StatePill::StatePill(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
  connect(&look(), &Look::changed, this, [this] { updateGeometry(); });
}

void StatePill::set_state(Glyph glyph, const QString& word, Token color, Token ground) {
  glyph_ = glyph;
  word_ = word;
  color_ = color;
  ground_ = ground;
  setAccessibleName(tr("State: %1").arg(word));
  updateGeometry();
  update();
}

QSize StatePill::sizeHint() const {
  const QFontMetrics m(look().font(TextRole::secondary));
  return {m.horizontalAdvance(word_) + metrics().scaled(11) + 20, m.height() + 6};
}

void StatePill::paintEvent(QPaintEvent*) {
  if (word_.isEmpty()) return;
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(theme()[ground_]);
  painter.drawRoundedRect(rect(), 4, 4);
  const double side = metrics().scaled(11);
  paint_glyph(painter, glyph_, QRectF(7, (height() - side) / 2, side, side), theme()[color_]);
  painter.setFont(look().font(TextRole::secondary));
  painter.setPen(theme()[color_]);
  painter.drawText(rect().adjusted(static_cast<int>(side) + 12, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, word_);
}

ThinProgress::ThinProgress(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName(tr("Progress"));
}

void ThinProgress::set(double fraction, Token color) {
  if (fraction == fraction_ && color == color_) return;
  fraction_ = fraction;
  color_ = color;
  setAccessibleDescription(fraction < 0 ? tr("unknown") : tr("%1 percent").arg(qRound(fraction * 100)));
  update();
}

void ThinProgress::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  const QRectF track(0, (height() - 6) / 2.0, width(), 6);
  painter.setBrush(theme()[Token::pressed]);
  painter.drawRoundedRect(track, 2, 2);
  if (fraction_ <= 0) return;
  painter.setClipRect(QRectF(track.left(), track.top(), track.width() * std::min(1.0, fraction_), 6));
  painter.setBrush(theme()[color_]);
  painter.drawRoundedRect(track, 2, 2);
}

void paint_swatch(QPainter& painter, const QRectF& box, std::int64_t run_number, bool shown) {
  painter.save();
  QPen pen(shown ? theme().run_color(run_number) : theme()[Token::off], 2.2, Qt::SolidLine, Qt::FlatCap);
  const QList<qreal> dash = run_dash(run_number);
  if (!dash.isEmpty()) pen.setDashPattern(dash);
  painter.setPen(pen);
  const double y = std::round(box.center().y());
  painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y));
  painter.restore();
}

void Swatch::set_run_number(std::int64_t number) {
  number_ = number;
  update();
}

void Swatch::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  paint_swatch(painter, QRectF(rect()).adjusted(1, 0, -1, 0), number_);
}

void scale_icon(QAbstractButton* button, double at_13px) {
  const auto resize = [button, at_13px] { button->setIconSize(QSize(1, 1) * metrics().scaled(at_13px)); };
  resize();
  QObject::connect(&look(), &Look::changed, button, resize);
}

QFrame* make_line(Qt::Orientation orientation, QWidget* parent) {
  auto* line = new QFrame(parent);
  line->setObjectName(QStringLiteral("line"));
  if (orientation == Qt::Horizontal)
    line->setFixedHeight(1);
  else
    line->setFixedWidth(1);
  return line;
}

QPushButton* make_button(const QString& text, const QString& icon_name, QWidget* parent) {
  auto* button = new QPushButton(text, parent);
  if (!icon_name.isEmpty()) button->setIcon(icon(icon_name));
  button->setAccessibleName(QString(text).remove(QLatin1Char('&')));
  button->setSizePolicy(QSizePolicy::Minimum, QSizePolicy::Fixed);
  return button;
}

void make_primary(QPushButton* button) { button->setProperty("primary", true); }

Notice::Notice(QWidget* parent) : QWidget(parent) {
  auto* column = new QVBoxLayout(this);
  column->addStretch(2);
  fact_ = new TextLabel(TextRole::title, Token::text, true, this);
  help_ = new TextLabel(TextRole::body, Token::text2, false, this);
  button_ = make_button({}, {}, this);
  make_primary(button_);
  for (TextLabel* label : {fact_, help_}) {
    label->setAlignment(Qt::AlignCenter);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    column->addWidget(label);
  }
  help_->setContentsMargins(40, 6, 40, 12);
  auto* row = new QHBoxLayout;
  row->addStretch();
  row->addWidget(button_);
  row->addStretch();
  column->addLayout(row);
  column->addStretch(3);
}

void Notice::set_texts(const QString& fact, const QString& help, const QString& button) {
  fact_->set_full_text(fact);
  help_->set_full_text(help);
  button_->setText(button);
  button_->setAccessibleName(button);
  button_->setVisible(!button.isEmpty());
}

}  // namespace stacklab::ui

#include <moc_widgets.cpp>
