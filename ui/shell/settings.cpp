#include "ui/shell/settings.h"

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSaveFile>
#include <QStandardPaths>

namespace stacklab::ui {

QString Settings::default_file() {
  return QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation) +
         QStringLiteral("/stacklab/workbench.json");
}

Settings Settings::load(const QString& file, QString* note) {
  Settings settings;
  QFile in(file);
  if (file.isEmpty() || !in.exists()) return settings;
  QJsonObject root;
  if (in.open(QIODevice::ReadOnly)) root = QJsonDocument::fromJson(in.read(1 << 20)).object();
  in.close();
  if (root["version"].toInt() != version) {
    const QString aside = file + QStringLiteral(".broken");
    QFile::remove(aside);
    const bool moved = QFile::rename(file, aside);
    if (note)
      *note = moved
                  ? QCoreApplication::translate("settings",
                                                "The window's settings could not be read and were set aside as %1.")
                        .arg(aside)
                  : QCoreApplication::translate("settings", "The window's settings (%1) could not be read.").arg(file);
    return settings;
  }
  settings.theme = theme_mode_from_string(root["theme"].toString());
  settings.zoom = qBound(70, root["zoom"].toInt(100), 200);
  settings.smoothing = qBound(0.0, root["smoothing"].toDouble(settings.smoothing), 0.99);
  settings.geometry = QByteArray::fromBase64(root["geometry"].toString().toLatin1());
  settings.layout = QByteArray::fromBase64(root["layout"].toString().toLatin1());
  return settings;
}

bool Settings::save(const QString& file) const {
  if (file.isEmpty()) return true;
  QDir().mkpath(QFileInfo(file).path());
  const QJsonObject root{{"version", version},
                         {"theme", to_string(theme)},
                         {"zoom", zoom},
                         {"smoothing", smoothing},
                         {"geometry", QString::fromLatin1(geometry.toBase64())},
                         {"layout", QString::fromLatin1(layout.toBase64())}};
  QSaveFile out(file);
  const QByteArray bytes = QJsonDocument(root).toJson();
  return out.open(QIODevice::WriteOnly) && out.write(bytes) == bytes.size() && out.commit();
}

}  // namespace stacklab::ui
