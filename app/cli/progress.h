// Shows how far something is: a bar on a terminal, now and then a line elsewhere, nothing when quiet.
#pragma once

#include <chrono>
#include <string>

#include "engine/run/run.h"

namespace stacklab::cli {

class ProgressDisplay {
 public:
  // title: what is being done, in front of every line.
  ProgressDisplay(std::string title, bool quiet);
  ~ProgressDisplay();  // clears the bar
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  // figures: what is known beside the progress ("loss 2.315"); may be empty.
  void show(const Progress& progress, const std::string& figures);

 private:
  using Clock = std::chrono::steady_clock;

  std::string bar_line(const Progress& progress, const std::string& figures, int columns) const;
  std::string plain_line(const Progress& progress, const std::string& figures) const;
  std::string time_left(const Progress& progress) const;
  void follow(const Progress& progress);

  const std::string title_;
  const bool quiet_;
  const bool terminal_;
  std::string phase_, detail_;
  Clock::time_point phase_began_, last_change_, last_line_;
  std::int64_t done_at_begin_ = 0, done_ = 0;
  bool any_line_ = false;
};

}  // namespace stacklab::cli
