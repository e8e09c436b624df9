// The runs in the order of the monitor's list: pinned ones on top, and of the others those that a filter lets pass.
#pragma once

#include <QLineEdit>
#include <QSortFilterProxyModel>
#include <QTimer>
#include <optional>
#include <set>

#include "ui/models/run_list_model.h"
#include "ui/models/workspace_link.h"

namespace stacklab::ui {

class RunOrder : public QSortFilterProxyModel {
  Q_OBJECT
 public:
  explicit RunOrder(RunListModel* runs, QObject* parent = nullptr);

  void set_matching(std::optional<std::set<std::int64_t>> numbers);  // empty: all
  const RunInfo& run_at(const QModelIndex& index) const { return runs_->run_at(mapToSource(index).row()); }
  QModelIndex index_of(const RunId& run) const;   // not valid: it is not in the list
  bool is_changing() const { return changing_; }  // rows come and go that nobody chose

 protected:
  bool filterAcceptsRow(int row, const QModelIndex& parent) const override;
  bool lessThan(const QModelIndex& a, const QModelIndex& b) const override;

 private:
  RunListModel* runs_;
  bool changing_ = false;
  std::optional<std::set<std::int64_t>> matching_;
};

// The language of the table of runs; the store does the looking.
class RunFilterBox : public QLineEdit {
  Q_OBJECT
 public:
  RunFilterBox(WorkspaceLink* link, RunOrder* order, QWidget* parent = nullptr);

  void runs_changed();                                 // what matched may have changed
  const QString& problem() const { return problem_; }  // what is wrong with the text
  bool is_idle() const { return !busy_ && !timer_.isActive(); }

 signals:
  void answered();

 private:
  void ask();

  WorkspaceLink* link_;
  RunOrder* order_;
  QTimer timer_;
  QString problem_;
  std::uint64_t generation_ = 0;
  bool busy_ = false;
};

}  // namespace stacklab::ui
