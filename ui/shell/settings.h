// What the window remembers between starts: a small JSON file of the user's, written whole, on another thread. A file
// that cannot be read is set aside.
#pragma once

#include <QByteArray>
#include <QJsonObject>
#include <QObject>
#include <QString>
#include <QStringList>
#include <QTimer>
#include <functional>

#include "ui/shell/layouts.h"
#include "ui/theme/look.h"

class QThreadPool;

namespace stacklab::ui {

struct Recent {
  enum class Kind { workspace, config };
  Kind kind = Kind::workspace;
  QString path;
  bool operator==(const Recent&) const = default;
};

struct Settings {
  static constexpr int version = 2;  // 1 is read too; its layout is forgotten

  ThemeMode theme = ThemeMode::follow;
  int zoom = 100;
  double smoothing = 0.86;
  QStringList windows;       // workspaces that were open last; one may be there twice
  QStringList quiet_kinds;   // kinds of events that make no notification
  QJsonObject shortcuts;     // id of an action -> keys
  QJsonObject read_notices;  // workspace -> what has been read there
  QList<Recent> recents;     // the last one first

  static QString default_file();
  // Broken, or of another version: the file is renamed to <file>.broken and the defaults are used; says so in `note`.
  static Settings load(const QString& file, QString* note = nullptr);
  QByteArray to_bytes() const;
  bool save(const QString& file) const;
};

// Reads a JSON object of one of these versions. A broken file, or one of another version, is renamed to <file>.broken;
// `note` says so. An empty object: nothing to be had.
QJsonObject read_versioned(const QString& file, std::initializer_list<int> versions, QString* note);

// Writes files one after another on a thread of its own: the window never waits for a disk.
class FileKeeper : public QObject {
  Q_OBJECT
 public:
  explicit FileKeeper(QObject* parent = nullptr);
  ~FileKeeper() override;  // waits until all is written
  // What `bytes` says when the time comes is written, soon; empty paths are not written at all.
  void keep(const QString& path, std::function<QByteArray()> bytes);
  // Writes now what waits; then calls done on this thread.
  void flush(std::function<void()> done = {});

 signals:
  void failed(const QString& what);  // once for each path until it works again

 private:
  void start();

  QMap<QString, std::function<QByteArray()>> waiting_;
  QStringList failing_;
  QTimer timer_;
  QThreadPool* pool_;
};

// The settings of a program, shared by its windows.
class SettingsKeeper : public QObject {
  Q_OBJECT
 public:
  explicit SettingsKeeper(const QString& file, QObject* parent = nullptr);
  const Settings& settings() const { return settings_; }
  const QString& file() const { return file_; }
  // What loading had to say; told once.
  QString take_note() { return std::exchange(note_, {}); }
  void change(const std::function<void(Settings&)>& how);
  const Layouts& layouts() const { return layouts_; }
  void change_layouts(const std::function<void(Layouts&)>& how);
  // Puts a workspace or config at the front of what was used last.
  void add_recent(const Recent& recent);
  FileKeeper* files() { return &files_; }

 signals:
  void changed();

 private:
  QString file_, note_;
  Settings settings_;
  Layouts layouts_;
  FileKeeper files_;
};

}  // namespace stacklab::ui
