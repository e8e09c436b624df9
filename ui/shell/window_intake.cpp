// What comes into the window: configs, workspaces, and whatever is dropped on it.
#include <QDir>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QMimeData>
#include <QStackedWidget>

#include "ui/shell/dialogs.h"
#include "ui/shell/main_window.h"
#include "ui/shell/own_text_dialog.h"
#include "ui/shell/recents_model.h"

namespace stacklab::ui {
namespace {

QString text(const std::string& s) { return QString::fromStdString(s); }

// The one file or folder of a drag; empty: nothing of the kind.
QString dragged_path(const QMimeData* data) {
  for (const QUrl& url : data->urls())
    if (url.isLocalFile()) return url.toLocalFile();
  return {};
}

}  // namespace

void MainWindow::ask(const QString& fact, const QString& help, const QString& action, std::function<void()> call) {
  make_question(fact, help, action, std::move(call), this)->open();
}

void MainWindow::choose_config() {
  auto* dialog = new QFileDialog(this, tr("Start a run from a config"), QDir::currentPath(),
                                 tr("Configs (*.json);;All files (*)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::start_config);
  dialog->open();
}

void MainWindow::start_config(const QString& file) {
  if (!options_.load_config) return;
  auto result = std::make_shared<Result<RunConfig>>(failed("not read"));
  link_->in_background([load = options_.load_config, path = file.toStdString(), result] { *result = load(path); },
                       [this, result, file] {
                         if (!*result) return ask(text(result->error().what), text(result->error().remedy));
                         SubmitOptions submit;
                         submit.resume = true;  // the same config goes on where it was
                         keeper()->add_recent({Recent::Kind::config, QFileInfo(file).absoluteFilePath()});
                         show_page(monitor_->objectName());
                         monitor_->select_what_runs();
                         link_->submit(**result, submit);
                       });
}

void MainWindow::choose_text() {
  auto* dialog = new QFileDialog(this, tr("Train on my own text"), QDir::homePath(),
                                 tr("Texts (*.txt *.md *.jsonl *.parquet *.gz *.zst);;All files (*)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::ExistingFile);
  connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::take_path);
  dialog->open();
}

void MainWindow::train_on(const QString& file, qint64 bytes) {
  auto* dialog = new OwnTextDialog(file, bytes, options_.workspace_path, runs_page_->plan_work(), this);
  connect(dialog, &OwnTextDialog::ready, this, [this](const RunConfig& config) {
    SubmitOptions submit;
    submit.resume = true;  // the same text and settings go on where they were
    show_page(monitor_->objectName());
    monitor_->select_what_runs();
    link_->submit(config, submit);
  });
  connect(dialog, &OwnTextDialog::settings_wanted, this, [this, file](const RunConfig& config) {
    show_page(runs_page_->objectName());
    runs_page_->launch({config, QFileInfo(file).fileName().left(80), {}, {}});
  });
  dialog->open();
}

void MainWindow::choose_workspace() {
  auto* dialog = new QFileDialog(this, tr("Open a workspace"), QDir(options_.workspace_path).absolutePath());
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(QFileDialog::Directory);
  dialog->setOption(QFileDialog::ShowDirsOnly);
  connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::workspace_wanted);
  dialog->open();
}

void MainWindow::open_recent(const Recent& recent) {
  auto there = std::make_shared<bool>(false);
  link_->in_background([path = recent.path, there] { *there = QFileInfo::exists(path); },
                       [this, recent, there] {
                         if (!*there) {
                           recents_->forget(recent);
                           Dropped gone;
                           gone.kind = Dropped::Kind::missing;
                           gone.path = recent.path;
                           const DropAnswer answer = answer_for(gone);
                           ask(answer.fact, answer.help);
                         } else if (recent.kind == Recent::Kind::workspace) {
                           emit workspace_wanted(recent.path);
                         } else {
                           start_config(recent.path);
                         }
                       });
}

void MainWindow::show_problem(const QString& what, const QString& remedy) {
  problem_->set_texts(tr("The workspace cannot be opened."),
                      remedy.isEmpty() ? what : what + QStringLiteral("\n") + remedy, tr("Try again"));
  pages_->setCurrentWidget(problem_);
  fit_dock();
  problem_->button()->setFocus();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  const QString path = dragged_path(event->mimeData());
  if (path.isEmpty() || closing_) return;
  event->acceptProposedAction();
  drop_hint_->setText(drop_hint(path));
  drop_hint_->setGeometry(centralWidget()->geometry().adjusted(8, 8, -8, -8));
  drop_hint_->raise();
  drop_hint_->show();
}

void MainWindow::dragLeaveEvent(QDragLeaveEvent*) { drop_hint_->hide(); }

void MainWindow::dropEvent(QDropEvent* event) {
  drop_hint_->hide();
  const QString path = dragged_path(event->mimeData());
  if (path.isEmpty() || closing_) return;
  event->acceptProposedAction();
  take_path(path);
}

void MainWindow::take_path(const QString& path) {
  auto dropped = std::make_shared<Dropped>();
  link_->in_background([path, dropped] { *dropped = classify(path); }, [this, dropped] { take_dropped(*dropped); });
}

void MainWindow::take_dropped(const Dropped& dropped) {
  const DropAnswer answer = answer_for(dropped);
  switch (dropped.kind) {
    case Dropped::Kind::config:
      if (!options_.load_config || !link_->can_steer())
        return ask(tr("No run can be started here."), tr("This workspace is open for reading only."));
      return ask(answer.fact, answer.help, tr("Start the run"), [this, path = dropped.path] { start_config(path); });
    case Dropped::Kind::text:
    case Dropped::Kind::corpus:
      if (!link_->can_steer())
        return ask(tr("No run can be started here."), tr("This workspace is open for reading only."));
      return train_on(dropped.path, dropped.bytes);
    case Dropped::Kind::workspace:
      return ask(answer.fact, answer.help, tr("Open the workspace"),
                 [this, path = dropped.path] { emit workspace_wanted(path); });
    case Dropped::Kind::checkpoint:
      if (monitor_->runs()->find(dropped.run)) {
        monitor_->show_run(dropped.run, dropped.step > 0 ? std::optional(dropped.step) : std::nullopt);
        return status_->show_message(tr("This is the run of that checkpoint. Resume goes on from its newest one."));
      }
      return ask(answer.fact, answer.help);
    default:
      return ask(answer.fact, answer.help);
  }
}

}  // namespace stacklab::ui
