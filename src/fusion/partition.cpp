#include "fusion/partition.h"

#include <algorithm>

#include "base/error.h"

namespace fusewise::fusion {

Partition::Partition(const PlanContext& context) : cluster_of_(context.graph->size(), -1) {
  for (NodeId id = 0; id < context.graph->size(); ++id) {
    if (!context.is_work(id)) continue;
    const int index = static_cast<int>(clusters_.size());
    cluster_of_[id] = index;
    Cluster cluster;
    cluster.nodes = {id};
    cluster.position = index;
    for (NodeId input : context.inputs[id])
      if (!context.is_source(input)) {
        cluster.previous.push_back(cluster_of_[input]);
        clusters_[static_cast<size_t>(cluster_of_[input])].next.push_back(index);
      }
    clusters_.push_back(std::move(cluster));
    at_position_.push_back(index);
    forward_.push_back(index);
  }
}

int Partition::find(int cluster) const {
  while (forward_[static_cast<size_t>(cluster)] != cluster) {
    int& next = forward_[static_cast<size_t>(cluster)];
    next = forward_[static_cast<size_t>(next)];
    cluster = next;
  }
  return cluster;
}

int Partition::cluster_of(NodeId node) const { return cluster_of_[node] < 0 ? -1 : find(cluster_of_[node]); }

std::vector<int> Partition::live(const std::vector<int>& clusters, int self) const {
  std::vector<int> result;
  for (int c : clusters)
    if (const int now = find(c); now != self) result.push_back(now);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::vector<int> Partition::successors(int cluster) const {
  return live(clusters_[static_cast<size_t>(cluster)].next, cluster);
}
std::vector<int> Partition::predecessors(int cluster) const {
  return live(clusters_[static_cast<size_t>(cluster)].previous, cluster);
}

bool Partition::reach(int low, int high, std::vector<int>& reached) const {
  stamp_.resize(clusters_.size(), 0);
  const int mark = ++stamps_;
  const int limit = clusters_[static_cast<size_t>(high)].position;
  bool found = false;
  std::vector<int> work = {low};
  while (!work.empty()) {
    const int from = work.back();
    work.pop_back();
    for (int next : clusters_[static_cast<size_t>(from)].next) {
      next = find(next);
      if (next == from || (from == low && next == high)) continue;
      if (next == high) {
        found = true;
        continue;
      }
      if (clusters_[static_cast<size_t>(next)].position > limit || stamp_[static_cast<size_t>(next)] == mark)
        continue;
      stamp_[static_cast<size_t>(next)] = mark;
      reached.push_back(next);
      work.push_back(next);
    }
  }
  return found;
}

bool Partition::would_cycle(int a, int b) const {
  if (clusters_[static_cast<size_t>(a)].position > clusters_[static_cast<size_t>(b)].position)
    std::swap(a, b);
  std::vector<int> reached;
  return reach(a, b, reached);
}

int Partition::merge(int a, int b) {
  if (clusters_[static_cast<size_t>(a)].position > clusters_[static_cast<size_t>(b)].position)
    std::swap(a, b);
  std::vector<int> reached;
  check(!reach(a, b, reached), "a merge would close a cycle");
  const int index = static_cast<int>(clusters_.size());
  // What `a` reaches goes behind the merged cluster, the rest of the window before it; both keep their order.
  const int begin = clusters_[static_cast<size_t>(a)].position,
            end = clusters_[static_cast<size_t>(b)].position;
  const int mark = stamps_;
  std::vector<int> places, before, behind;
  for (int p = begin; p <= end; ++p) {
    const int c = at_position_[static_cast<size_t>(p)];
    if (c < 0) continue;
    places.push_back(p);
    at_position_[static_cast<size_t>(p)] = -1;
    if (c == a || c == b) continue;
    (stamp_[static_cast<size_t>(c)] == mark ? behind : before).push_back(c);
  }
  Cluster merged;
  Cluster& first = clusters_[static_cast<size_t>(a)];
  Cluster& second = clusters_[static_cast<size_t>(b)];
  merged.first = a;
  merged.second = b;
  std::merge(first.nodes.begin(), first.nodes.end(), second.nodes.begin(), second.nodes.end(),
             std::back_inserter(merged.nodes));
  first.alive = second.alive = false;
  forward_.push_back(index);
  forward_[static_cast<size_t>(a)] = forward_[static_cast<size_t>(b)] = index;
  merged.next = first.next;
  merged.next.insert(merged.next.end(), second.next.begin(), second.next.end());
  merged.previous = first.previous;
  merged.previous.insert(merged.previous.end(), second.previous.begin(), second.previous.end());
  merged.next = live(merged.next, index);
  merged.previous = live(merged.previous, index);
  clusters_.push_back(std::move(merged));
  before.push_back(index);
  before.insert(before.end(), behind.begin(), behind.end());
  for (size_t i = 0; i < before.size(); ++i) {
    at_position_[static_cast<size_t>(places[i])] = before[i];
    clusters_[static_cast<size_t>(before[i])].position = places[i];
  }
  return index;
}

std::pair<int, int> Partition::parts(int cluster) const {
  return {clusters_[static_cast<size_t>(cluster)].first, clusters_[static_cast<size_t>(cluster)].second};
}

std::vector<int> Partition::order() const {
  std::vector<int> result;
  for (int c : at_position_)
    if (c >= 0) result.push_back(c);
  return result;
}

}  // namespace fusewise::fusion
