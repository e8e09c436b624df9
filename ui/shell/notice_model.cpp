#include "ui/shell/notice_model.h"

#include <QCoreApplication>
#include <QJsonArray>
#include <algorithm>

#include "ui/models/event_list_model.h"
#include "ui/models/state_look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {
QString text(const std::string& s) { return QString::fromStdString(s); }
QString tr(const char* words) { return QCoreApplication::translate("notices", words); }
}  // namespace

void NoticeModel::set_quiet_kinds(const QStringList& kinds) {
  if (kinds == quiet_) return;
  quiet_ = kinds;
  add(std::exchange(quieted_, {}));
}

bool NoticeModel::was_read(const Notification& n) const {
  if (read_.contains(n.key)) return true;
  return n.unix_time <= read_to_ && !again_unread_.contains(n.key);
}

void NoticeModel::add(std::vector<Notification> notices) {
  const int before = unread();
  for (Notification& one : notices) {
    if (known_.contains(one.key)) {
      const auto same = std::find_if(rows_.begin(), rows_.end(), [&](const auto& row) { return row.key == one.key; });
      if (same == rows_.end() || same->standing == one.standing) continue;
      same->standing = one.standing;
      const QModelIndex at = index(static_cast<int>(same - rows_.begin()));
      emit dataChanged(at, at);
      continue;
    }
    if (quiet_.contains(one.kind)) {
      if (quieted_.size() < most_rows) quieted_.push_back(std::move(one));
      continue;
    }
    const auto place =
        std::upper_bound(rows_.begin(), rows_.end(), one,
                         [](const Notification& a, const Notification& b) { return a.unix_time > b.unix_time; });
    const int row = static_cast<int>(place - rows_.begin());
    if (row >= most_rows) continue;
    beginInsertRows({}, row, row);
    known_.insert(one.key);
    rows_.insert(place, std::move(one));
    endInsertRows();
    if (rowCount() <= most_rows) continue;
    beginRemoveRows({}, most_rows, rowCount() - 1);
    rows_.resize(most_rows);
    endRemoveRows();
  }
  if (unread() == before) return;
  emit unread_changed();
  emit arrived(before);
}

int NoticeModel::unread() const {
  return static_cast<int>(
      std::count_if(rows_.begin(), rows_.end(), [this](const Notification& n) { return !was_read(n); }));
}

bool NoticeModel::is_unread(int row) const { return !was_read(at(row)); }

void NoticeModel::mark_read(int row, bool read) {
  if (row < 0 || row >= rowCount() || is_unread(row) != read) return;
  const Notification& n = at(row);
  if (read) {
    again_unread_.remove(n.key);
    if (n.unix_time > read_to_) read_.insert(n.key);
  } else {
    read_.remove(n.key);
    if (n.unix_time <= read_to_) again_unread_.insert(n.key);
  }
  emit dataChanged(index(row), index(row));
  emit unread_changed();
}

void NoticeModel::mark_all_read() {
  if (unread() == 0) return;
  for (const Notification& n : rows_) read_to_ = std::max(read_to_, n.unix_time);
  read_.clear();
  again_unread_.clear();
  emit dataChanged(index(0), index(rowCount() - 1));
  emit unread_changed();
}

QJsonObject NoticeModel::read_state() const {
  const auto array = [](const QSet<QString>& keys) {
    QStringList sorted(keys.begin(), keys.end());
    sorted.sort();
    return QJsonArray::fromStringList(sorted.mid(0, most_rows));
  };
  return {{"to", read_to_}, {"read", array(read_)}, {"unread", array(again_unread_)}};
}

void NoticeModel::restore(const QJsonObject& state) {
  read_to_ = state["to"].toDouble();
  for (const QJsonValue& key : state["read"].toArray()) read_.insert(key.toString());
  for (const QJsonValue& key : state["unread"].toArray()) again_unread_.insert(key.toString());
  if (!rows_.empty()) emit dataChanged(index(0), index(rowCount() - 1));
  emit unread_changed();
}

int NoticeModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

QVariant NoticeModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid)) return {};
  const Notification& n = at(index.row());
  QStringList detail;
  if (!n.run_name.isEmpty()) detail << n.run_name;
  if (n.step > 0) detail << tr("step %1").arg(format_count(n.step));
  if (!n.standing.isEmpty()) detail << n.standing;
  if (n.unix_time > 0) detail << format_clock(n.unix_time);
  switch (role) {
    case Qt::DisplayRole:
      return n.text;
    case Qt::ToolTipRole:
      return n.text + QLatin1Char('\n') + detail.join(QStringLiteral(", "));
    case Qt::AccessibleTextRole:
      return tr("%1%2, %3")
          .arg(is_unread(index.row()) ? tr("unread: ") : QString(), n.text, detail.join(QStringLiteral(", ")));
    case unread_role:
      return is_unread(index.row());
    case glyph_role:
      return static_cast<int>(n.glyph);
    case color_role:
      return static_cast<int>(n.color);
    case detail_role:
      return detail.join(QStringLiteral(", "));
    case run_role:
      return text(n.run);
    case step_role:
      return static_cast<qlonglong>(n.step);
    default:
      return {};
  }
}

Notification notice_of(const NoticesChunk::Row& row) {
  const EventLook look = look_of(row.event.event.kind);
  const std::string_view kind = to_string(row.event.event.kind);
  return {text(row.run) + QLatin1Char('/') + QString::number(row.event.id),
          QString::fromUtf8(kind.data(), static_cast<qsizetype>(kind.size())),
          look.glyph,
          look.color,
          text(row.event.event.text),
          text(row.name),
          row.run,
          row.event.event.step,
          row.event.unix_time,
          EventListModel::alert_word(row.event)};
}

std::optional<Notification> notice_of_change(const RunInfo& before, const RunInfo& after, double now) {
  const RunSummary& s = after.summary;
  if (!is_active(before.summary.state) || s.state == before.summary.state) return std::nullopt;
  const QString name = text(s.name), why = cause_of(after, now);
  QString words;
  if (s.state == RunState::finished)
    words = tr("%1 has finished").arg(name);
  else if (s.state == RunState::failed)
    words = tr("%1 failed: %2").arg(name, why);
  else if (s.state == RunState::killed)
    words = tr("%1 was killed: %2").arg(name, why);
  else if (s.state == RunState::lost)
    words = tr("%1 is lost: its process has ended").arg(name);
  else
    return std::nullopt;
  const StateLook look = look_of(after);
  return Notification{QStringLiteral("%1/%2/%3").arg(text(s.id), look.word).arg(s.step),
                      s.state == RunState::finished ? QStringLiteral("finished") : QStringLiteral("ended"),
                      look.glyph,
                      look.color,
                      words,
                      name,
                      s.id,
                      s.step,
                      now};
}

std::optional<Notification> notice_of_outcome(const JobOutcome& outcome, double now) {
  if (!outcome.run.empty() || !outcome.error || outcome.error->kind == Error::Kind::stopped) return std::nullopt;
  Notification notice;
  notice.key = QStringLiteral("job/%1/%2").arg(outcome.job).arg(static_cast<qint64>(now));
  notice.kind = QStringLiteral("ended");
  notice.glyph = Glyph::cross;
  notice.color = Token::bad;
  notice.text = outcome.error->kind == Error::Kind::refused
                    ? tr("A run was refused: %1").arg(text(outcome.error->what))
                    : tr("A run could not start: %1").arg(text(outcome.error->what));
  notice.unix_time = now;
  return notice;
}

std::vector<std::pair<QString, QString>> notice_kinds() {
  return {{QStringLiteral("spike"), tr("Spikes of the loss")},
          {QStringLiteral("logit"), tr("Attention logits over their limit")},
          {QStringLiteral("non_finite"), tr("Values that are not finite")},
          {QStringLiteral("stall"), tr("Runs that stall")},
          {QStringLiteral("budget"), tr("Budgets that run out")},
          {QStringLiteral("disk"), tr("Disks that fill up")},
          {QStringLiteral("warning"), tr("Other warnings")},
          {QStringLiteral("ended"), tr("Runs that failed, were killed or lost")},
          {QStringLiteral("finished"), tr("Runs that have finished")}};
}

}  // namespace stacklab::ui

#include <moc_notice_model.cpp>
