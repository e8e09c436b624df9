#include "ui/models/run_columns.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <cmath>

#include "engine/config/fields.h"
#include "ui/models/state_look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

using Kind = RunColumn::Kind;

QString tr(const char* text) { return QCoreApplication::translate("run_columns", text); }
QString text(const std::string& s) { return QString::fromStdString(s); }

void flatten(const QJsonObject& object, const QString& prefix, QHash<QString, QString>& into) {
  for (auto it = object.begin(); it != object.end(); ++it) {
    const QString key = prefix + it.key();
    const QJsonValue value = it.value();
    if (value.isObject()) {
      flatten(value.toObject(), key + QLatin1Char('.'), into);
    } else if (value.isDouble()) {
      const double number = value.toDouble();
      into[key] = number == std::floor(number) && std::abs(number) < 1e15
                      ? QString::number(static_cast<qlonglong>(number))
                      : QString::number(number, 'g', 6);
    } else if (value.isBool()) {
      into[key] = value.toBool() ? QStringLiteral("true") : QStringLiteral("false");
    } else {
      into[key] = value.toString();
    }
  }
}

bool has_speed(const RunSummary& run) { return run.tokens_per_second > 0 || (run.seconds > 0 && run.tokens > 0); }
double speed(const RunSummary& run) {
  return run.tokens_per_second > 0 ? run.tokens_per_second : static_cast<double>(run.tokens) / run.seconds;
}

QString rate(const RunRow& row) {
  const bool adamw = row.config.value(QStringLiteral("optim.matrices")) == QLatin1String("adamw");
  return row.config.value(adamw ? QStringLiteral("optim.adam_lr") : QStringLiteral("optim.muon_lr"));
}

CellText loss_text(const std::optional<double>& loss) {
  if (!loss) return {missing(), false, true};
  return {format_loss(*loss), !std::isfinite(*loss), false};
}

}  // namespace

RunRowPtr make_run_row(RunSummary summary) {
  auto row = std::make_shared<RunRow>();
  flatten(QJsonDocument::fromJson(QByteArray::fromStdString(summary.config_json)).object(), {}, row->config);
  row->summary = std::move(summary);
  return row;
}

const std::vector<RunColumn>& run_columns() {
  static const std::vector<RunColumn> columns = {
      {"name", tr("Name"), tr("Name; line of its curves"), "name", Kind::name, 226},
      {"state", tr("State"), tr("What it is doing or how it ended, and why"), "state", Kind::state, 176},
      {"progress", tr("Progress"), tr("Steps done of all"), "progress", Kind::progress, 92},
      {"eta", tr("ETA / took"), tr("Time left at its speed so far, or time spent training"), "seconds", Kind::number,
       92},
      {"loss", tr("Loss"), tr("Last training loss, nats per token"), "loss", Kind::number, 58},
      {"val_loss", tr("Val loss"), tr("Last loss on held-out documents, nats per token"), "val_loss", Kind::number, 70},
      {"tokens_per_second", tr("tok/s"), tr("Tokens per second of its last process, or over the whole run"),
       "tokens_per_second", Kind::number, 62},
      {"tokens", tr("Tokens"), tr("Tokens seen in training"), "tokens", Kind::number, 70},
      {"lr", tr("LR"), tr("Peak learning rate of the hidden matrices"), "lr", Kind::number, 62},
      {"id", tr("Config"), tr("Hash of the config"), "id", Kind::hash, 82},
      {"commit", tr("Commit"), tr("Build that trained it last"), "commit", Kind::hash, 72},
      {"corpus_sha256", tr("Corpus"), tr("Hash of the corpus"), "corpus_sha256", Kind::hash, 82, false},
      {"tags", tr("Tags"), tr("Tags; double-click to edit"), "", Kind::tags, 118},
      {"note", tr("Notes"), tr("Notes; double-click to edit"), "note", Kind::note, 130},
      {"created", tr("Created"), tr("When it was made"), "created", Kind::number, 108, false},
      {"seconds", tr("Time"), tr("Time spent training"), "seconds", Kind::number, 84, false},
      {"step", tr("Step"), tr("Steps done"), "step", Kind::number, 66, false},
      {"parameters", tr("Parameters"), tr("Of its model"), "parameters", Kind::number, 84, false},
      {"peak_bytes", tr("Memory"), tr("Most memory used"), "peak_bytes", Kind::number, 74, false},
      {"number", tr("Number"), tr("Place in the store"), "number", Kind::number, 60, false}};
  return columns;
}

QStringList config_column_ids() {
  QStringList ids;
  for (const FieldInfo& field : field_infos())
    if (field.key != "name") ids << text(field.key);
  return ids;
}

RunColumn run_column(const QString& id) {
  for (const RunColumn& column : run_columns())
    if (column.id == id) return column;
  static const auto fields = field_infos();
  for (const FieldInfo& field : fields)
    if (text(field.key) == id && field.key != "name")
      return {id,
              id.mid(id.lastIndexOf(QLatin1Char('.')) + 1),
              tr("%1: %2").arg(id, QString::fromUtf8(field.help.data(), static_cast<qsizetype>(field.help.size()))),
              id,
              field.type == "text" ? Kind::text : Kind::number,
              90};
  return {};
}

QStringList default_run_columns() {
  QStringList ids;
  for (const RunColumn& column : run_columns())
    if (column.shown) ids << column.id;
  return ids;
}

CellText cell_text(const RunColumn& column, const RunRow& row, double now) {
  const RunSummary& run = row.summary;
  const QString& id = column.id;
  const auto some = [](const QString& s) { return CellText{s.isEmpty() ? missing() : s, false, s.isEmpty()}; };
  if (id == QLatin1String("name")) return {text(run.name)};
  if (id == QLatin1String("state")) return {look_of(run.state, run.stalled).word};
  if (id == QLatin1String("progress")) {
    const double done = fraction_done(run);
    if (run.state == RunState::finished) return {tr("done")};
    return done < 0 || run.state == RunState::queued ? CellText{missing(), false, true}
                                                     : CellText{format_percent(done)};
  }
  if (id == QLatin1String("eta")) {
    const double left = seconds_left(run);
    if (left >= 0) return {tr("%1 left").arg(format_duration(left))};
    return run.state == RunState::finished && run.seconds > 0 ? CellText{format_duration(run.seconds)}
                                                              : CellText{missing(), false, true};
  }
  if (id == QLatin1String("loss")) return loss_text(run.last_loss);
  if (id == QLatin1String("val_loss")) return loss_text(run.val_loss);
  if (id == QLatin1String("tokens_per_second")) return some(has_speed(run) ? format_compact(speed(run)) : QString());
  if (id == QLatin1String("tokens"))
    return some(run.tokens > 0 ? format_amount(static_cast<double>(run.tokens)) : QString());
  if (id == QLatin1String("lr")) {
    const QString value = rate(row);
    return some(value.isEmpty() ? QString() : format_rate(value.toDouble()));
  }
  if (id == QLatin1String("id")) return {text(run.id).left(8)};
  if (id == QLatin1String("commit")) return some(text(run.commit).left(7));
  if (id == QLatin1String("corpus_sha256")) return some(text(run.corpus_sha256).left(8));
  if (id == QLatin1String("tags")) {
    QStringList tags;
    for (const std::string& tag : run.tags) tags << text(tag);
    return {tags.join(QLatin1Char(' '))};
  }
  if (id == QLatin1String("note")) return {text(run.note).section(QLatin1Char('\n'), 0, 0)};
  if (id == QLatin1String("created")) return {format_clock(run.created)};
  if (id == QLatin1String("seconds")) return some(run.seconds > 0 ? format_duration(run.seconds) : QString());
  if (id == QLatin1String("step")) return {format_count(run.step)};
  if (id == QLatin1String("parameters")) return some(run.parameters > 0 ? format_count(run.parameters) : QString());
  if (id == QLatin1String("peak_bytes")) return some(run.peak_bytes > 0 ? format_bytes(run.peak_bytes) : QString());
  if (id == QLatin1String("number")) return {format_count(run.number)};
  Q_UNUSED(now);
  return some(row.config.value(id));
}

QString cell_tip(const RunColumn& column, const RunRow& row, double now) {
  const RunSummary& run = row.summary;
  const QString& id = column.id;
  const auto number = [](double v) { return QString::number(v, 'g', 17); };
  const QString at =
      tr("step %1, %2 tokens, %3").arg(format_count(run.step), format_count(run.tokens), format_duration(run.seconds));
  if (id == QLatin1String("name")) return text(run.name);
  if (id == QLatin1String("state")) {
    const QString word = look_of(run.state, run.stalled).word, why = cause_of({run, {}, -1}, now);
    return why.isEmpty() ? word : tr("%1: %2").arg(word, why);
  }
  if (id == QLatin1String("progress") || id == QLatin1String("eta"))
    return tr("step %1 of %2 in %3")
        .arg(format_count(run.step), format_count(run.total_steps), format_duration(run.seconds));
  if (id == QLatin1String("loss") && run.last_loss) return number(*run.last_loss) + QLatin1Char('\n') + at;
  if (id == QLatin1String("val_loss") && run.val_loss) return number(*run.val_loss) + QLatin1Char('\n') + at;
  if (id == QLatin1String("tokens_per_second") && has_speed(run)) return number(speed(run)) + QLatin1Char('\n') + at;
  if (id == QLatin1String("tokens")) return at;
  if (id == QLatin1String("lr")) return rate(row);
  if (id == QLatin1String("id")) return text(run.id);
  if (id == QLatin1String("commit"))
    return run.dirty ? tr("%1, with changes that are in no commit").arg(text(run.commit)) : text(run.commit);
  if (id == QLatin1String("corpus_sha256")) return text(run.corpus_sha256);
  if (id == QLatin1String("note")) return text(run.note);
  if (id == QLatin1String("created"))
    return QLocale().toString(QDateTime::fromMSecsSinceEpoch(static_cast<qint64>(run.created * 1000)),
                              QLocale::LongFormat);
  return cell_text(column, row, now).text;
}

}  // namespace stacklab::ui
