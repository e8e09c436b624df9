// Icons from resources/icons, painted in the theme's colours whatever the theme is when they are painted.
#pragma once

#include <QIcon>
#include <QString>

#include "ui/theme/theme.h"

namespace stacklab::ui {

// name without path and ".svg"; the file draws in black, which becomes `color` (accent where a button is checked).
QIcon icon(const QString& name, Token color = Token::text);
QPixmap icon_pixmap(const QString& name, int size, qreal device_pixel_ratio, const QColor& color);

}  // namespace stacklab::ui
