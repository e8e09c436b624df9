#include "ui/models/run_list_model.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "ui/models/state_look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

QString text(const std::string& s) { return QString::fromStdString(s); }

// Whether a row would be drawn differently.
bool looks_same(const RunInfo& a, const RunInfo& b) {
  const RunSummary &x = a.summary, &y = b.summary;
  return x.name == y.name && x.number == y.number && x.state == y.state && x.stalled == y.stalled &&
         x.cause == y.cause && x.last_loss == y.last_loss && x.last_beat == y.last_beat && a.job == b.job;
}

}  // namespace

void RunListModel::update(const WorkspaceSnapshotPtr& snapshot) {
  now_ = snapshot->unix_time;
  if (!snapshot->read_error.isEmpty() && snapshot->runs.empty()) return;  // keep what was last known
  std::vector<RunInfo> next(snapshot->runs.rbegin(), snapshot->runs.rend());
  bool shown_moved = false;
  for (std::size_t i = 0; i < next.size(); ++i) {
    const RunId& id = next[i].summary.id;
    if (!decided_.insert(id).second || i >= shown_at_first) continue;
    shown_.insert(id);
    shown_moved = true;
  }
  // Rows that went, then rows that came; the rest keep their order, since a run's place in the store never changes.
  std::unordered_set<std::string_view> there;
  for (const RunInfo& run : next) there.insert(run.summary.id);
  for (int row = static_cast<int>(rows_.size()) - 1; row >= 0; --row) {
    const RunId id = run_at(row).summary.id;
    if (there.contains(id)) continue;
    beginRemoveRows({}, row, row);
    rows_.erase(rows_.begin() + row);
    endRemoveRows();
    shown_moved |= shown_.erase(id) > 0;
    decided_.erase(id);
  }
  for (std::size_t i = 0; i < next.size(); ++i) {
    if (i < rows_.size() && rows_[i].summary.id == next[i].summary.id) continue;
    std::size_t last = i;
    while (last + 1 < next.size() && row_of(next[last + 1].summary.id) < 0) ++last;
    beginInsertRows({}, static_cast<int>(i), static_cast<int>(last));
    rows_.insert(rows_.begin() + static_cast<std::ptrdiff_t>(i), next.begin() + static_cast<std::ptrdiff_t>(i),
                 next.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    endInsertRows();
    i = last;
  }
  if (rows_.size() != next.size() ||
      !std::equal(rows_.begin(), rows_.end(), next.begin(),
                  [](const RunInfo& a, const RunInfo& b) { return a.summary.id == b.summary.id; })) {
    beginResetModel();
    rows_ = next;
    endResetModel();
  }
  for (std::size_t i = 0; i < next.size(); ++i) {
    // What the row says of the time passed changes by itself.
    const bool same = looks_same(rows_[i], next[i]) && !next[i].summary.stalled;
    rows_[i] = std::move(next[i]);
    if (!same) announce(static_cast<int>(i), static_cast<int>(i));
  }
  if (shown_moved) emit shown_changed();
}

int RunListModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

QVariant RunListModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid)) return {};
  const RunInfo& run = run_at(index.row());
  const QString why = cause_of(run, now_), word = look_of(run).word;
  const QString loss = run.summary.last_loss ? format_loss(*run.summary.last_loss) : missing();
  const QString mark = role == mark_role || role == Qt::AccessibleTextRole ? mark_of(run) : QString();
  switch (role) {
    case Qt::DisplayRole:
      return text(run.summary.name);
    case Qt::ToolTipRole:
      return why.isEmpty() ? QVariant() : QVariant(tr("%1: %2").arg(word, why));
    case Qt::CheckStateRole:
      return is_shown(run.summary.id) ? Qt::Checked : Qt::Unchecked;
    case Qt::AccessibleTextRole:
      return tr("%1, %2, last loss %3, %4%5")
          .arg(text(run.summary.name), why.isEmpty() ? word : tr("%1: %2").arg(word, why), loss,
               is_shown(run.summary.id) ? tr("on show") : tr("hidden"), mark.isEmpty() ? mark : tr(", %1").arg(mark));
    case run_id_role:
      return text(run.summary.id);
    case number_role:
      return static_cast<qlonglong>(run.summary.number);
    case shown_role:
      return is_shown(run.summary.id);
    case cause_role:
      return why;
    case last_loss_role:
      return loss;
    case state_role:
      return word;
    case mark_role:
      return mark;
    default:
      return {};
  }
}

QString RunListModel::mark_of(const RunInfo& run) const {
  QStringList words;
  if (is_pinned(run.summary.number)) words << tr("pinned");
  if (run.summary.number == baseline_) {
    words << tr("baseline");
  } else if (run.summary.last_loss && std::isfinite(*run.summary.last_loss)) {
    const auto base = std::find_if(rows_.begin(), rows_.end(),
                                   [this](const RunInfo& other) { return other.summary.number == baseline_; });
    if (base != rows_.end() && base->summary.last_loss)
      words << format_loss_difference(*run.summary.last_loss - *base->summary.last_loss);
  }
  return words.join(QStringLiteral(", "));
}

void RunListModel::set_marks(const std::set<std::int64_t>& pinned, std::int64_t baseline) {
  if (pinned == pinned_ && baseline == baseline_) return;
  pinned_ = pinned;
  baseline_ = baseline;
  if (!rows_.empty()) announce(0, rowCount() - 1);
  emit marks_changed();
}

bool RunListModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::CheckStateRole || !checkIndex(index, CheckIndexOption::IndexIsValid)) return false;
  set_shown(run_at(index.row()).summary.id, value.value<Qt::CheckState>() == Qt::Checked);
  return true;
}

Qt::ItemFlags RunListModel::flags(const QModelIndex& index) const {
  return index.isValid() ? Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsUserCheckable | Qt::ItemNeverHasChildren
                         : Qt::NoItemFlags;
}

const RunInfo* RunListModel::find(const RunId& id) const {
  const int row = row_of(id);
  return row < 0 ? nullptr : &run_at(row);
}

int RunListModel::row_of(const RunId& id) const {
  const auto it = std::find_if(rows_.begin(), rows_.end(), [&](const RunInfo& run) { return run.summary.id == id; });
  return it == rows_.end() ? -1 : static_cast<int>(it - rows_.begin());
}

void RunListModel::announce(int first, int last) { emit dataChanged(index(first), index(last)); }

void RunListModel::set_shown(const RunId& id, bool shown) {
  const bool changed = shown ? shown_.insert(id).second : shown_.erase(id) > 0;
  if (!changed) return;
  if (const int row = row_of(id); row >= 0) announce(row, row);
  emit shown_changed();
}

void RunListModel::solo(const RunId& id) {
  const bool alone = shown_.size() == 1 && is_shown(id);
  shown_.clear();
  if (alone) {
    for (int row = 0; row < std::min(rowCount(), shown_at_first); ++row) shown_.insert(run_at(row).summary.id);
  } else {
    shown_.insert(id);
  }
  if (!rows_.empty()) announce(0, rowCount() - 1);
  emit shown_changed();
}

void RunListModel::set_all_shown(const std::set<RunId>& shown) {
  std::set<RunId> next;
  for (const RunInfo& run : rows_)
    if (shown.count(run.summary.id)) next.insert(run.summary.id);
  if (next == shown_) return;
  shown_ = std::move(next);
  if (!rows_.empty()) announce(0, rowCount() - 1);
  emit shown_changed();
}

std::vector<const RunInfo*> RunListModel::shown_runs() const {
  std::vector<const RunInfo*> runs;
  for (const RunInfo& run : rows_)
    if (is_shown(run.summary.id)) runs.push_back(&run);
  return runs;
}

}  // namespace stacklab::ui

#include <moc_run_list_model.cpp>
