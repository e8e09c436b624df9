#include "ui/models/run_table_model.h"

#include <algorithm>
#include <cmath>

#include "ui/models/state_look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

constexpr int most_changes = 100;  // of ranges of rows; beyond that the whole list is new
constexpr int margin = 40;         // rows read above and below those before the eyes

}  // namespace

std::vector<RunGroup> groups_of(const std::vector<RunPlace>& places) {
  std::vector<RunGroup> groups;
  QHash<QString, std::size_t> at;
  std::vector<std::vector<double>> val, train;
  for (const RunPlace& place : places) {
    const QString value = QString::fromStdString(place.group);
    auto found = at.find(value);
    if (found == at.end()) {
      found = at.insert(value, groups.size());
      groups.push_back({value, {}});
      val.emplace_back();
      train.emplace_back();
    }
    groups[*found].numbers.push_back(place.number);
    if (place.val_loss && std::isfinite(*place.val_loss)) val[*found].push_back(*place.val_loss);
    if (place.loss && std::isfinite(*place.loss)) train[*found].push_back(*place.loss);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    RunGroup& group = groups[i];
    group.validation = !val[i].empty();
    const std::vector<double>& losses = group.validation ? val[i] : train[i];
    group.measured = static_cast<int>(losses.size());
    if (losses.empty()) continue;
    double sum = 0, squares = 0;
    for (const double loss : losses) sum += loss;
    group.mean = sum / static_cast<double>(losses.size());
    for (const double loss : losses) squares += (loss - group.mean) * (loss - group.mean);
    // Of a sample: these are some of the seeds that there are.
    if (losses.size() > 1) group.spread = std::sqrt(squares / static_cast<double>(losses.size() - 1));
  }
  // By their values, numbers as numbers; those without one last.
  std::stable_sort(groups.begin(), groups.end(), [](const RunGroup& a, const RunGroup& b) {
    if (a.value.isEmpty() || b.value.isEmpty()) return !a.value.isEmpty() && b.value.isEmpty();
    bool a_number = false, b_number = false;
    const double x = a.value.toDouble(&a_number), y = b.value.toDouble(&b_number);
    if (a_number && b_number) return x < y;
    return a_number != b_number ? a_number : a.value < b.value;
  });
  return groups;
}

RunTableModel::RunTableModel(RunSource* source, QObject* parent) : QAbstractTableModel(parent), source_(source) {
  set_columns(default_run_columns());
  connect(source, &RunSource::answered, this, &RunTableModel::take);
}

void RunTableModel::set_columns(const QStringList& ids) {
  beginResetModel();
  columns_.clear();
  for (const QString& id : ids)
    if (const RunColumn column = run_column(id); !column.id.isEmpty() && column_of(id) < 0) columns_.push_back(column);
  if (columns_.empty()) columns_.push_back(run_columns().front());
  endResetModel();
}

int RunTableModel::column_of(const QString& id) const {
  const auto at = std::find_if(columns_.begin(), columns_.end(), [&](const RunColumn& c) { return c.id == id; });
  return at == columns_.end() ? -1 : static_cast<int>(at - columns_.begin());
}

void RunTableModel::set_group_title(const QString& title) { group_title_ = title; }

int RunTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(lines_.size());
}
int RunTableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(columns_.size());
}

std::int64_t RunTableModel::number_at(int row) const {
  if (row < 0 || row >= rowCount()) return -1;
  return std::max<std::int64_t>(lines_[static_cast<std::size_t>(row)], -1);
}
int RunTableModel::row_of(std::int64_t number) const { return number < 0 ? -1 : line_of_.value(number, -1); }
RunRowPtr RunTableModel::run_at(int row) const { return rows_.value(number_at(row)); }
std::int64_t RunTableModel::number_of(const RunId& id) const { return numbers_.value(id, -1); }

const RunGroup* RunTableModel::group_at(int row) const {
  for (; row >= 0 && row < rowCount(); --row)
    if (is_group(row)) return &groups_[line_group_.value(lines_[static_cast<std::size_t>(row)])];
  return nullptr;
}

QString RunTableModel::group_text(const RunGroup& group) const {
  QString text = group.numbers.size() == 1 ? tr("1 run")
                                           : tr("%1 runs").arg(format_count(static_cast<qint64>(group.numbers.size())));
  if (group.measured == 0) return text;
  text += QStringLiteral("   ") + (group.validation ? tr("val %1") : tr("loss %1")).arg(format_loss(group.mean));
  if (group.measured > 1)
    text += QStringLiteral(" ± ") + format_loss(group.spread) + QLatin1Char(' ') + tr("over %1").arg(group.measured);
  return text;
}

QVariant RunTableModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid)) return {};
  const RunColumn& column = columns_[static_cast<std::size_t>(index.column())];
  if (role == column_role) return column.id;
  if (is_group(index.row())) {
    if (role == number_role) return -1;
    const RunGroup& group = *group_at(index.row());
    const QString value = group.value.isEmpty() ? tr("none") : group.value;
    if (role == Qt::DisplayRole && index.column() == 0) return tr("%1: %2").arg(group_title_, value);
    if (role == Qt::AccessibleTextRole)
      return tr("Group %1: %2, %3, %4")
          .arg(group_title_, value, group_text(group), group.open ? tr("open") : tr("folded"));
    return {};
  }
  if (role == number_role) return static_cast<qlonglong>(number_at(index.row()));
  if (role == Qt::TextAlignmentRole) {
    const bool right = column.kind == RunColumn::Kind::number;
    return static_cast<int>((right ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
  const RunRowPtr row = run_at(index.row());
  if (role == loaded_role) return row != nullptr;
  if (!row) return role == Qt::DisplayRole && index.column() == 0 ? QVariant(QStringLiteral("…")) : QVariant();
  switch (role) {
    case Qt::DisplayRole:
      return cell_text(column, *row, now_).text;
    case Qt::EditRole:
      if (column.kind == RunColumn::Kind::note) return QString::fromStdString(row->summary.note);
      return cell_text(column, *row, now_).text;
    case Qt::ToolTipRole:
      return cell_tip(column, *row, now_);
    case Qt::AccessibleTextRole: {
      const QString said =
          column.kind == RunColumn::Kind::state ? cell_tip(column, *row, now_) : cell_text(column, *row, now_).text;
      return index.column() == 0 ? said : tr("%1: %2").arg(column.title, said == ui::missing() ? tr("none") : said);
    }
    case bad_role:
      return cell_text(column, *row, now_).bad;
    case faint_role:
      return cell_text(column, *row, now_).faint;
    default:
      return {};
  }
}

QVariant RunTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
  const RunColumn& column = columns_[static_cast<std::size_t>(section)];
  switch (role) {
    case Qt::DisplayRole:
      return column.title;
    case Qt::ToolTipRole:
      return column.help;
    case Qt::TextAlignmentRole:
      return static_cast<int>((column.kind == RunColumn::Kind::number ? Qt::AlignRight : Qt::AlignLeft) |
                              Qt::AlignVCenter);
    default:
      return {};
  }
}

bool RunTableModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || !(flags(index) & Qt::ItemIsEditable)) return false;
  if (value.toString() != data(index, Qt::EditRole).toString())
    emit edit_requested(number_at(index.row()), columns_[static_cast<std::size_t>(index.column())].id,
                        value.toString());
  return true;  // the store has the last word; the row changes when it has
}

Qt::ItemFlags RunTableModel::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::NoItemFlags;
  Qt::ItemFlags flags = Qt::ItemIsEnabled | Qt::ItemNeverHasChildren;
  if (is_group(index.row())) return flags;
  flags |= Qt::ItemIsSelectable;
  const RunColumn::Kind kind = columns_[static_cast<std::size_t>(index.column())].kind;
  if (run_at(index.row()) && (kind == RunColumn::Kind::tags || kind == RunColumn::Kind::note))
    flags |= Qt::ItemIsEditable;
  return flags;
}

bool RunTableModel::loaded(int first, int last) const { return missing(first, last).empty(); }

std::vector<std::int64_t> RunTableModel::missing(int first, int last) const {
  std::vector<std::int64_t> numbers;
  for (int row = std::max(0, first); row <= std::min(last, rowCount() - 1); ++row)
    if (const std::int64_t n = number_at(row); n >= 0 && !rows_.contains(n)) numbers.push_back(n);
  return numbers;
}

void RunTableModel::set_visible(int first, int last) {
  first_ = first;
  last_ = last;
  std::vector<std::int64_t> watched;
  for (int row = std::max(0, first); row <= std::min(last, rowCount() - 1); ++row)
    if (const std::int64_t n = number_at(row); n >= 0) watched.push_back(n);
  for (const std::int64_t n : pinned_) watched.push_back(n);
  if (baseline_ >= 0) watched.push_back(baseline_);
  source_->set_watched(std::move(watched));
  if (!missing(first, last).empty()) source_->want(missing(first - margin, last + margin));
}

void RunTableModel::set_hidden(const QSet<std::int64_t>& hidden) {
  hidden_ = hidden;
  announce_all();
}
void RunTableModel::set_baseline(std::int64_t number) {
  baseline_ = number;
  if (number >= 0 && !rows_.contains(number)) source_->want({number});
  announce_all();
}
void RunTableModel::set_pinned(const QSet<std::int64_t>& pinned) {
  pinned_ = pinned;
  rebuild();
}

void RunTableModel::announce_all() {
  if (rowCount() > 0) emit dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
}

void RunTableModel::set_open(int row, bool open) {
  const RunGroup* group = group_at(row);
  if (!group || group->open == open) return;
  folded_[group->value] = !open;
  rebuild();
}

void RunTableModel::take(const RunListAnswerPtr& answer) {
  now_ = answer->unix_time;
  QSet<std::int64_t> changed;
  for (const RunRowPtr& row : answer->rows) {
    const std::int64_t n = row->summary.number;
    rows_[n] = row;
    numbers_[row->summary.id] = n;
    changed.insert(n);
  }
  bool moved = false;
  if (answer->places && *answer->places != places_) {
    places_ = *answer->places;
    moved = true;
    rebuild();
  }
  for (int row = std::max(0, first_); row <= std::min(last_, rowCount() - 1); ++row)
    if (changed.contains(number_at(row))) emit dataChanged(index(row, 0), index(row, columnCount() - 1));
  forget_surplus();
  if (moved) emit lists_changed();
  if (answer->places || !answer->rows.empty()) set_visible(first_, last_);
}

void RunTableModel::forget_surplus() {
  if (static_cast<std::size_t>(rows_.size()) <= most_rows_kept) return;
  QSet<std::int64_t> keep = pinned_;
  keep.insert(baseline_);
  for (int row = std::max(0, first_ - margin); row <= std::min(last_ + margin, rowCount() - 1); ++row)
    keep.insert(number_at(row));
  for (auto it = rows_.begin(); it != rows_.end();) it = keep.contains(it.key()) ? std::next(it) : rows_.erase(it);
}

void RunTableModel::rebuild() {
  std::vector<std::int64_t> lines;
  line_group_.clear();
  groups_.clear();
  run_count_ = static_cast<int>(places_.size());
  // Pinned runs are on top, whatever the order.
  const auto add = [&](const std::vector<std::int64_t>& numbers) {
    for (const bool pinned : {true, false})
      for (const std::int64_t n : numbers)
        if (pinned_.contains(n) == pinned) lines.push_back(n);
  };
  if (group_title_.isEmpty()) {
    std::vector<std::int64_t> numbers;
    numbers.reserve(places_.size());
    for (const RunPlace& place : places_) numbers.push_back(place.number);
    add(numbers);
  } else {
    groups_ = groups_of(places_);
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      RunGroup& group = groups_[i];
      group.open = !folded_.value(group.value);
      if (!group_lines_.contains(group.value)) group_lines_[group.value] = -2 - group_lines_.size();
      const std::int64_t line = group_lines_[group.value];
      line_group_[line] = i;
      lines.push_back(line);
      if (group.open) add(group.numbers);
    }
  }
  apply(std::move(lines));
}

void RunTableModel::apply(std::vector<std::int64_t> next) {
  const auto index_lines = [this] {
    line_of_.clear();
    line_of_.reserve(static_cast<qsizetype>(lines_.size()));
    for (std::size_t i = 0; i < lines_.size(); ++i) line_of_[lines_[i]] = static_cast<int>(i);
  };
  const QSet<std::int64_t> wanted(next.begin(), next.end()), had(lines_.begin(), lines_.end());
  int ranges = 0;
  for (std::size_t i = 0; i < lines_.size(); ++i)
    if (!wanted.contains(lines_[i]) && (i == 0 || wanted.contains(lines_[i - 1]))) ++ranges;
  if (ranges > most_changes) {
    beginResetModel();
    lines_ = std::move(next);
    index_lines();
    endResetModel();
    return;
  }
  for (int last = rowCount() - 1; last >= 0; --last) {
    if (wanted.contains(lines_[static_cast<std::size_t>(last)])) continue;
    int first = last;
    while (first > 0 && !wanted.contains(lines_[static_cast<std::size_t>(first - 1)])) --first;
    beginRemoveRows({}, first, last);
    lines_.erase(lines_.begin() + first, lines_.begin() + last + 1);
    index_lines();
    endRemoveRows();
    last = first;
  }
  std::vector<std::int64_t> fresh;
  for (const std::int64_t line : next)
    if (!had.contains(line)) fresh.push_back(line);
  // At the end first, then all to their places: what is selected goes with its run.
  const bool in_place = lines_.empty();
  if (!fresh.empty()) {
    beginInsertRows({}, rowCount(), rowCount() + static_cast<int>(fresh.size()) - 1);
    lines_.insert(lines_.end(), fresh.begin(), fresh.end());
    index_lines();
    endInsertRows();
  }
  if (in_place || lines_ == next) {
    announce_all();  // sums of groups
    return;
  }
  emit layoutAboutToBeChanged({}, QAbstractItemModel::VerticalSortHint);
  const QModelIndexList before = persistentIndexList();
  std::vector<std::int64_t> marked;
  for (const QModelIndex& index : before) marked.push_back(lines_[static_cast<std::size_t>(index.row())]);
  lines_ = std::move(next);
  index_lines();
  QModelIndexList after;
  for (qsizetype i = 0; i < before.size(); ++i)
    after << index(line_of_.value(marked[static_cast<std::size_t>(i)]), before[i].column());
  changePersistentIndexList(before, after);
  emit layoutChanged({}, QAbstractItemModel::VerticalSortHint);
}

}  // namespace stacklab::ui

#include <moc_run_table_model.cpp>
