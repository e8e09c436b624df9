// Whether what is written in a widget can be read: no label, button or box is smaller than its words.
#pragma once

#include <QAbstractButton>
#include <QComboBox>
#include <QLabel>

#include "tests/ui/ui_test.h"
#include "ui/theme/widgets.h"

namespace stacklab::ui {

// What is cut off within what is shown now; a label that elides says so with dots and has the whole as its tip.
inline QStringList clipped_words(const QWidget* in) {
  QStringList cut;
  for (const QWidget* widget : in->findChildren<QWidget*>()) {
    if (!widget->isVisible()) continue;
    QString words;
    QSize needed = widget->minimumSizeHint();
    if (const auto* label = qobject_cast<const QLabel*>(widget)) {
      words = label->text();
      if (label->wordWrap()) needed = {0, label->heightForWidth(label->width())};
      // Between its lines there is room that nobody misses.
      needed.setHeight(std::min(needed.height(), label->wordWrap() ? needed.height() : label->fontMetrics().height()));
    } else if (const auto* button = qobject_cast<const QAbstractButton*>(widget)) {
      words = button->text();
      needed = {button->fontMetrics().horizontalAdvance(words.section(QLatin1Char('\n'), 0, 0)),
                button->fontMetrics().height()};
      // Written from top to bottom.
      if (button->sizeHint().height() > button->sizeHint().width()) needed.transpose();
    } else if (const auto* box = qobject_cast<const QComboBox*>(widget)) {
      words = box->currentText();
      needed = {box->minimumSizeHint().width(), box->fontMetrics().height()};
    }
    // Fonts may stand a pixel over the line that they ask for.
    if (words.isEmpty() || (widget->width() >= needed.width() && widget->height() + 1 >= needed.height())) continue;
    cut << QStringLiteral("%1 \"%2\": %3x%4 of %5x%6")
               .arg(QLatin1String(widget->metaObject()->className()), words.left(60))
               .arg(widget->width())
               .arg(widget->height())
               .arg(needed.width())
               .arg(needed.height());
  }
  return cut;
}

}  // namespace stacklab::ui
