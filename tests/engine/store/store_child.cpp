// A process for the store's tests. Usage:
//   store_child write WORKSPACE RUN STEPS   trains run RUN for STEPS steps from the end of its input on, then ends it
//   store_child forever WORKSPACE RUN       goes on until killed, with a checkpoint event every 10 steps; prints a line
//   per 100 steps store_child hold WORKSPACE RUN          claims RUN, beats once, prints "stop" when asked to stop, and
//   ends at the end of its input store_child lock WORKSPACE              holds an exclusive lock until the end of its
//   input
#include <SQLiteCpp/Database.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "engine/store/database.h"
#include "engine/store/store.h"

namespace {

using namespace stacklab;

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void wait_for_end_of_input() {
  char c = 0;
  while (read(0, &c, 1) == 1) {
  }
}

int fail(const Error& error) {
  say("error " + error.message());
  return 1;
}

MetricEvent event_of(std::int64_t step) {
  MetricEvent event;
  event.step = step;
  event.tokens = step * 10;
  event.process_seconds = static_cast<double>(step);
  event.unix_time = 1.7e9 + static_cast<double>(step);
  event.values = {{metric::loss, 5.0 / static_cast<double>(step)}, {metric::grad_norm, static_cast<double>(step)}};
  return event;
}

int train(const std::string& verb, const std::string& workspace, const std::string& run, std::int64_t steps) {
  auto store = Store::open(workspace);
  if (!store) return fail(store.error());
  ClaimRequest request;
  request.id = run;
  request.name = "child";
  request.folder = "child-" + run;
  request.config_json = "{}";
  request.resume = true;
  auto claim = (*store)->claim(request, {[](const std::string&, StopKind) { say("stop"); }, {}});
  if (!claim) return fail(claim.error());
  auto sink = (*store)->sink(*claim);
  sink->beat(30);
  if (verb == "hold") {
    say("holding");
    wait_for_end_of_input();
  } else {
    say("writing");
    if (verb == "write") wait_for_end_of_input();
    std::int64_t step = claim->step;
    if (claim->kind == Claim::Kind::continued) sink->resumed_after(step);
    for (std::int64_t n = 0; verb == "forever" || n < steps; ++n) {
      ++step;
      sink->metrics(event_of(step));
      sink->progress({"training", {}, step, 0});
      sink->beat(30);
      if (step % 10 == 0) sink->event({RunEvent::Kind::checkpoint, step, "checkpoint"});
      if (verb == "forever") {
        if (step % 100 == 0) say(std::to_string(step));
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    }
  }
  if (const auto ended = (*store)->end(*claim, {.state = RunState::finished, .cause = {}}); !ended)
    return fail(ended.error());
  say("ended");
  return 0;
}

int lock(const std::string& workspace) {
  SQLite::Database db(store::database_file(workspace).string(), SQLite::OPEN_READWRITE, 5000);
  db.exec("BEGIN EXCLUSIVE");
  say("locked");
  wait_for_end_of_input();
  db.exec("ROLLBACK");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string verb = argv[1], workspace = argv[2];
  if (verb == "lock") return lock(workspace);
  return train(verb, workspace, argc > 3 ? argv[3] : "", argc > 4 ? std::atoll(argv[4]) : 0);
}
