// The head of a dock that shows one run: its colour and name, state and cause, and how far it is.
#pragma once

#include "ui/models/snapshot.h"
#include "ui/theme/widgets.h"

namespace stacklab::ui {

class RunHead : public QWidget {
  Q_OBJECT
 public:
  explicit RunHead(QWidget* parent = nullptr);

  void show_nothing();
  void show_job(const JobSnapshot& job);  // which has no run yet
  void show_run(const RunInfo& run, double now);

 private:
  Swatch* swatch_;
  TextLabel *name_, *cause_, *steps_, *left_;
  StatePill* pill_;
  ThinProgress* bar_;
};

}  // namespace stacklab::ui
