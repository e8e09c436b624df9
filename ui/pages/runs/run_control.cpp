#include "ui/pages/runs/run_control.h"

#include <QPointer>
#include <QRegularExpression>
#include <QUndoCommand>
#include <algorithm>

namespace stacklab::ui {

// What the store answers to an edit takes it back. Both happen on the link's thread, one after the other.
class EditCommand : public QUndoCommand {
 public:
  using Edits = std::vector<std::pair<RunId, RunEdit>>;
  EditCommand(RunControl* control, const QString& title, Edits edits)
      : QUndoCommand(title), control_(control), forth_(std::move(edits)), back_(std::make_shared<Edits>()) {}
  void redo() override {
    apply([forth = forth_, back = back_](JobService& service) -> Status {
      back->clear();
      for (const auto& [run, edit] : forth) {
        auto undo = service.edit(run, edit);
        if (!undo) return tl::unexpected(undo.error());
        if (!undo->empty()) back->emplace_back(run, std::move(*undo));
      }
      return {};
    });
  }
  void undo() override {
    apply([back = back_](JobService& service) -> Status {
      for (const auto& [run, edit] : *back)
        if (auto undone = service.edit(run, edit); !undone) return tl::unexpected(undone.error());
      return {};
    });
  }

 private:
  void apply(std::function<Status(JobService&)> work) {
    control_->in_store(std::move(work), [control = control_] { emit control->done(); });
  }
  RunControl* control_;
  Edits forth_;
  std::shared_ptr<Edits> back_;
};

RunControl::RunControl(WorkspaceLink* link, QUndoStack* undo, QObject* parent)
    : QObject(parent), link_(link), undo_(undo) {}

void RunControl::in_store(std::function<Status(JobService&)> work, std::function<void()> after) {
  auto failure = std::make_shared<QString>();
  link_->with_store(
      [work = std::move(work), failure](StoreReader*, JobService* service) {
        if (service == nullptr) {
          *failure = tr("This workspace is open for reading only.");
          return;
        }
        if (const Status done = work(*service); !done) *failure = QString::fromStdString(done.error().message());
      },
      [self = QPointer<RunControl>(this), failure, after = std::move(after)] {
        if (!self) return;
        if (!failure->isEmpty()) emit self->failed(*failure);
        if (after) after();
      });
}

void RunControl::start(const RunConfig& config, bool detached) {
  const QString name = QString::fromStdString(config.name);
  if (!detached) {
    SubmitOptions options;
    options.resume = true;  // a config that was started goes on where it was
    if (link_->submit(config, options) < 0) return emit failed(tr("This workspace is open for reading only."));
    return emit started(name);
  }
  in_store([config](JobService& service) -> Status {
    const auto run = service.detach(config, true);
    return run ? Status() : tl::unexpected(run.error());
  });
  emit started(name);
}

void RunControl::add_to_queue(const RunConfig& config) {
  in_store(
      [config](JobService& service) -> Status {
        const auto entry = service.queue_add(config, {});
        return entry ? Status() : tl::unexpected(entry.error());
      },
      [this] { emit done(); });
}

void RunControl::resume(const RunId& run) { link_->resume(run); }
void RunControl::stop(const RunId& run) { link_->stop(run); }
void RunControl::pause(const RunId& run) {
  in_store([run](JobService& service) -> Status {
    service.pause(run);
    return {};
  });
}
void RunControl::checkpoint(const RunId& run) {
  in_store([run](JobService& service) -> Status {
    service.checkpoint(run);
    return {};
  });
}

void RunControl::fork(const RunId& parent, std::int64_t step, const RunConfig& config) {
  in_store(
      [parent, step, config](JobService& service) -> Status {
        const auto run = service.fork(parent, step, config);
        if (!run) return tl::unexpected(run.error());
        service.resume(*run);
        return {};
      },
      [this] { emit done(); });
  emit started(QString::fromStdString(config.name));
}

void RunControl::edit(const QString& title, std::vector<std::pair<RunId, RunEdit>> edits) {
  if (!edits.empty()) undo_->push(new EditCommand(this, title, std::move(edits)));
}

void RunControl::set_tags(const RunRow& run, const QString& words) {
  QStringList wanted = words.split(QRegularExpression(QStringLiteral("[\\s,]+")), Qt::SkipEmptyParts);
  wanted.removeDuplicates();
  RunEdit edit;
  for (const QString& tag : wanted)
    if (const std::string word = tag.toStdString();
        std::find(run.summary.tags.begin(), run.summary.tags.end(), word) == run.summary.tags.end())
      edit.add_tags.push_back(word);
  for (const std::string& tag : run.summary.tags)
    if (!wanted.contains(QString::fromStdString(tag))) edit.remove_tags.push_back(tag);
  if (!edit.empty())
    this->edit(tr("Tags of %1").arg(QString::fromStdString(run.summary.name)), {{run.summary.id, std::move(edit)}});
}

void RunControl::set_note(const RunRow& run, const QString& note) {
  RunEdit edit;
  edit.note = note.toStdString();
  if (*edit.note != run.summary.note)
    this->edit(tr("Notes on %1").arg(QString::fromStdString(run.summary.name)), {{run.summary.id, std::move(edit)}});
}

void RunControl::queue_move(std::int64_t entry, std::int64_t place) {
  in_store([entry, place](JobService& service) { return service.queue_move(entry, place); }, [this] { emit done(); });
}
void RunControl::queue_remove(const QueueEntry& entry) {
  in_store([id = entry.id](JobService& service) { return service.queue_remove(id); }, [this] { emit done(); });
}
void RunControl::queue_start(std::int64_t entry) {
  in_store(
      [entry](JobService& service) -> Status {
        const auto job = service.queue_start(entry);
        return job ? Status() : tl::unexpected(job.error());
      },
      [this] { emit done(); });
}

}  // namespace stacklab::ui

#include <moc_run_control.cpp>
