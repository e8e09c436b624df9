// How the window closes: it asks where a run would be stopped, waits for it to save, and remembers how it stood.
#include <QApplication>
#include <QCloseEvent>
#include <QDialog>
#include <QMessageBox>
#include <QVBoxLayout>

#include "ui/shell/main_window.h"

namespace stacklab::ui {
namespace {

constexpr int slow_close_ms = 500;

QString text(const std::string& s) { return QString::fromStdString(s); }

}  // namespace

bool MainWindow::work_in_flight() const {
  return snapshot_ && !snapshot_->jobs.empty() && !(options_.is_shared && options_.is_shared());
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (done_) {
    event->accept();
    return;
  }
  event->ignore();
  if (closing_) return;
  if (work_in_flight())
    ask_to_close();
  else
    begin_close();
}

void MainWindow::ask_to_close() {
  if (question_) {
    question_->raise();
    return;
  }
  const auto count = static_cast<int>(snapshot_->jobs.size());
  const QString name = text(snapshot_->jobs.front()->name);
  question_ = new QMessageBox(QMessageBox::NoIcon, tr("Close Stacklab"),
                              count == 1 ? tr("%1 is training. Stop it and close?").arg(name.left(200))
                                         : tr("%1 runs are training or waiting. Stop them and close?").arg(count),
                              QMessageBox::NoButton, this);
  question_->setObjectName(QStringLiteral("closeQuestion"));
  question_->setAttribute(Qt::WA_DeleteOnClose);
  question_->setTextFormat(Qt::PlainText);
  question_->setInformativeText(tr("It finishes its step and saves; it can be resumed from there."));
  QPushButton* stop = question_->addButton(tr("Stop and close"), QMessageBox::AcceptRole);
  QPushButton* cancel = question_->addButton(tr("Cancel"), QMessageBox::RejectRole);
  question_->setDefaultButton(cancel);
  question_->setEscapeButton(cancel);
  for (QPushButton* button : {stop, cancel}) button->setAccessibleName(button->text());
  connect(stop, &QPushButton::clicked, this, &MainWindow::begin_close);
  question_->open();
}

void MainWindow::close_without_asking() { begin_close(); }

void MainWindow::remember() {
  if (options_.for_pictures) return;
  keeper()->change([this](Settings& s) {
    s.zoom = look().zoom();
    s.smoothing = monitor_->charts()->view()->smoothing();
  });
  keeper()->change_layouts([this](Layouts& l) {
    l.geometry = saveGeometry();
    l.last = arrangement();
  });
}

void MainWindow::begin_close() {
  if (closing_ || done_) return;
  // Nothing modal of this window may be in the way of the end.
  for (QDialog* dialog : findChildren<QDialog*>())
    if (dialog->isVisible()) dialog->close();
  remember();
  runs_page_->leave();
  closing_ = true;
  if (work_in_flight())
    show_farewell(tr("Finishing the step and saving…"),
                  tr("The window closes by itself when the checkpoint is written."));
  else
    QTimer::singleShot(slow_close_ms, this, [this] {
      if (!done_) show_farewell(tr("Closing the workspace…"), tr("Something there still takes its time."));
    });
  if (options_.is_shared && options_.is_shared())
    link_->leave();
  else
    link_->close();
}

void MainWindow::show_farewell(const QString& fact, const QString& help) {
  farewell_ = new QDialog(this, Qt::Dialog | Qt::CustomizeWindowHint | Qt::WindowTitleHint);
  farewell_->setObjectName(QStringLiteral("farewell"));
  farewell_->setWindowTitle(tr("Closing"));
  farewell_->setWindowModality(Qt::WindowModal);
  auto* column = new QVBoxLayout(farewell_);
  column->setContentsMargins(24, 20, 24, 20);
  auto* fact_label = new TextLabel(TextRole::body, Token::text, true, farewell_);
  fact_label->set_full_text(fact);
  auto* help_label = new TextLabel(TextRole::body, Token::text2, false, farewell_);
  help_label->set_full_text(help);
  column->addWidget(fact_label);
  column->addWidget(help_label);
  farewell_->show();
}

}  // namespace stacklab::ui
