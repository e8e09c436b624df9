#include "ui/pages/runs/launch_planner.h"

namespace stacklab::ui {
namespace {
constexpr int pause_ms = 60;  // while somebody types
}

LaunchPlanner::LaunchPlanner(Work work, QObject* parent)
    : QObject(parent), work_(std::move(work)), worker_(new QObject) {
  qRegisterMetaType<LaunchPlanPtr>("stacklab::ui::LaunchPlanPtr");
  worker_->moveToThread(&thread_);
  connect(&thread_, &QThread::finished, worker_, &QObject::deleteLater);
  pause_.setSingleShot(true);
  connect(&pause_, &QTimer::timeout, this, &LaunchPlanner::send);
  thread_.setObjectName(QStringLiteral("planner"));
  thread_.start(QThread::LowPriority);
}

LaunchPlanner::~LaunchPlanner() {
  ++*latest_;
  thread_.quit();
  thread_.wait();
}

void LaunchPlanner::plan(const RunConfig& config) {
  config_ = config;
  wanted_ = ++*latest_;
  pause_.start(pause_ms);
}

void LaunchPlanner::forget() {
  wanted_ = planned_ = ++*latest_;
  pause_.stop();
}

void LaunchPlanner::send() {
  const std::uint64_t generation = wanted_;
  QMetaObject::invokeMethod(
      worker_,
      [this, generation, config = config_, work = work_, latest = latest_] {
        const auto given_up = [&] { return *latest != generation; };
        if (given_up()) return;
        auto plan = std::make_shared<LaunchPlan>();
        plan->generation = generation;
        if (auto facts = work(config, given_up))
          plan->facts = std::move(*facts);
        else
          plan->error = facts.error();
        if (given_up()) return;
        // The planner lives: its end waits for this thread.
        QMetaObject::invokeMethod(
            this,
            [this, plan] {
              if (plan->generation != wanted_) return;
              planned_ = plan->generation;
              emit planned(plan);
            },
            Qt::QueuedConnection);
      },
      Qt::QueuedConnection);
}

}  // namespace stacklab::ui

#include <moc_launch_planner.cpp>
