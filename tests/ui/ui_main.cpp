#include <clocale>

#include <QDir>
#include <QLocale>

#include "tests/ui/ui_test.h"
#include "ui/theme/look.h"

namespace stacklab::ui {

void keep_picture(const QImage& image, const QString& name) {
  const QString folder = qEnvironmentVariable("STACKLAB_PICTURES");
  if (folder.isEmpty()) return;
  QDir().mkpath(folder);
  image.save(folder + QLatin1Char('/') + name + QStringLiteral(".png"));
}

}  // namespace stacklab::ui

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  if (qEnvironmentVariableIsEmpty("STACKLAB_TEST_LOCALE"))
    QLocale::setDefault(QLocale(QLocale::English, QLocale::UnitedStates));
  QApplication app(argc, argv);
  std::setlocale(LC_NUMERIC, "C");
  app.setQuitOnLastWindowClosed(false);
  stacklab::ui::look().set_base_pixel_size(13);
  return RUN_ALL_TESTS();
}
