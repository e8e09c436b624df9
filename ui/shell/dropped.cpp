#include "ui/shell/dropped.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QJsonDocument>
#include <QJsonObject>
#include <QRegularExpression>
#include <QStringDecoder>

namespace stacklab::ui {
namespace {

constexpr qint64 first_bytes = 64 << 10, most_json = 4 << 20;

QString tr(const char* text) { return QCoreApplication::translate("dropped", text); }

bool is_text(const QByteArray& bytes, bool whole) {
  if (bytes.isEmpty() || bytes.contains('\0')) return false;
  QStringDecoder decode(QStringDecoder::Utf8, whole ? QStringDecoder::Flag::Default : QStringDecoder::Flag::Stateless);
  QByteArray checked = bytes;
  // A cut may fall within a letter.
  if (!whole)
    for (int i = 0; i < 3 && !checked.isEmpty() && (static_cast<unsigned char>(checked.back()) & 0x80); ++i)
      checked.chop(1);
  const QString text = decode(checked);
  return !decode.hasError() && !text.contains(QChar::ReplacementCharacter);
}

Dropped::Kind kind_of_json(const QJsonObject& root) {
  const QJsonObject model = root["model"].toObject();
  if (model.contains(QLatin1String("merges")) || model.contains(QLatin1String("vocab")))
    return Dropped::Kind::tokenizer;
  for (const char* section : {"model", "optim", "data", "train", "run"})
    if (root[QLatin1String(section)].isObject()) return Dropped::Kind::config;
  return Dropped::Kind::unknown;
}

bool ends_with_any(const QString& name, std::initializer_list<const char*> endings) {
  for (const char* ending : endings)
    if (name.endsWith(QLatin1String(ending), Qt::CaseInsensitive)) return true;
  return false;
}

// As long as a sentence can bear.
QString short_name(const QString& path) {
  const QString name = QFileInfo(path).fileName();
  return name.size() <= 120 ? name : name.left(60) + QChar(0x2026) + name.right(59);
}

void look_into_folder(const QDir& dir, Dropped& to) {
  static const QRegularExpression step_name(QStringLiteral("^ckpt_step(\\d+)$"));
  static const QRegularExpression run_name(QStringLiteral("-([0-9a-f]{12})$"));
  if (dir.exists(QStringLiteral("stacklab.db"))) {
    to.kind = Dropped::Kind::workspace;
  } else if (const auto step = step_name.match(dir.dirName()); step.hasMatch()) {
    to.kind = Dropped::Kind::checkpoint;
    to.step = step.captured(1).toLongLong();
    const QString parent = QFileInfo(dir.absolutePath()).dir().dirName();
    if (const auto run = run_name.match(parent); run.hasMatch()) to.run = run.captured(1).toStdString();
  } else if (const auto run = run_name.match(dir.dirName());
             run.hasMatch() && !dir.entryList({QStringLiteral("ckpt_step*")}, QDir::Dirs).isEmpty()) {
    to.kind = Dropped::Kind::checkpoint;
    to.run = run.captured(1).toStdString();
  } else if (dir.exists(QStringLiteral("config.json")) &&
             !dir.entryList({QStringLiteral("*.safetensors")}, QDir::Files).isEmpty()) {
    to.kind = Dropped::Kind::model;
  }
}

}  // namespace

Dropped classify(const QString& path) {
  Dropped to;
  to.path = path;
  const QFileInfo info(path);
  if (!info.exists()) {
    to.kind = Dropped::Kind::missing;
    return to;
  }
  if (info.isDir()) {
    look_into_folder(QDir(info.absoluteFilePath()), to);
    return to;
  }
  to.bytes = info.size();
  const QString name = info.fileName();
  if (!info.isFile()) return to;  // a device or a pipe: reading could wait for ever
  if (name == QLatin1String("stacklab.db")) {
    to.kind = Dropped::Kind::workspace;
    to.path = info.absolutePath();
    return to;
  }
  if (ends_with_any(name, {".safetensors", ".gguf"})) {
    look_into_folder(info.absoluteDir(), to);
    if (to.kind != Dropped::Kind::checkpoint) to.kind = Dropped::Kind::model;
    return to;
  }
  if (ends_with_any(name, {".parquet", ".jsonl", ".jsonl.gz", ".jsonl.zst", ".txt.gz", ".txt.zst", ".zst", ".gz"})) {
    to.kind = Dropped::Kind::corpus;
    return to;
  }
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return to;
  if (name.endsWith(QLatin1String(".json"), Qt::CaseInsensitive)) {
    // A config that is not whole is a config still: reading it says what is wrong, and where.
    QJsonParseError error;
    const QJsonDocument document =
        to.bytes <= most_json ? QJsonDocument::fromJson(file.readAll(), &error) : QJsonDocument();
    to.kind = document.isObject()    ? kind_of_json(document.object())
              : to.bytes > most_json ? Dropped::Kind::tokenizer
                                     : Dropped::Kind::config;
    return to;
  }
  if (is_text(file.read(first_bytes), to.bytes <= first_bytes)) to.kind = Dropped::Kind::text;
  return to;
}

QString drop_hint(const QString& path) {
  const QString name = short_name(path);
  if (name.endsWith(QLatin1String(".json"), Qt::CaseInsensitive)) return tr("Start a run from %1").arg(name);
  return tr("See what can be done with %1").arg(name);
}

DropAnswer answer_for(const Dropped& dropped) {
  const QString name = short_name(dropped.path);
  switch (dropped.kind) {
    case Dropped::Kind::missing:
      return {tr("%1 is not there.").arg(name), tr("It may have been moved or renamed: %1").arg(dropped.path)};
    case Dropped::Kind::config:
      return {tr("Start a run from %1?").arg(name),
              tr("The config is checked first. A config that has been trained before goes on where it was.")};
    case Dropped::Kind::workspace:
      return {tr("Open the workspace %1?").arg(name), tr("It opens in a window of its own; this one stays as it is.")};
    case Dropped::Kind::checkpoint:
      return {tr("%1 is a checkpoint of a run that this workspace does not hold.").arg(name),
              tr("Open the workspace it belongs to: the folder with stacklab.db, two folders above. Chatting with a "
                 "checkpoint and starting from one are not built yet.")};
    case Dropped::Kind::model:
      return {tr("%1 holds the weights of a model.").arg(name),
              tr("Models of other programs cannot be opened yet: importing them is not built.")};
    case Dropped::Kind::tokenizer:
      return {tr("%1 is a tokenizer.").arg(name),
              tr("Take it into the workspace with:  stacklab tokenizer import \"%1\"").arg(dropped.path)};
    case Dropped::Kind::corpus:
    case Dropped::Kind::text:
      return {
          tr("Train a model on %1?").arg(name),
          tr("The text is copied into the workspace, a tokenizer is learnt from it, and it is turned into tokens; a "
             "part is held back for the test. Then training starts. Nothing leaves this computer.")};
    case Dropped::Kind::unknown:
      break;
  }
  return {tr("Nothing can be done with %1.").arg(name),
          tr("A config (JSON), a text, a checkpoint folder or a workspace can be dropped here.")};
}

}  // namespace stacklab::ui
