// A whole window over a real store and the real service; only training is replaced.
#pragma once

#include "tests/ui/runs_testing.h"
#include "ui/shell/main_window.h"

namespace stacklab::ui {

class RealWindow : public testing::Test {
 protected:
  RealWindow() { look().set_mode(ThemeMode::light); }
  ~RealWindow() override { window.reset(); }

  WindowOptions real_options() {
    WindowOptions options;
    options.workspace_path = QString::fromStdString(workspace().string());
    options.link.open = [this]() -> Result<OpenedWorkspace> {
      auto service = open_job_service(workspace(), steps);
      if (!service) return tl::unexpected(service.error());
      return OpenedWorkspace{std::shared_ptr<JobService>(std::move(*service)), nullptr};
    };
    options.link.active_period_ms = options.link.idle_period_ms = 20;
    return options;
  }
  void open(int runs = 0) { open(real_options(), runs); }
  void open(const WindowOptions& options, int runs) {
    std::filesystem::create_directories(workspace());
    if (runs > 0) put_runs(workspace(), runs);
    window = std::make_unique<MainWindow>(options);
    window->resize(1600, 1000);
    window->show();
    window->open();
    ASSERT_TRUE(settle());
  }
  bool settle() {
    return wait_until([this] { return window->settled(); });
  }
  void choose(const std::vector<std::int64_t>& numbers) {
    RunsPage* runs = window->runs_page();
    runs->view()->select_numbers(numbers, numbers.front());
    ASSERT_TRUE(wait_until([&] { return runs->chosen().size() == numbers.size() && runs->settled(); }));
  }
  std::filesystem::path workspace() const { return folder / "workspace"; }
  std::vector<RunSummary> stored() const {
    auto reader = JobService::open_reader(workspace());
    if (!reader) return {};
    auto runs = (*reader)->runs();
    return runs ? *runs : std::vector<RunSummary>();
  }
  template <class W>
  W* child(const char* name) const {
    return window->findChild<W*>(QLatin1String(name));
  }

  TemporaryFolder folder;
  JobSteps steps = idle_steps();
  std::unique_ptr<MainWindow> window;
};

}  // namespace stacklab::ui
