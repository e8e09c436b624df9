#include "ui/shell/settings.h"

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QPointer>
#include <QSaveFile>
#include <QStandardPaths>
#include <QThreadPool>

namespace stacklab::ui {
namespace {

constexpr int most_windows = 12;
constexpr int save_after_ms = 800;
constexpr qint64 most_bytes = 4 << 20;
constexpr int most_recents = 30;

QString tr(const char* text) { return QCoreApplication::translate("settings", text); }

// Empty: written.
QString write_whole(const QString& file, const QByteArray& bytes) {
  QDir().mkpath(QFileInfo(file).path());
  QSaveFile out(file);
  if (out.open(QIODevice::WriteOnly) && out.write(bytes) == bytes.size() && out.commit()) return {};
  return tr("%1 cannot be written (%2): what you change now is forgotten with the window.")
      .arg(QDir::toNativeSeparators(file), out.errorString());
}

}  // namespace

QJsonObject read_versioned(const QString& file, std::initializer_list<int> versions, QString* note) {
  QFile in(file);
  if (file.isEmpty() || !in.exists()) return {};
  QJsonObject root;
  if (in.size() <= most_bytes && in.open(QIODevice::ReadOnly)) root = QJsonDocument::fromJson(in.readAll()).object();
  in.close();
  const int version = root["version"].toInt();
  if (std::find(versions.begin(), versions.end(), version) != versions.end()) return root;
  const QString aside = file + QStringLiteral(".broken");
  QFile::remove(aside);
  const bool moved = QFile::rename(file, aside);
  if (note)
    *note = moved ? tr("%1 could not be read and was set aside as %2.").arg(file, QFileInfo(aside).fileName())
                  : tr("%1 could not be read.").arg(file);
  return {};
}

QString Settings::default_file() {
  return QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation) +
         QStringLiteral("/stacklab/workbench.json");
}

Settings Settings::load(const QString& file, QString* note) {
  Settings settings;
  const QJsonObject root = read_versioned(file, {1, version}, note);
  if (root.isEmpty()) return settings;
  settings.theme = theme_mode_from_string(root["theme"].toString());
  settings.zoom = qBound(70, root["zoom"].toInt(100), 200);
  settings.smoothing = qBound(0.0, root["smoothing"].toDouble(settings.smoothing), 0.99);
  for (const QJsonValue& path : root["windows"].toArray())
    if (!path.toString().isEmpty() && settings.windows.size() < most_windows) settings.windows << path.toString();
  for (const QJsonValue& kind : root["quiet_kinds"].toArray()) settings.quiet_kinds << kind.toString();
  settings.shortcuts = root["shortcuts"].toObject();
  settings.read_notices = root["read_notices"].toObject();
  for (const QJsonValue& value : root["recents"].toArray()) {
    const QJsonObject one = value.toObject();
    const QString kind = one["kind"].toString(), path = one["path"].toString();
    if (path.isEmpty() || (kind != QLatin1String("workspace") && kind != QLatin1String("config"))) continue;
    settings.recents.append({kind == QLatin1String("config") ? Recent::Kind::config : Recent::Kind::workspace, path});
    if (settings.recents.size() >= most_recents) break;
  }
  return settings;
}

QByteArray Settings::to_bytes() const {
  QJsonArray recent;
  for (const Recent& one : recents)
    recent.append(QJsonObject{{"kind", one.kind == Recent::Kind::config ? "config" : "workspace"}, {"path", one.path}});
  return QJsonDocument(QJsonObject{{"version", version},
                                   {"theme", to_string(theme)},
                                   {"zoom", zoom},
                                   {"smoothing", smoothing},
                                   {"windows", QJsonArray::fromStringList(windows)},
                                   {"quiet_kinds", QJsonArray::fromStringList(quiet_kinds)},
                                   {"shortcuts", shortcuts},
                                   {"read_notices", read_notices},
                                   {"recents", recent}})
      .toJson();
}

bool Settings::save(const QString& file) const { return file.isEmpty() || write_whole(file, to_bytes()).isEmpty(); }

FileKeeper::FileKeeper(QObject* parent) : QObject(parent), pool_(new QThreadPool(this)) {
  pool_->setMaxThreadCount(1);  // in the order in which they were asked for
  timer_.setSingleShot(true);
  timer_.setInterval(save_after_ms);
  connect(&timer_, &QTimer::timeout, this, &FileKeeper::start);
}

FileKeeper::~FileKeeper() {
  start();
  pool_->waitForDone();
}

void FileKeeper::keep(const QString& path, std::function<QByteArray()> bytes) {
  if (path.isEmpty()) return;
  waiting_[path] = std::move(bytes);
  if (!timer_.isActive()) timer_.start();
}

void FileKeeper::start() {
  timer_.stop();
  const QPointer<FileKeeper> self(this);
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    pool_->start([self, path = it.key(), bytes = it.value()()] {
      const QString error = write_whole(path, bytes);
      QMetaObject::invokeMethod(qApp, [self, path, error] {
        if (!self) return;
        const bool known = self->failing_.contains(path);
        if (error.isEmpty()) {
          self->failing_.removeAll(path);
        } else if (!known) {
          self->failing_.append(path);
          emit self->failed(error);
        }
      });
    });
  }
  waiting_.clear();
}

void FileKeeper::flush(std::function<void()> done) {
  start();
  if (!done) return;
  const QPointer<FileKeeper> self(this);
  pool_->start([self, done = std::move(done)] {
    QMetaObject::invokeMethod(qApp, [self, done] {
      if (self) done();
    });
  });
}

SettingsKeeper::SettingsKeeper(const QString& file, QObject* parent)
    : QObject(parent), file_(file), settings_(Settings::load(file, &note_)) {
  QString note;
  layouts_ = Layouts::load(Layouts::file_beside(file), &note);
  if (!note.isEmpty()) note_ = note_.isEmpty() ? note : note_ + QLatin1Char(' ') + note;
}

void SettingsKeeper::change(const std::function<void(Settings&)>& how) {
  how(settings_);
  files_.keep(file_, [this] { return settings_.to_bytes(); });
  emit changed();
}

void SettingsKeeper::change_layouts(const std::function<void(Layouts&)>& how) {
  how(layouts_);
  files_.keep(Layouts::file_beside(file_), [this] { return layouts_.to_bytes(); });
  emit changed();
}

void SettingsKeeper::add_recent(const Recent& recent) {
  change([&](Settings& s) {
    s.recents.removeAll(recent);
    s.recents.prepend(recent);
    while (s.recents.size() > most_recents) s.recents.removeLast();
  });
}

}  // namespace stacklab::ui

#include <moc_settings.cpp>
