// What an image of a network shows: scopes are modules, which stay closed until somebody opens them.
const SEPARATOR = "/";

function parents(name) {
  const parts = name.split(SEPARATOR);
  return parts.slice(1).map((_, number) => parts.slice(0, number + 1).join(SEPARATOR));
}

export class Network {
  constructor({ nodes, weights }) {
    this.nodes = nodes;
    this.members = new Map(); // scope -> numbers of its operations, in their order
    nodes.forEach((node, number) => {
      for (const scope of parents(node.name)) {
        if (!this.members.has(scope)) this.members.set(scope, []);
        this.members.get(scope).push(number);
      }
    });
    this.weights = new Map();
    for (const [name, count] of Object.entries(weights)) {
      for (const scope of parents(name)) this.weights.set(scope, (this.weights.get(scope) ?? 0) + count);
    }
  }

  isModule(scope) {
    return (this.members.get(scope)?.length ?? 0) > 1;
  }

  shown(number, open) {
    const name = this.nodes[number].name;
    return parents(name).find((scope) => this.isModule(scope) && !open.has(scope)) ?? name;
  }

  // Boxes and arrows, with the modules in `open` taken apart.
  view(open) {
    const boxes = new Map();
    const edges = new Set();
    this.nodes.forEach((node, number) => {
      const name = this.shown(number, open);
      if (!boxes.has(name)) boxes.set(name, this.box(name, node, open));
      for (const source of node.from) {
        const before = this.shown(source, open);
        if (before !== name) edges.add(`${before}\n${name}`);
      }
    });
    for (const name of [...boxes.keys()]) {
      for (const scope of parents(name)) {
        if (open.has(scope) && this.isModule(scope) && !boxes.has(scope)) {
          boxes.set(scope, { name: scope, title: this.short(scope), detail: "", kind: "opened", inside: this.around(scope, open) });
        }
      }
    }
    return { boxes: [...boxes.values()], edges: [...edges].map((edge) => edge.split("\n")) };
  }

  box(name, node, open) {
    const inside = this.around(name, open);
    if (!this.members.has(name)) return { name, title: node.kind, detail: node.shape, kind: "operation", inside };
    const members = this.members.get(name);
    const last = this.nodes[members[members.length - 1]];
    const weights = this.weights.get(name);
    const count = weights ? `, ${weights.toLocaleString("en")} parameters` : "";
    return { name, title: this.short(name), detail: `${last.shape}${count}`, kind: "module", inside };
  }

  around(name, open) {
    return parents(name).filter((scope) => open.has(scope) && this.isModule(scope)).at(-1);
  }

  short(scope) {
    return scope.split(SEPARATOR).at(-1);
  }

  // All modules that can be open with fewer than `most` boxes: whole levels, the outer ones first.
  openable(most) {
    const open = new Set();
    const scopes = [...this.members.keys()].filter((scope) => this.isModule(scope));
    const depths = [...new Set(scopes.map((scope) => scope.split(SEPARATOR).length))].sort((a, b) => a - b);
    for (const depth of depths) {
      const wider = new Set([...open, ...scopes.filter((scope) => scope.split(SEPARATOR).length === depth)]);
      if (this.view(wider).boxes.length >= most) return open;
      for (const scope of wider) open.add(scope);
    }
    return open;
  }
}
