// Puts the theme on the application: palette, style sheet, fonts and the lengths that follow from the font's height.
#pragma once

#include <QFont>
#include <QObject>

#include "ui/theme/theme.h"

namespace stacklab::ui {

enum class ThemeMode { follow, light, dark };
QString to_string(ThemeMode mode);
ThemeMode theme_mode_from_string(const QString& word);

// Lengths in device-independent pixels. All follow from the font's height f, so that text zoom works.
struct Metrics {
  int f = 18;
  int control() const { return f + 10; }
  int small_control() const { return f + 6; }
  int row() const { return f + 9; }
  int panel_header() const { return f + 11; }
  int tab() const { return f + 12; }
  int tool_row() const { return f + 20; }
  int page_header() const { return f + 30; }
  int menu() const { return f + 14; }
  int status() const { return f + 10; }
  int scaled(double at_13px) const { return static_cast<int>(at_13px * f / 18.0 + 0.5); }
};

enum class TextRole { title, big, body, secondary, small };

class Look : public QObject {
  Q_OBJECT
 public:
  // The one of this application; made on first use, after QApplication.
  static Look& instance();

  void set_mode(ThemeMode mode);
  ThemeMode mode() const { return mode_; }
  void set_zoom(int percent);  // clamped to 70..200
  int zoom() const { return zoom_; }
  // Replaces the size that the desktop gives, so that pictures look the same everywhere.
  void set_base_pixel_size(int pixels);

  const Theme& theme() const { return theme_; }
  QColor color(Token token) const { return theme_[token]; }
  const Metrics& metrics() const { return metrics_; }
  QFont font(TextRole role, bool bold = false) const;
  // For columns of numbers: the system font if its digits are equally wide, else the fixed one.
  QFont number_font(TextRole role, bool bold = false) const;
  QFont mono_font(TextRole role) const;

 signals:
  void changed();  // theme, zoom or font

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  Look();
  void apply();

  ThemeMode mode_ = ThemeMode::follow;
  int zoom_ = 100;
  int base_pixels_ = 13;
  bool desktop_is_dark_ = false;
  bool applying_ = false;
  bool tabular_digits_ = true;
  QFont system_font_;
  Theme theme_;
  Metrics metrics_;
};

inline Look& look() { return Look::instance(); }
inline const Theme& theme() { return Look::instance().theme(); }
inline const Metrics& metrics() { return Look::instance().metrics(); }

}  // namespace stacklab::ui
