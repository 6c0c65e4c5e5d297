// Islands that a page brings as scripts of its own, beside that of every page: they mostly are there when that one begins,
// where one that is asked for then would come behind the first layout of the page.
export const brought = (globalThis.zigguratIslands ??= {});
