#include "ui/shell/workbench.h"

#include <QDir>
#include <QTimer>
#include <algorithm>

namespace stacklab::ui {
namespace {

constexpr int next_window_offset = 32;

// Without looking at the disk, which might wait.
QString same_name(const QString& path) { return QDir::cleanPath(QDir(path).absolutePath()); }

}  // namespace

Result<std::shared_ptr<JobService>> SharedServices::get(const std::filesystem::path& workspace) {
  const std::lock_guard lock(mutex_);
  std::error_code error;
  const auto canonical = std::filesystem::weakly_canonical(workspace, error);
  std::weak_ptr<JobService>& known = services_[(error ? workspace : canonical).string()];
  if (auto service = known.lock()) return service;
  auto opened = open_(workspace);
  if (!opened) return tl::unexpected(opened.error());
  std::shared_ptr<JobService> service = std::move(*opened);
  known = service;
  return service;
}

Workbench::Workbench(MakeOptions make, std::shared_ptr<SettingsKeeper> keeper, QObject* parent)
    : QObject(parent), make_(std::move(make)), keeper_(std::move(keeper)) {}

Workbench::~Workbench() = default;

MainWindow* Workbench::open(const QString& workspace) {
  for (const auto& window : windows_) {
    if (same_name(window->workspace_path()) != same_name(workspace) || window->is_closing()) continue;
    window->show();
    window->raise();
    window->activateWindow();
    return window.get();
  }
  return open_another(workspace);
}

MainWindow* Workbench::open_another(const QString& workspace) {
  WindowOptions options = make_(workspace);
  options.keeper = keeper_;
  // Filled in below: the window asks for it only when it closes.
  auto self = std::make_shared<MainWindow*>(nullptr);
  options.is_shared = [this, self] {
    return *self && std::any_of(windows_.begin(), windows_.end(), [&](const auto& other) {
      return other.get() != *self && !other->is_closing() &&
             same_name(other->workspace_path()) == same_name((*self)->workspace_path());
    });
  };
  const bool first = windows_.empty();
  const QPoint corner = first ? QPoint() : windows_.back()->pos();
  windows_.push_back(std::make_unique<MainWindow>(std::move(options)));
  MainWindow* window = *self = windows_.back().get();
  if (!first) window->move(corner + QPoint(next_window_offset, next_window_offset));
  connect(window, &MainWindow::workspace_wanted, this, [this](const QString& path) { open(path); });
  connect(window, &MainWindow::window_wanted, this, [this, window] { open_another(window->workspace_path()); });
  connect(window, &MainWindow::quit_wanted, this, &Workbench::close_all);
  connect(
      window, &MainWindow::finished, this, [this, window] { forget(window); }, Qt::QueuedConnection);
  window->show();
  window->open();
  quitting_ = false;
  remember();
  return window;
}

std::vector<MainWindow*> Workbench::windows() const {
  std::vector<MainWindow*> all;
  for (const auto& window : windows_) all.push_back(window.get());
  return all;
}

// Whatever closes last, or all at once, is what is opened next time.
void Workbench::remember() {
  QStringList open;
  for (const auto& window : windows_)
    if (!window->is_closing()) open << QDir(window->workspace_path()).absolutePath();
  if (!open.isEmpty()) keeper_->change([&](Settings& s) { s.windows = open; });
}

void Workbench::close_all() {
  quitting_ = true;
  for (MainWindow* window : windows()) window->close();
}

void Workbench::close_all_without_asking() {
  quitting_ = true;
  for (MainWindow* window : windows()) window->close_without_asking();
}

void Workbench::forget(MainWindow* window) {
  std::erase_if(windows_, [window](const auto& one) { return one.get() == window; });
  if (!windows_.empty() && !quitting_) remember();
  if (windows_.empty()) emit last_closed();
}

}  // namespace stacklab::ui

#include <moc_workbench.cpp>
