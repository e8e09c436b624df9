#include "engine/run/alerts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace stacklab {
namespace {

constexpr std::size_t fewest_for_a_spike = 16;
// A loss x is a spike when, over the finite ones of the 64 points before it,
//   x > median + max(8 * 1.4826 * MAD, 0.05 * |median|),   MAD = median(|x_i - median|).
// 1.4826 * MAD estimates the standard deviation of a normal distribution and, unlike it, is not widened by the spikes
// themselves; the second term keeps a curve that hardly moves from raising an alert at every wrinkle.
constexpr double deviations = 8;
constexpr double mad_to_deviation = 1.4826;
constexpr double least_share = 0.05;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::optional<double> value_of(const MetricEvent& event, std::string_view name) {
  for (const MetricValue& v : event.values)
    if (v.name == name) return v.value;
  return std::nullopt;
}

struct Spread {
  double median = 0, limit = 0;
};

std::optional<Spread> spread_of(const std::deque<double>& losses) {
  std::vector<double> finite;
  for (const double x : losses)
    if (std::isfinite(x)) finite.push_back(x);
  if (finite.size() < fewest_for_a_spike) return std::nullopt;
  Spread s;
  s.median = median_of(finite);
  for (double& x : finite) x = std::abs(x - s.median);
  s.limit = s.median + std::max(deviations * mad_to_deviation * median_of(finite), least_share * std::abs(s.median));
  return s;
}

}  // namespace

bool AlertWatch::Trouble::raise(bool bad) {
  if (!bad) {
    calm_points = std::min(calm_points + 1, calm + 1);  // beyond calm: long over
    return false;
  }
  const bool fresh = calm_points >= calm;
  calm_points = 0;
  return fresh;
}

AlertWatch::Verdict AlertWatch::observe(const MetricEvent& event) {
  using Kind = RunEvent::Kind;
  using Severity = RunEvent::Severity;
  Verdict verdict;
  const std::optional<double> loss = value_of(event, metric::loss);
  if (!loss) return verdict;
  const auto watch = [&](Trouble& trouble, bool bad, Kind kind, Severity severity, double value, auto&& text) {
    if (trouble.raise(bad))
      verdict.raised.push_back({kind, event.step, text(), severity, value});
    else if (trouble.over(bad))
      verdict.resolved.push_back(kind);
  };

  const double norm = value_of(event, metric::grad_norm).value_or(0);
  watch(non_finite_, !std::isfinite(*loss) || !std::isfinite(norm), Kind::non_finite, Severity::critical,
        std::isfinite(*loss) ? norm : *loss, [&] {
          return fmt::format("The {} is not finite at step {}", std::isfinite(*loss) ? "gradient" : "loss", event.step);
        });

  const std::optional<Spread> spread = spread_of(losses_);
  watch(spike_, spread && std::isfinite(*loss) && *loss > spread->limit, Kind::spike, Severity::warning, *loss, [&] {
    return fmt::format("The loss jumped to {:.4g} at step {}, from a median of {:.4g} (limit {:.4g})", *loss,
                       event.step, spread->median, spread->limit);
  });
  losses_.push_back(*loss);
  if (losses_.size() > static_cast<std::size_t>(window)) losses_.pop_front();

  const double logit = value_of(event, metric::max_logit).value_or(0);
  watch(logit_, logit > logit_threshold_, Kind::logit, Severity::warning, logit, [&] {
    return fmt::format("An attention logit of {:.4g} at step {} is above {:.4g}", logit, event.step, logit_threshold_);
  });
  return verdict;
}

}  // namespace stacklab
