// Places the boxes of a graph: takes nodes with sizes and edges, answers with places. It runs beside the page, for a
// large graph takes a while.
import { Graph, layout } from "@dagrejs/dagre";

function placed({ id, nodes, edges }) {
  const graph = new Graph({ compound: true, multigraph: false });
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 26, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.name, { width: node.width, height: node.height });
  for (const node of nodes) if (node.inside) graph.setParent(node.name, node.inside);
  for (const [from, to] of edges) graph.setEdge(from, to);
  layout(graph);
  const { width, height } = graph.graph();
  return {
    id,
    width,
    height,
    nodes: graph.nodes().map((name) => ({ name, ...graph.node(name) })),
    edges: graph.edges().map((edge) => graph.edge(edge).points),
  };
}

self.onmessage = ({ data }) => {
  try {
    self.postMessage(placed(data));
  } catch (error) {
    self.postMessage({ id: data.id, error: String(error?.message ?? error) });
  }
};
