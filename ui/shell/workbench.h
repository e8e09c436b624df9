// The windows of the program: several, on one workspace or on many, each with a reader of its own. Windows on the same
// workspace share its service, and its runs end with the last of them.
#pragma once

#include <QObject>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ui/shell/main_window.h"

namespace stacklab::ui {

// One service for each workspace, however many windows ask. Thread-safe: windows open on their reading threads.
class SharedServices {
 public:
  using Open = std::function<Result<std::unique_ptr<JobService>>(const std::filesystem::path&)>;
  explicit SharedServices(Open open = &JobService::open) : open_(std::move(open)) {}
  Result<std::shared_ptr<JobService>> get(const std::filesystem::path& workspace);

 private:
  Open open_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<JobService>> services_;
};

class Workbench : public QObject {
  Q_OBJECT
 public:
  using MakeOptions = std::function<WindowOptions(const QString& workspace)>;
  Workbench(MakeOptions make, std::shared_ptr<SettingsKeeper> keeper, QObject* parent = nullptr);
  ~Workbench() override;

  // The window that shows this workspace, raised, or a new one.
  MainWindow* open(const QString& workspace);
  MainWindow* open_another(const QString& workspace);
  std::vector<MainWindow*> windows() const;
  void close_all();  // each asks where it must
  void close_all_without_asking();

 signals:
  void last_closed();

 private:
  void forget(MainWindow* window);
  void remember();

  MakeOptions make_;
  std::shared_ptr<SettingsKeeper> keeper_;
  bool quitting_ = false;
  std::vector<std::unique_ptr<MainWindow>> windows_;
};

}  // namespace stacklab::ui
