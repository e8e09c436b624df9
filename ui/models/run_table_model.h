// The runs of a workspace as a table of any length: the order is known, rows come when they are looked at. A list that
// is grouped has lines of its own above each group, which fold it.
#pragma once

#include <QAbstractTableModel>
#include <QHash>
#include <QSet>
#include <vector>

#include "ui/models/run_source.h"

namespace stacklab::ui {

// A group of runs that share a value, with what their losses have in common.
struct RunGroup {
  QString value;
  std::vector<std::int64_t> numbers;
  int measured = 0;  // runs whose loss is a number
  bool validation = true;
  double mean = 0, spread = 0;  // of the validation losses; of the training losses where there are none
  bool open = true;
};
std::vector<RunGroup> groups_of(const std::vector<RunPlace>& places);

class RunTableModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Role {
    number_role = Qt::UserRole + 1,  // of the run; -1: a group's line
    column_role,
    bad_role,
    faint_role,
    loaded_role
  };
  static constexpr std::size_t most_rows_kept = 3000;

  explicit RunTableModel(RunSource* source, QObject* parent = nullptr);

  void set_columns(const QStringList& ids);
  const std::vector<RunColumn>& columns() const { return columns_; }
  int column_of(const QString& id) const;      // -1: it is not shown
  void set_group_title(const QString& title);  // of the key; empty: not grouped

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

  bool is_group(int row) const { return lines_[static_cast<std::size_t>(row)] < 0; }
  const RunGroup* group_at(int row) const;  // of this line or above it; null: not grouped
  QString group_text(const RunGroup& group) const;
  void set_open(int row, bool open);
  std::int64_t number_at(int row) const;  // -1: a group's line
  int row_of(std::int64_t number) const;  // -1: not in the list, or folded away
  RunRowPtr run_at(int row) const;        // null: a group's line, or not read yet
  RunRowPtr run(std::int64_t number) const { return rows_.value(number); }
  std::int64_t number_of(const RunId& id) const;  // of those that were read; -1
  int run_count() const { return run_count_; }
  double now() const { return now_; }
  bool loaded(int first, int last) const;

  // The lines before the eyes: those are read, and kept fresh.
  void set_visible(int first, int last);
  void set_hidden(const QSet<std::int64_t>& hidden);
  const QSet<std::int64_t>& hidden() const { return hidden_; }
  bool is_hidden(std::int64_t number) const { return hidden_.contains(number); }
  void set_baseline(std::int64_t number);
  std::int64_t baseline() const { return baseline_; }
  void set_pinned(const QSet<std::int64_t>& pinned);
  const QSet<std::int64_t>& pinned() const { return pinned_; }

 signals:
  void edit_requested(std::int64_t number, const QString& column, const QString& text);
  void lists_changed();  // order or membership

 private:
  void take(const RunListAnswerPtr& answer);
  void rebuild();
  void apply(std::vector<std::int64_t> lines);
  void announce_all();
  void forget_surplus();
  std::vector<std::int64_t> missing(int first, int last) const;

  RunSource* source_;
  std::vector<RunColumn> columns_;
  QString group_title_;
  std::vector<RunPlace> places_;
  std::vector<RunGroup> groups_;
  QHash<QString, bool> folded_;
  QHash<QString, std::int64_t> group_lines_;     // value -> a number below 0
  QHash<std::int64_t, std::size_t> line_group_;  // and the group it stands for
  std::vector<std::int64_t> lines_;              // numbers of runs; below 0: groups
  QHash<std::int64_t, int> line_of_;
  QHash<std::int64_t, RunRowPtr> rows_;
  QHash<RunId, std::int64_t> numbers_;
  QSet<std::int64_t> hidden_, pinned_;
  std::int64_t baseline_ = -1;
  int first_ = 0, last_ = -1, run_count_ = 0;
  double now_ = 0;
};

}  // namespace stacklab::ui
