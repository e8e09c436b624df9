#include "ui/shell/own_text_dialog.h"

#include <QComboBox>
#include <QFile>
#include <QGridLayout>
#include <QVBoxLayout>

#include "engine/service/model_facts.h"
#include "ui/shell/dropped.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

constexpr int progress_every_ms = 100;

QString text(const std::string& s) { return QString::fromStdString(s); }

}  // namespace

TextPreparer::TextPreparer(QObject* parent) : QObject(parent) {
  connect(&tick_, &QTimer::timeout, this, [this] {
    std::optional<Progress> progress;
    {
      const std::lock_guard lock(mutex_);
      progress = std::exchange(latest_, std::nullopt);
    }
    if (progress) emit progressed(*progress);
  });
}

TextPreparer::~TextPreparer() = default;  // the thread is told to stop, and waited for

void TextPreparer::stop() { thread_.request_stop(); }

void TextPreparer::start(const QString& file, const RunConfig& config, const QString& workspace) {
  if (busy_) return;
  busy_ = true;
  tick_.start(progress_every_ms);
  const std::filesystem::path path = QFile::encodeName(file).toStdString(),
                              folder = QFile::encodeName(workspace).toStdString();
  thread_ = std::jthread([this, path, folder, config](const std::stop_token& stop) {
    const auto told = [this](const Progress& progress) {
      const std::lock_guard lock(mutex_);
      latest_ = progress;
    };
    auto result = std::make_shared<const Result<RunConfig>>(prepare_own_text(path, config, folder, told, stop));
    // It lives: its end waits for this thread.
    QMetaObject::invokeMethod(
        this,
        [this, result] {
          busy_ = false;
          tick_.stop();
          emit ended(result);
        },
        Qt::QueuedConnection);
  });
}

OwnTextDialog::OwnTextDialog(const QString& file, qint64 bytes, const QString& workspace, LaunchPlanner::Work plan,
                             QWidget* parent)
    : QDialog(parent),
      file_(file),
      workspace_(workspace),
      bytes_(bytes),
      preparer_(new TextPreparer(this)),
      planner_(new LaunchPlanner(std::move(plan), this)) {
  setObjectName(QStringLiteral("ownText"));
  setAttribute(Qt::WA_DeleteOnClose);
  setWindowTitle(tr("Train on my own text"));
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(24, 20, 20, 16);
  column->setSpacing(8);
  const auto label = [&](QWidget* in, Token color, bool bold) {
    auto* made = new TextLabel(TextRole::body, color, bold, in);
    made->setWordWrap(true);
    return made;
  };
  const DropAnswer answer = answer_for({Dropped::Kind::text, file, bytes, {}, -1});
  auto* fact = label(this, Token::text, true);
  fact->set_full_text(answer.fact);
  auto* help = label(this, Token::text2, false);
  help->set_full_text(answer.help);
  column->addWidget(fact);
  column->addWidget(help);

  before_ = new QWidget(this);
  auto* choices = new QVBoxLayout(before_);
  choices->setContentsMargins(0, 4, 0, 0);
  size_ = new QComboBox(before_);
  size_->setAccessibleName(tr("Size of the model"));
  for (const OwnTextSize size : {OwnTextSize::small, OwnTextSize::medium, OwnTextSize::large}) {
    const RunConfig config = own_text_config("text", bytes, size);
    const QString parameters = format_amount(static_cast<double>(count_parameters(config.model).total));
    size_->addItem(size == OwnTextSize::small    ? tr("Small: %1 parameters").arg(parameters)
                   : size == OwnTextSize::medium ? tr("Medium: %1 parameters").arg(parameters)
                                                 : tr("Large: %1 parameters").arg(parameters));
  }
  facts_ = new FactGrid(before_);
  choices->addWidget(size_);
  choices->addWidget(facts_);
  column->addWidget(before_);

  during_ = new QWidget(this);
  auto* grid = new QGridLayout(during_);
  grid->setContentsMargins(0, 4, 0, 4);
  grid->setHorizontalSpacing(12);
  grid->setColumnStretch(2, 1);
  for (const auto& [phase, title] :
       {std::pair{"text", tr("Text")}, {"tokenizer", tr("Tokenizer")}, {"shards", tr("Tokens")}}) {
    Line line{phase, label(during_, Token::text3, false), label(during_, Token::text2, false),
              new ThinProgress(during_)};
    line.title->setWordWrap(false);
    line.title->set_full_text(title);
    line.detail->setWordWrap(false);
    line.detail->set_elided(true);
    line.bar->setFixedWidth(metrics().scaled(140));
    line.bar->setAccessibleName(title);
    const int row = static_cast<int>(lines_.size());
    grid->addWidget(line.title, row, 0);
    grid->addWidget(line.bar, row, 1);
    grid->addWidget(line.detail, row, 2);
    grid->setRowMinimumHeight(row, metrics().small_control());
    lines_.push_back(line);
  }
  during_->hide();
  column->addWidget(during_);
  problem_ = label(this, Token::bad, false);
  problem_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  problem_->hide();
  column->addWidget(problem_);
  column->addStretch();

  auto* last = new QHBoxLayout;
  settings_ = make_button(tr("All settings…"), {}, this);
  settings_->setToolTip(tr("Prepares the text, then shows every field of the config before anything is trained."));
  cancel_ = make_button(tr("Cancel"), {}, this);
  train_ = make_button(tr("Start training"), {}, this);
  make_primary(train_);
  for (QPushButton* button : {settings_, cancel_}) button->setAutoDefault(false);
  train_->setDefault(true);
  last->addWidget(settings_);
  last->addStretch();
  last->addWidget(cancel_);
  last->addWidget(train_);
  column->addLayout(last);
  connect(train_, &QPushButton::clicked, this, [this] { begin(true); });
  connect(settings_, &QPushButton::clicked, this, [this] { begin(false); });
  connect(cancel_, &QPushButton::clicked, this, &OwnTextDialog::reject);
  connect(size_, &QComboBox::currentIndexChanged, this, &OwnTextDialog::choose);
  connect(preparer_, &TextPreparer::progressed, this, &OwnTextDialog::show_progress);
  connect(planner_, &LaunchPlanner::planned, this, [this](const LaunchPlanPtr& made) {
    const LaunchFacts& f = made->facts;
    facts_->set(tr("Will take"), !made->error && f.seconds > 0
                                     ? tr("about %1 (%2 to %3)")
                                           .arg(format_duration(f.seconds), format_duration(f.seconds_least),
                                                format_duration(f.seconds_most))
                                     : missing());
    facts_->set(tr("Memory"),
                made->error || f.memory_error
                    ? missing()
                    : tr("%1, %2 free now").arg(format_bytes(f.memory_peak), format_bytes(f.memory_free)));
  });
  connect(preparer_, &TextPreparer::ended, this, [this](const auto& result) { take(*result); });
  size_->setCurrentIndex(static_cast<int>(usual_size(bytes)));
  choose();
  train_->setFocus();
  setMinimumWidth(metrics().scaled(520));
}

void OwnTextDialog::choose() {
  config_ = own_text_config(std::filesystem::path(QFile::encodeName(file_).toStdString()), bytes_,
                            static_cast<OwnTextSize>(size_->currentIndex()));
  facts_->set(tr("Text"), format_bytes(bytes_));
  facts_->set(tr("Tokenizer"), config_.model.vocab_size > 256
                                   ? tr("byte-level BPE, %1 tokens").arg(format_count(config_.model.vocab_size))
                                   : tr("bytes as they are: the text is short"));
  facts_->set(tr("Model"), tr("%1 layers × %2, a window of %3 tokens")
                               .arg(format_count(config_.model.n_layers), format_count(config_.model.d_model),
                                    format_count(config_.train.seq_len)));
  facts_->set(tr("Training"),
              tr("%1 tokens in %2 steps")
                  .arg(format_amount(static_cast<double>(config_.train.tokens)), format_count(config_.steps())));
  facts_->set(tr("Will take"), tr("working it out"));
  planner_->plan(config_);
}

void OwnTextDialog::begin(bool start) {
  if (preparer_->is_busy()) return;
  start_ = start;
  problem_->hide();
  before_->hide();
  during_->show();
  train_->setEnabled(false);
  settings_->setEnabled(false);
  train_->setToolTip(tr("The text is being prepared."));
  cancel_->setText(tr("Stop"));
  show_progress({"text", {}, 0, 0});
  preparer_->start(file_, config_, workspace_);
}

void OwnTextDialog::show_progress(const Progress& progress) {
  bool before = true;
  for (Line& line : lines_) {
    const bool now = progress.phase == line.phase;
    if (now) before = false;
    line.title->set_color(now || before ? Token::text : Token::text3);
    const double done = before ? 1
                        : now && progress.total > 0
                            ? static_cast<double>(progress.done) / static_cast<double>(progress.total)
                        : now ? 0
                              : -1;
    line.bar->set(std::min(done, 1.0), before ? Token::good : Token::info);
    line.detail->set_full_text(now ? text(progress.detail) : before ? tr("done") : QString());
  }
}

void OwnTextDialog::take(const Result<RunConfig>& result) {
  if (leaving_) return QDialog::reject();
  if (result) {
    if (start_)
      emit ready(*result);
    else
      emit settings_wanted(*result);
    return accept();
  }
  during_->hide();
  before_->show();
  problem_->set_full_text(text(result.error().message()));
  problem_->show();
  train_->setEnabled(true);
  train_->setToolTip({});
  settings_->setEnabled(true);
  cancel_->setText(tr("Cancel"));
}

void OwnTextDialog::reject() {
  if (!preparer_->is_busy()) return QDialog::reject();
  leaving_ = true;
  cancel_->setEnabled(false);
  cancel_->setToolTip(tr("It stops within a moment."));
  preparer_->stop();
}

QString OwnTextDialog::words() const {
  QStringList all;
  for (const QLabel* label : findChildren<QLabel*>())
    if (label->isVisible()) all << label->text();
  return all.join(QLatin1Char('\n'));
}

}  // namespace stacklab::ui

#include <moc_own_text_dialog.cpp>
