// Greedy: the merge that gains most by the model first. A queue holds every proposal under its tier 0 gain; what
// comes up is priced exactly where the closed form does not suffice, and goes back if others now gain more.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "fusion/candidates/candidates.h"
#include "fusion/search/cluster_sums.h"
#include "fusion/search/search.h"

namespace fusewise::fusion {

namespace {

// Gains below this are within what the model cannot tell apart (microseconds).
constexpr double least_gain = 0.02;
// The same as a share of the time at stake, where the exact price decides: kernels are timed no better than this.
constexpr double least_share = 0.005;
// What changes the tiles of a contraction has to gain more: measured on chains of contractions, differences below
// this share went either way.
constexpr double least_contraction_share = 0.05;

struct Entry {
  double gain = 0;
  uint64_t tie = 0;              // by structure, so that the order of independent nodes does not matter
  NodeId first = 0, second = 0;  // by place, where even that is equal
  int a = -1, b = -1;
  bool plain = false;  // elementwise chains and epilogues first: they leave less to decide for others
  bool light =
      false;  // then without contractions: a softmax is complete before its product takes a part of it
  bool exact = false;
  bool operator<(const Entry& other) const {
    if (plain != other.plain) return !plain;
    if (light != other.light) return !light;
    if (gain != other.gain) return gain < other.gain;
    if (tie != other.tie) return tie > other.tie;
    if (first != other.first) return first > other.first;
    if (second != other.second) return second > other.second;
    return std::pair(a, b) > std::pair(other.a, other.b);
  }
};

// The largest entry first. Those that are there from the start are sorted once, which takes less than a heap of them.
class Queue {
 public:
  void push(const Entry& entry) {
    (begun_ ? later_ : first_).push_back(entry);
    if (begun_) std::push_heap(later_.begin(), later_.end());
  }
  // Lets go of what `dead` says of once that may be half of the heap: merges leave it behind, and a heap that stays in a
  // cache is a fast one.
  template <class Dead>
  void clean(const Dead& dead) {
    if (later_.size() < 2 * cleaned_) return;
    std::erase_if(later_, dead);
    std::make_heap(later_.begin(), later_.end());
    cleaned_ = std::max(later_.size(), least_cleaned);
  }
  void begin() {
    std::sort(first_.begin(), first_.end());
    begun_ = true;
  }
  bool empty() const { return first_.empty() && later_.empty(); }
  const Entry& top() const { return from_later() ? later_.front() : first_.back(); }
  void pop() {
    if (!from_later()) return first_.pop_back();
    std::pop_heap(later_.begin(), later_.end());
    later_.pop_back();
  }

 private:
  static constexpr size_t least_cleaned = 1024;
  std::vector<Entry> first_, later_;  // sorted, and a heap
  bool begun_ = false;
  size_t cleaned_ = least_cleaned;  // of the heap, entries when it was last cleaned

  bool from_later() const { return first_.empty() || (!later_.empty() && first_.back() < later_.front()); }
};

class Greedy {
 public:
  Greedy(Partition& partition, const LegalityContext& context, const std::vector<bool>& fixed)
      : partition_(partition), context_(context), fixed_(fixed), summer_(context.plan) {}

  SearchResult run() {
    const std::vector<int> clusters = partition_.order();
    place_.assign(static_cast<size_t>(partition_.size()), -1);
    for (int c : clusters) {
      place_[static_cast<size_t>(c)] = static_cast<int>(sums_.size());
      sums_.push_back(sums_before_search(c));
    }
    tree_.assign(sums_.size(), -1);
    for (int c : clusters) propose(c, true);
    queue_.begin();
    const std::optional<int64_t> most = context_.plan.options->constraints.most_merges;
    while (!queue_.empty()) {
      Entry entry = queue_.top();
      queue_.pop();
      if (!partition_.alive(entry.a) || !partition_.alive(entry.b)) continue;
      if (most && result_.merges >= *most) break;
      consider(entry);
    }
    return result_;
  }

 private:
  Partition& partition_;
  const LegalityContext& context_;
  const std::vector<bool>& fixed_;
  ClusterSummer summer_;
  SearchResult result_;
  Queue queue_;
  std::vector<int> place_;  // by cluster, while it lives: its place in the next two
  std::vector<ClusterSums> sums_;
  std::vector<double> tree_;  // tier 1 prices of clusters, negative where they have not been asked for

  size_t place(int cluster) const { return static_cast<size_t>(place_[static_cast<size_t>(cluster)]); }
  const ClusterSums& sums(int cluster) const { return sums_[place(cluster)]; }

  // In the place of one of its parts.
  void keep_sums(int merged, int a, int b) {
    check(static_cast<size_t>(merged) == place_.size(), "clusters are not numbered as they are merged");
    place_.push_back(place_[static_cast<size_t>(a)]);
    sums_[place(a)] = summer_.of_both(sums(a), sums(b));
    tree_[place(a)] = -1;
    sums_[place(b)] = {};
  }

  // Groups that the user gave have several members from the start.
  ClusterSums sums_before_search(int cluster) const {
    const std::span<const NodeId> nodes = partition_.nodes(cluster);
    ClusterSums sums = summer_.of_node(nodes[0]);
    for (NodeId node : nodes.subspan(1)) sums = summer_.of_both(sums, summer_.of_node(node));
    return sums;
  }

  void propose(int cluster, bool only_forward) {
    if (fixed_[partition_.nodes(cluster).front()]) return;
    for (const Proposal& p : proposals_of(context_.plan, partition_, cluster, !only_forward)) {
      if (only_forward && p.b == cluster) continue;  // the other one proposes it
      const int other = p.a == cluster ? p.b : p.a;
      if (fixed_[partition_.nodes(other).front()]) continue;
      const ClusterSums &a = sums(p.a), &b = sums(p.b);
      const double gain = a.microseconds + b.microseconds - summer_.price_of_both(a, b);
      if (gain < least_gain) continue;
      queue_.push({gain, a.signature + b.signature, std::min(a.first, b.first), std::max(a.last, b.last), p.a,
                   p.b, p.kind == CandidateKind::vertical && summer_.plain_merge(a, b),
                   !a.contracts && !b.contracts});
    }
  }

  void consider(Entry& entry) {
    ++result_.candidates;
    if (partition_.nodes(entry.a).size() + partition_.nodes(entry.b).size() > most_region_nodes) return;
    Candidate candidate = make_candidate(context_.plan, partition_, entry.a, entry.b);
    if (!is_legal(candidate, context_, false)) return;
    if (entry.plain && !epilogue_pays(entry, candidate)) return;
    if (!entry.plain && !entry.exact) {
      if (out_of_budget(candidate)) {
        result_.complete = false;
        return;
      }
      if (!is_legal(candidate, context_, true)) return;
      const double together = tree_price(candidate.region);
      const double apart = tree_price(entry.a) + tree_price(entry.b);
      entry.exact = true;
      const double gain = apart - together;
      if (gain < least_gain + share_of(entry) * apart) return;
      // Others may gain more than this one does by the exact price.
      if (!queue_.empty() && gain < entry.gain && others_first(entry, gain)) {
        entry.gain = gain;
        queue_.push(entry);
        return;
      }
    }
    const int merged = partition_.merge(entry.a, entry.b);
    ++result_.merges;
    keep_sums(merged, entry.a, entry.b);
    propose(merged, false);
    queue_.clean([&](const Entry& e) { return !partition_.alive(e.a) || !partition_.alive(e.b); });
  }

  bool others_first(const Entry& entry, double gain) const {
    const Entry& top = queue_.top();
    if (top.plain || top.light != entry.light) return top.plain || top.light;
    return gain < top.gain;
  }

  // An epilogue that a contraction's tiles do not suit (another layout, say) is dearer than a kernel of its own.
  bool epilogue_pays(const Entry& entry, const Candidate& candidate) {
    if (!sums(entry.a).accumulates || out_of_budget(candidate)) return true;
    const double together = tree_price(candidate.region);
    return together >= 0 && together <= tree_price(entry.a) + tree_price(entry.b);
  }

  bool out_of_budget(const Candidate& candidate) const {
    return context_.evaluator.evaluations() >= context_.plan.options->budget &&
           !context_.evaluator.known(candidate.region);
  }

  double share_of(const Entry& entry) const {
    return sums(entry.a).contracts || sums(entry.b).contracts ? least_contraction_share : least_share;
  }

  // Negative when it is no legal region.
  double tree_price(const graph::Region& region) {
    const Evaluated& evaluated = context_.evaluator.evaluate(region);
    return evaluated.verdict ? evaluated.estimate.microseconds : -1;
  }

  double tree_price(int cluster) {
    double& price = tree_[place(cluster)];
    if (price < 0) price = tree_price(region_of(context_.plan, partition_.nodes(cluster)));
    return price < 0 ? sums(cluster).microseconds : price;
  }
};

}  // namespace

SearchResult search_greedy(Partition& partition, const LegalityContext& context,
                           const std::vector<bool>& fixed_nodes) {
  return Greedy(partition, context, fixed_nodes).run();
}

}  // namespace fusewise::fusion
