// A window over a workspace in memory, as the tests of the window open it.
#pragma once

#include <memory>

#include "tests/ui/fake_service.h"
#include "tests/ui/ui_test.h"
#include "ui/shell/main_window.h"

namespace stacklab::ui {

inline WindowOptions options_for(const FakeWorkspacePtr& workspace) {
  WindowOptions options;
  options.workspace_path = QStringLiteral("/tmp/demo");
  options.link = fake_link(workspace);
  return options;
}

inline std::unique_ptr<MainWindow> shown(const WindowOptions& options, QSize size = QSize(1600, 1000)) {
  auto window = std::make_unique<MainWindow>(options);
  window->resize(size);
  window->show();
  if (window->keeper()->layouts().last.page.isEmpty()) window->show_page(QStringLiteral("monitor"));
  window->open();
  return window;
}

inline void put_running_job(FakeWorkspace& w, int number) {
  RunSummary run = sample_run(number, RunState::running, 215);
  w.put_run(run);
  add_sample_curves(w, run);
  JobSnapshot job;
  job.job = 1;
  job.run = run.id;
  job.name = run.name;
  job.progress = run.progress;
  w.set_jobs({job});
}

class WindowTest : public testing::Test {
 protected:
  WindowTest() : workspace(std::make_shared<FakeWorkspace>()) { look().set_mode(ThemeMode::light); }
  MainWindow& open(QSize size = QSize(1600, 1000)) { return open(options_for(workspace), size); }
  MainWindow& open(const WindowOptions& options, QSize size = QSize(1600, 1000)) {
    window = shown(options, size);
    return *window;
  }
  RunSummary put(int number, RunState state, std::int64_t step) {
    const RunSummary run = sample_run(number, state, step);
    workspace->put_run(run);
    add_sample_curves(*workspace, run);
    return workspace->run(run.id);
  }
  RunSummary put_running() {
    put_running_job(*workspace, 0);
    return workspace->run(sample_run(0, RunState::running, 1).id);
  }
  QPushButton* button_of(QWidget* in, const QString& text) {
    for (QPushButton* button : in->findChildren<QPushButton*>())
      if (button->text() == text) return button;
    return nullptr;
  }
  FakeWorkspacePtr workspace;
  std::unique_ptr<MainWindow> window;
};

}  // namespace stacklab::ui
