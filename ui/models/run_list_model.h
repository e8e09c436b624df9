// The runs of a workspace, newest first, with which of them are on show.
#pragma once

#include <QAbstractListModel>
#include <set>

#include "ui/models/snapshot.h"

namespace stacklab::ui {

class RunListModel : public QAbstractListModel {
  Q_OBJECT
 public:
  enum Role {
    run_id_role = Qt::UserRole + 1,
    number_role,
    shown_role,
    cause_role,
    last_loss_role,
    state_role,
    mark_role
  };
  // So many of the newest runs are on show before the user chooses.
  static constexpr int shown_at_first = 10;

  using QAbstractListModel::QAbstractListModel;

  void update(const WorkspaceSnapshotPtr& snapshot);

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

  const RunInfo& run_at(int row) const { return rows_[static_cast<std::size_t>(row)]; }
  const RunInfo* find(const RunId& id) const;
  int row_of(const RunId& id) const;  // -1: none
  double now() const { return now_; }

  bool is_shown(const RunId& id) const { return shown_.count(id) > 0; }
  void set_shown(const RunId& id, bool shown);
  void solo(const RunId& id);  // this one alone; again: all of the newest
  const std::set<RunId>& shown() const { return shown_; }
  void set_all_shown(const std::set<RunId>& shown);  // those of them that exist
  std::vector<const RunInfo*> shown_runs() const;

  // Numbers of runs that stay on top, and the one that others are held against (-1: none).
  void set_marks(const std::set<std::int64_t>& pinned, std::int64_t baseline);
  bool is_pinned(std::int64_t number) const { return pinned_.count(number) > 0; }
  std::int64_t baseline() const { return baseline_; }

 signals:
  void shown_changed();
  void marks_changed();

 private:
  void announce(int first, int last);
  QString mark_of(const RunInfo& run) const;

  std::vector<RunInfo> rows_;
  std::set<RunId> shown_, decided_;  // decided: shown or hidden once, by default or by the user
  std::set<std::int64_t> pinned_;
  std::int64_t baseline_ = -1;
  double now_ = 0;
};

}  // namespace stacklab::ui
