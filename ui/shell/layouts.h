// Where the window stood and what of it was shown; and the arrangements that the user has given a name. In a file of
// its own, so that a broken one costs no settings.
#pragma once

#include <QByteArray>
#include <QJsonObject>
#include <QList>
#include <QString>

namespace stacklab::ui {

struct Arrangement {
  QString page;      // by its name; empty: the one that is shown stays
  QByteArray docks;  // of QMainWindow; empty: as at first
  bool inspector = true, list = true;

  QJsonObject to_json() const;
  static Arrangement from_json(const QJsonObject& from);
  bool operator==(const Arrangement&) const = default;
};

struct Perspective {
  QString name;
  Arrangement arrangement;
  bool operator==(const Perspective&) const = default;
};

struct Layouts {
  static constexpr int version = 1;
  static constexpr int docks_version = 2;  // of what QMainWindow saves
  static constexpr int most_perspectives = 50;

  QByteArray geometry;
  Arrangement last;
  QList<Perspective> perspectives;

  static QString file_beside(const QString& settings_file);
  // As Settings::load: what cannot be read is set aside.
  static Layouts load(const QString& file, QString* note = nullptr);
  QByteArray to_bytes() const;
  const Perspective* find(const QString& name) const;
};

}  // namespace stacklab::ui
