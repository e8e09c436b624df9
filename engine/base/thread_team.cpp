#include "engine/base/thread_team.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace stacklab {
namespace {

thread_local bool inside_task = false;

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

// Waits until value differs from old: spins for some tens of microseconds, since operations follow each other
// closely and waking a sleeper takes half as long, then sleeps.
std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int i = 0; i < 2048; ++i) {
    const std::uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
    pause_cpu();
  }
  for (;;) {
    value.wait(old, std::memory_order_acquire);
    const std::uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) return now;
  }
}

}  // namespace

struct ThreadTeam::State {
  std::mutex turn;
  // Written by the caller before generation changes, read by workers after.
  std::int64_t tasks = 0;
  void (*fn)(void*, std::int64_t) = nullptr;
  void* self = nullptr;
  int threads = 1;
  bool ending = false;

  alignas(64) std::atomic<std::uint32_t> generation{0};
  alignas(64) std::atomic<std::uint32_t> working{0};
  std::vector<std::thread> workers;

  void do_share(int thread) {
    const std::int64_t n = threads;
    const std::int64_t each = tasks / n, more = tasks % n;
    const std::int64_t begin = thread * each + std::min<std::int64_t>(thread, more);
    const std::int64_t end = begin + each + (thread < more ? 1 : 0);
    inside_task = true;
    for (std::int64_t i = begin; i < end; ++i) fn(self, i);
    inside_task = false;
  }

  void worker(int thread) {
    std::uint32_t seen = 0;
    for (;;) {
      seen = wait_for_change(generation, seen);
      if (ending) return;
      if (thread < threads) do_share(thread);
      if (working.fetch_sub(1, std::memory_order_acq_rel) == 1) working.notify_one();
    }
  }

  void wait_for_workers() {
    for (;;) {
      const std::uint32_t left = working.load(std::memory_order_acquire);
      if (left == 0) return;
      wait_for_change(working, left);
    }
  }
};

ThreadTeam::ThreadTeam(int threads) : threads_(std::clamp(threads, 1, 1024)), state_(std::make_unique<State>()) {
  state_->workers.reserve(static_cast<std::size_t>(threads_ - 1));
  for (int t = 1; t < threads_; ++t) {
    try {
      state_->workers.emplace_back([state = state_.get(), t] { state->worker(t); });
    } catch (const std::system_error&) {
      threads_ = t;
      break;
    }
  }
  state_->threads = threads_;
}

ThreadTeam::~ThreadTeam() {
  state_->ending = true;
  state_->generation.fetch_add(1, std::memory_order_release);
  state_->generation.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

void ThreadTeam::run(std::int64_t tasks, void (*fn)(void* self, std::int64_t task), void* self) {
  if (tasks <= 0) return;
  if (tasks == 1 || threads_ == 1 || inside_task) {
    for (std::int64_t i = 0; i < tasks; ++i) fn(self, i);
    return;
  }
  State& s = *state_;
  std::lock_guard lock(s.turn);
  s.tasks = tasks;
  s.fn = fn;
  s.self = self;
  s.working.store(static_cast<std::uint32_t>(s.workers.size()), std::memory_order_relaxed);
  s.generation.fetch_add(1, std::memory_order_release);
  s.generation.notify_all();
  s.do_share(0);
  s.wait_for_workers();
}

}  // namespace stacklab
