#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphviz.hpp>
#include <locale>
#include <map>
#include <sstream>

#include "base/text.hpp"
#include "plan/fold.hpp"
#include "plan/plan_io.hpp"

namespace shardsim {
namespace {

struct Node {
  std::string label;
  std::string colour;
};
// Out-edges in a set: a repetition may depend on another through several of its tasks.
using Graph = boost::adjacency_list<boost::setS, boost::vecS, boost::directedS, Node>;

Node node_of(const Plan& plan, const Program& program, TaskId id, std::int64_t repeats) {
  const Task& task = program.tasks[static_cast<std::size_t>(id)];
  const auto work = static_cast<std::size_t>(task.work);
  Node node;
  switch (task.kind) {
    case TaskKind::kernel:
      node = {plan.kernels[work].op, "white"};
      break;
    case TaskKind::collective: {
      const Collective& collective = plan.collectives[work];
      node = {fmt::format("{} {}\n{}", name_of(collective.kind),
                          fmt::join(plan.mesh.names_of(collective.axes), ","),
                          format_bytes(collective.payload)),
              "lightblue"};
      break;
    }
    case TaskKind::transfer:
      node = {plan.transfers[work].sends ? "send" : "receive", "lightyellow"};
      break;
    case TaskKind::to_host:
    case TaskKind::from_host:
      node = {fmt::format("{}\n{}", name_of(task.kind), format_bytes(plan.kernels[work].bytes)),
              "lightyellow"};
      break;
  }
  node.label += "\n" + plan.task_name(task);
  if (repeats > 1) node.label += fmt::format("\nx{}", repeats);
  return node;
}

// One node per task of the folded schedule, an edge per dependency. Edges point forward only: the
// task that stands for a dependency comes no later than the dependency.
void add_program(const Plan& plan, const Program& program, Graph& graph) {
  const std::vector<Section> sections = fold(program);
  const std::vector<TaskId> stands_for = representatives(program, sections);
  std::map<TaskId, Graph::vertex_descriptor> vertices;
  for (const Section& section : sections) {
    for (TaskId id = section.first; id < section.first + section.length; ++id) {
      const auto vertex = boost::add_vertex(node_of(plan, program, id, section.repeats), graph);
      vertices.emplace(id, vertex);
      for (TaskId before : program.after(program.tasks[static_cast<std::size_t>(id)])) {
        boost::add_edge(vertices.at(stands_for[static_cast<std::size_t>(before)]), vertex, graph);
      }
    }
  }
}

}  // namespace

std::string plan_to_dot(const Plan& plan) {
  Graph graph;
  for (const Program& program : plan.programs) add_program(plan, program, graph);
  std::ostringstream out;
  out.imbue(std::locale::classic());
  const auto write_node = [&](std::ostream& stream, Graph::vertex_descriptor vertex) {
    stream << "[label=" << boost::escape_dot_string(graph[vertex].label)
           << ", fillcolor=" << graph[vertex].colour << "]";
  };
  const auto write_graph = [](std::ostream& stream) {
    stream << "rankdir=TB;\nnode [shape=box, style=filled, fontname=\"sans-serif\"];\n";
  };
  boost::write_graphviz(out, graph, write_node, boost::default_writer(), write_graph);
  return std::move(out).str();
}

}  // namespace shardsim
