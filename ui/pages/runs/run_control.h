// What a person can do to runs from the window. Everything that waits for the store happens on the link's thread;
// what can be taken back goes through the undo stack.
#pragma once

#include <QObject>
#include <QUndoStack>
#include <functional>
#include <vector>

#include "ui/models/run_columns.h"
#include "ui/models/workspace_link.h"

namespace stacklab::ui {

class RunControl : public QObject {
  Q_OBJECT
 public:
  RunControl(WorkspaceLink* link, QUndoStack* undo, QObject* parent = nullptr);

  WorkspaceLink* link() const { return link_; }
  bool can_steer() const { return link_->can_steer(); }
  QUndoStack* undo_stack() const { return undo_; }

  void start(const RunConfig& config, bool detached);
  void add_to_queue(const RunConfig& config);
  void resume(const RunId& run);
  void stop(const RunId& run);
  void pause(const RunId& run);
  void checkpoint(const RunId& run);
  void fork(const RunId& parent, std::int64_t step, const RunConfig& config);

  // Undoable, all at once. title: "Delete 3 runs".
  void edit(const QString& title, std::vector<std::pair<RunId, RunEdit>> edits);
  void set_tags(const RunRow& run, const QString& words);
  void set_note(const RunRow& run, const QString& note);

  void queue_move(std::int64_t entry, std::int64_t place);
  void queue_remove(const QueueEntry& entry);
  void queue_start(std::int64_t entry);

 signals:
  void failed(const QString& what);  // one line
  void done();                       // something has changed in the store
  void started(const QString& name);

 private:
  friend class EditCommand;
  // Runs on the link's thread; says what went wrong.
  void in_store(std::function<Status(JobService&)> work, std::function<void()> after = {});

  WorkspaceLink* link_;
  QUndoStack* undo_;
};

}  // namespace stacklab::ui
