#include "fusion/partition.h"

#include <algorithm>
#include <map>
#include <random>

#include "fusion/search/search.h"
#include "planner_testing.h"

namespace fusewise::fusion {
namespace {

TEST(OrderList, AgreesWithAList) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    int count = 1 + static_cast<int>(random() % 20);
    OrderList order(count);
    std::vector<int> expected(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) expected[static_cast<size_t>(i)] = i;
    for (int step = 0; step < 300; ++step) {
      const size_t from = random() % expected.size(), to = random() % expected.size();
      if (step % 3 == 0) {
        order.replace(expected[from]);
        expected[from] = count++;
      } else if (from != to) {
        const int moved = expected[from], place = expected[to];
        order.remove(moved);
        std::erase(expected, moved);
        const auto at = std::find(expected.begin(), expected.end(), place);
        if (step % 3 == 1) {
          order.insert_behind(place, moved);
          expected.insert(at + 1, moved);
        } else {
          order.insert_before(place, moved);
          expected.insert(at, moved);
        }
      }
      ASSERT_EQ(order.members(), expected) << "seed " << seed << " step " << step;
      for (size_t i = 1; i < expected.size(); ++i)
        ASSERT_TRUE(order.before(expected[i - 1], expected[i])) << "seed " << seed << " step " << step;
    }
  }
}

// Always at the same place, where labels run out first; at both ends, too.
TEST(OrderList, FindsRoomAtOnePlace) {
  constexpr int count = 20'000;
  for (const int place : {0, count / 2, count - 1}) {
    OrderList order(count);
    for (int n = 0; n < count; ++n) {
      if (n == place) continue;
      order.remove(n);
      if (n % 2)
        order.insert_behind(place, n);
      else
        order.insert_before(place, n);
    }
    const std::vector<int> members = order.members();
    ASSERT_EQ(members.size(), static_cast<size_t>(count));
    for (size_t i = 1; i < members.size(); ++i) ASSERT_TRUE(order.before(members[i - 1], members[i]));
  }
}

void merge_at_random(const Graph& graph, uint32_t seed, int steps) {
  const PlanOptions options = test_options();
  const PlanContext context = make_context(graph, options, {});
  Partition partition(context);
  std::mt19937 random(seed);
  for (int step = 0; step < steps; ++step) {
    const std::vector<int> order = partition.order();
    if (order.size() < 2) break;
    const int a = order[random() % order.size()], b = order[random() % order.size()];
    // The other way to find out: all that one reaches through a third.
    if (a == b) continue;
    std::vector<int> work;
    std::set<int> seen;
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}})
      for (int c : partition.successors(from))
        if (c != to && seen.insert(c).second) work.push_back(c);
    while (!work.empty()) {
      const int c = work.back();
      work.pop_back();
      for (int next : partition.successors(c))
        if (seen.insert(next).second) work.push_back(next);
    }
    const bool cycle = seen.count(a) || seen.count(b);
    ASSERT_EQ(partition.would_cycle(a, b), cycle) << "seed " << seed << " step " << step;
    if (cycle) continue;
    const std::vector<NodeId> first = partition.nodes_of_part(a);
    const int merged = partition.merge(a, b);
    EXPECT_FALSE(partition.alive(a));
    EXPECT_EQ(partition.nodes_of_part(a), first);
    EXPECT_EQ(partition.cluster_of(first[0]), merged);
    std::map<int, size_t> place;
    const std::vector<int> now = partition.order();
    for (size_t i = 0; i < now.size(); ++i) place[now[i]] = i;
    for (int c : now)
      for (int next : partition.successors(c))
        ASSERT_LT(place.at(c), place.at(next)) << "seed " << seed << " step " << step;
  }
}

TEST(Partition, RandomMergesKeepTheQuotientAcyclic) {
  for (uint32_t seed = 0; seed < 30; ++seed) merge_at_random(random_graph(seed, 30), seed, 200);
}

// Down and up again, with a connection across at every step.
Graph skips(int depth) {
  Graph graph;
  GraphBuilder b(graph);
  std::vector<Value> down = {b.input("x", f32({8, 8}))};
  for (int i = 0; i < depth; ++i)
    down.push_back(
        b.map(ScalarOp::tanh, {b.broadcast_to(b.reduce(down.back(), Combine::max, {1}, true), {8, 8})}));
  Value x = down.back();
  for (int i = depth; i-- > 0;)
    x = b.map(ScalarOp::exp, {b.map(ScalarOp::add, {x, down[static_cast<size_t>(i)]})});
  b.output(x, "y");
  return graph;
}

// One value that all read, all summed up in pairs.
Graph fan(int width) {
  Graph graph;
  GraphBuilder b(graph);
  const Value x = b.map(ScalarOp::exp, {b.input("x", f32({8, 8}))});
  std::vector<Value> level;
  for (int i = 0; i < width; ++i)
    level.push_back(b.map(ScalarOp::mul, {x, b.broadcast_to(b.scalar(DataType::float32, i), {8, 8})}));
  for (; level.size() > 1;) {
    std::vector<Value> sums;
    for (size_t i = 0; i + 1 < level.size(); i += 2)
      sums.push_back(b.map(ScalarOp::add, {level[i], level[i + 1]}));
    if (level.size() % 2) sums.push_back(level.back());
    level = std::move(sums);
  }
  b.output(level[0], "y");
  return graph;
}

Graph chain(int length) {
  Graph graph;
  GraphBuilder b(graph);
  Value x = b.input("x", f32({8, 8}));
  for (int i = 0; i < length; ++i) x = b.map(i % 3 ? ScalarOp::tanh : ScalarOp::exp, {x});
  b.output(x, "y");
  return graph;
}

TEST(Partition, RandomMergesOfDistantClusters) {
  for (uint32_t seed = 0; seed < 5; ++seed) {
    merge_at_random(skips(15), seed, 150);
    merge_at_random(fan(20), seed, 150);
  }
}

struct Effort {
  int64_t steps = 0, candidates = 0;
};

Effort effort_of(const Graph& graph) {
  const PlanOptions options = test_options();
  const PlanContext context = make_context(graph, options, {});
  Partition partition(context);
  Evaluator evaluator(context);
  const SearchResult result =
      search_greedy(partition, {context, partition, evaluator}, std::vector<bool>(graph.size(), false));
  return {partition.steps(), result.candidates};
}

// Operations, not time: twice the nodes are twice the work, however far apart they are that read each other.
TEST(Partition, SearchesGrowWithTheGraph) {
  for (const auto make : {skips, fan, chain}) {
    const Effort small = effort_of(make(1000)), large = effort_of(make(4000));
    EXPECT_LE(large.steps, 5 * small.steps + 1000);
    EXPECT_LE(large.candidates, 5 * small.candidates + 1000);
  }
}

}  // namespace
}  // namespace fusewise::fusion
