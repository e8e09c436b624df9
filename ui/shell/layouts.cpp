#include "ui/shell/layouts.h"

#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <algorithm>

#include "ui/shell/settings.h"

namespace stacklab::ui {

QJsonObject Arrangement::to_json() const {
  return {{"page", page}, {"docks", QString::fromLatin1(docks.toBase64())}, {"inspector", inspector}, {"list", list}};
}

Arrangement Arrangement::from_json(const QJsonObject& from) {
  return {from["page"].toString(), QByteArray::fromBase64(from["docks"].toString().toLatin1()),
          from["inspector"].toBool(true), from["list"].toBool(true)};
}

QString Layouts::file_beside(const QString& settings_file) {
  return settings_file.isEmpty() ? QString() : QFileInfo(settings_file).path() + QStringLiteral("/layout.json");
}

Layouts Layouts::load(const QString& file, QString* note) {
  const QJsonObject root = read_versioned(file, {version}, note);
  Layouts layouts;
  layouts.geometry = QByteArray::fromBase64(root["geometry"].toString().toLatin1());
  layouts.last = Arrangement::from_json(root["last"].toObject());
  for (const QJsonValue& value : root["perspectives"].toArray()) {
    const QString name = value.toObject()["name"].toString();
    if (name.isEmpty() || layouts.find(name) || layouts.perspectives.size() >= most_perspectives) continue;
    layouts.perspectives.append({name, Arrangement::from_json(value.toObject())});
  }
  return layouts;
}

QByteArray Layouts::to_bytes() const {
  QJsonArray named;
  for (const Perspective& one : perspectives) {
    QJsonObject object = one.arrangement.to_json();
    object["name"] = one.name;
    named.append(object);
  }
  return QJsonDocument(QJsonObject{{"version", version},
                                   {"geometry", QString::fromLatin1(geometry.toBase64())},
                                   {"last", last.to_json()},
                                   {"perspectives", named}})
      .toJson();
}

const Perspective* Layouts::find(const QString& name) const {
  const auto it = std::find_if(perspectives.begin(), perspectives.end(), [&](const auto& p) { return p.name == name; });
  return it == perspectives.end() ? nullptr : &*it;
}

}  // namespace stacklab::ui
