// What the runs' table asks the store: which runs, in which order, and the rows before the eyes. All reading happens on
// the link's thread; answers are whole, and late ones are dropped.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>
#include <map>
#include <memory>
#include <set>

#include "ui/models/run_columns.h"
#include "ui/models/workspace_link.h"

namespace stacklab::ui {

struct RunListAnswer {
  std::uint64_t generation = 0;
  double unix_time = 0;
  std::shared_ptr<const std::vector<RunPlace>> places;  // null: the order is as it was
  std::vector<RunRowPtr> rows;
  std::map<RunState, std::int64_t> counts;
  std::int64_t all = 0;  // runs that are neither archived nor deleted
  std::shared_ptr<const FilterWords> words;
  std::shared_ptr<const std::vector<QueueEntry>> queue;  // null: not read
  QString error;
};
using RunListAnswerPtr = std::shared_ptr<const RunListAnswer>;

// What a run that works now does: tok/s and memory of its last process are of the store only when that has ended.
void take_live_figures(StoreReader& reader, RunSummary& run);

class RunSource : public QObject {
  Q_OBJECT
 public:
  explicit RunSource(WorkspaceLink* link, QObject* parent = nullptr);

  // What is wanted from now on.
  void set_query(const RunQuery& query, const std::string& group);
  const RunQuery& query() const { return query_; }
  void want(const std::vector<std::int64_t>& numbers);  // rows, as soon as may be
  void set_watched(std::vector<std::int64_t> numbers);  // rows to be kept fresh
  void poll(bool at_once = false);                      // looks whether anything has changed
  bool is_idle() const { return !busy_ && !again_; }

 signals:
  void answered(stacklab::ui::RunListAnswerPtr answer);

 private:
  void send();
  void take(const RunListAnswerPtr& answer, std::int64_t counter, qint64 took_ms);

  WorkspaceLink* link_;
  RunQuery query_;
  std::string group_;
  std::uint64_t generation_ = 0, answered_generation_ = 0;
  std::int64_t counter_ = -1;
  std::set<std::int64_t> wanted_;
  std::vector<std::int64_t> watched_;
  bool busy_ = false, again_ = false;
  QTimer pause_;
};

}  // namespace stacklab::ui
