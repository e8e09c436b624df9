// Works out what a config needs, on a thread of its own: the latest one only, and what comes too late is dropped.
#pragma once

#include <QObject>
#include <QThread>
#include <QTimer>
#include <atomic>
#include <functional>
#include <memory>

#include "engine/service/launch_facts.h"

namespace stacklab::ui {

struct LaunchPlan {
  std::uint64_t generation = 0;
  std::optional<Error> error;
  LaunchFacts facts;
};
using LaunchPlanPtr = std::shared_ptr<const LaunchPlan>;

class LaunchPlanner : public QObject {
  Q_OBJECT
 public:
  using Work = std::function<Result<LaunchFacts>(const RunConfig& config, const std::function<bool()>& given_up)>;
  explicit LaunchPlanner(Work work, QObject* parent = nullptr);
  ~LaunchPlanner() override;  // waits for the work at hand, which gives up at its next part

  void plan(const RunConfig& config);
  void forget();  // nothing is wanted any more
  bool is_busy() const { return planned_ != wanted_; }

 signals:
  void planned(stacklab::ui::LaunchPlanPtr plan);

 private:
  void send();

  Work work_;
  QThread thread_;
  QObject* worker_;
  QTimer pause_;
  RunConfig config_;
  std::shared_ptr<std::atomic<std::uint64_t>> latest_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::uint64_t wanted_ = 0, planned_ = 0;
};

}  // namespace stacklab::ui
