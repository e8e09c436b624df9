#include "engine/store/queue.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/engine/store/store_testing.h"

namespace stacklab {
namespace {

class Queue : public testing::Test {
 protected:
  static QueueEntry entry(int n) {
    QueueEntry entry;
    entry.run = test_id(n);
    entry.name = "run " + std::to_string(n);
    entry.config_json = "{}";
    return entry;
  }
  std::int64_t add(int n, bool ours = false) { return must(store_->queue_add(entry(n), ours)); }
  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const QueueEntry& entry : must(must(open_store_reader(folder_.path()))->queue())) names.push_back(entry.name);
    return names;
  }
  void reopen() {
    store_.reset();
    store_ = must(Store::open(folder_.path()));
  }

  using Names = std::vector<std::string>;
  TemporaryFolder folder_;
  std::unique_ptr<Store> store_ = must(Store::open(folder_.path()));
};

TEST_F(Queue, KeepsItsOrderOverARestart) {
  for (int n = 1; n <= 4; ++n) add(n);
  const auto last = add(5);
  must(store_->queue_move(last, 0));
  EXPECT_EQ(names(), (Names{"run 5", "run 1", "run 2", "run 3", "run 4"}));
  must(store_->queue_move(last, 2));
  EXPECT_EQ(names(), (Names{"run 1", "run 2", "run 5", "run 3", "run 4"}));
  must(store_->queue_move(last, 100));
  reopen();
  EXPECT_EQ(names(), (Names{"run 1", "run 2", "run 3", "run 4", "run 5"}));
  must(store_->queue_remove(last));
  EXPECT_EQ(names(), (Names{"run 1", "run 2", "run 3", "run 4"}));
  for (const Status& wrong : {store_->queue_remove(last), store_->queue_move(last, 0)}) {
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().kind, Error::Kind::usage);
  }
}

TEST_F(Queue, OnlyWhatNoLivingProcessWillStartIsGivenOut) {
  const auto held = add(1), ours = add(2, true), other = add(3);
  const auto refused = store_->queue_take(ours);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Error::Kind::refused);
  EXPECT_NE(refused.error().what.find(std::to_string(getpid())), std::string::npos) << refused.error().message();
  EXPECT_EQ(must(store_->queue_take(other))->name, "run 3");
  EXPECT_EQ(must(store_->queue_take({}))->id, held);
  EXPECT_FALSE(must(store_->queue_take({}))) << "all are ours by now";
  EXPECT_FALSE(store_->queue_take(12345));
}

TEST_F(Queue, EntriesOfADeadProcessWaitForAPerson) {
  // A process with threads has no children that start their own: the sanitizers' locks stay held in them.
  store_.reset();
  int opened[2];
  ASSERT_EQ(pipe(opened), 0);
  const pid_t child = fork();
  if (child == 0) {
    char ready = 0;
    if (read(opened[0], &ready, 1) != 1) _exit(1);
    const auto store = Store::open(folder_.path());
    QueueEntry entry;
    entry.run = test_id(7);
    entry.name = "left behind";
    if (!store || !(*store)->queue_add(entry, true)) _exit(1);
    kill(getpid(), SIGKILL);
  }
  reopen();
  ASSERT_EQ(write(opened[1], "o", 1), 1);
  close(opened[0]), close(opened[1]);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto entries = must(must(open_store_reader(folder_.path()))->queue());
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].process, 0);
  EXPECT_EQ(must(store_->queue_take({}))->name, "left behind");
}

TEST_F(Queue, ARunThatBeginsWaitsNoMore) {
  add(1);
  add(2);
  const Claim claim = must(store_->claim(test_request(1), {}));
  EXPECT_EQ(names(), Names{"run 2"});
  must(store_->end(claim, {.state = RunState::paused, .cause = "stopped"}));
  EXPECT_EQ(names(), Names{"run 2"}) << "it has begun and ended";
  // A paused one waits at the head, with its end and not after it.
  const Claim again = must(store_->claim(test_request(1, true), {}));
  must(store_->end(again, {.state = RunState::paused, .cause = "paused", .queue_options = "{\"resume\":true}"}));
  EXPECT_EQ(names(), (Names{"run 1", "run 2"}));
}

// The queue is as good as the process that works on it: what it was at when it was killed waits again, to be gone on
// with.
TEST_F(Queue, WhatAKilledProcessTrainedWaitsAgain) {
  add(2);
  const auto added = add(1);
  ChildProcess child({"hold", folder_.path().string(), test_id(1)});
  ASSERT_EQ(child.line(), "holding");
  EXPECT_EQ(names(), Names{"run 2"});
  const auto twice = store_->queue_add(entry(1), false);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().kind, Error::Kind::refused);
  child.send(SIGKILL);
  child.wait();
  EXPECT_EQ(names(), (Names{"run 2", "run 1"}));
  const auto taken = must(store_->queue_take(added));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->options_json, R"({"resume":true})");
}

TEST_F(Queue, WhatSomebodyQueuesMeanwhileOutlivesTheEndOfAnothersProcess) {
  const Claim claim = must(store_->claim(test_request(1), {}));
  add(1);
  must(store_->end(claim, {.state = RunState::paused, .cause = "stopped"}));
  EXPECT_EQ(names(), Names{"run 1"});
  const Claim again = must(store_->claim(test_request(1, true), {}));
  must(store_->end(again, {.state = RunState::finished, .cause = {}}));
  EXPECT_EQ(names(), Names());
}

TEST_F(Queue, ARunWaitsOnce) {
  const auto first = add(1);
  const auto twice = store_->queue_add(entry(1), false);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().kind, Error::Kind::refused);
  EXPECT_NE(twice.error().message().find("entry " + std::to_string(first)), std::string::npos);
  EXPECT_EQ(must(store_->queue_add(entry(1), true)), first) << "this process starts it";
}

}  // namespace
}  // namespace stacklab
