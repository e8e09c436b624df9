// What the window remembers between starts: a small JSON file of the user's, written whole. A file that cannot be read
// is set aside.
#pragma once

#include <QByteArray>
#include <QString>

#include "ui/theme/look.h"

namespace stacklab::ui {

struct Settings {
  static constexpr int version = 1;

  ThemeMode theme = ThemeMode::follow;
  int zoom = 100;
  double smoothing = 0.86;
  QByteArray geometry, layout;

  static QString default_file();
  // Broken, or of another version: the file is renamed to <file>.broken and the defaults are used; says so in `note`.
  static Settings load(const QString& file, QString* note = nullptr);
  bool save(const QString& file) const;
};

}  // namespace stacklab::ui
